"""Integers, bools and indices: exact, save where the reference itself is in doubt."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from answer_factories import accepted, carried, refused

from kernelsmith.evaluate.checks.answer import Answer, Kind
from kernelsmith.evaluate.checks.indices import infer_scores
from kernelsmith.evaluate.tensors import Tensor


def ints(*values: int) -> Tensor:
    return Tensor("int64", np.array(values, dtype=np.int64))


def bools(*values: bool) -> Tensor:
    return Tensor("bool", np.array(values))


def sure(tensor: Tensor) -> Answer:
    return Answer(path="out[1]", exact=tensor, eager=tensor)


def indexed(indices: torch.Tensor, scores: torch.Tensor) -> Answer:
    answer = sure(carried(indices))
    inferred = infer_scores(answer, [carried(scores)])
    assert inferred is not None
    return replace(answer, scores=inferred[0], dim=inferred[1])


def test_integers_are_exact():
    accepted(ints(1, 2, 3), sure(ints(1, 2, 3)))
    wrong = refused(ints(1, 2, 4), sure(ints(1, 2, 3)))
    assert wrong.kind is Kind.INTEGER
    assert "out[1] at (2,): expected 3, found 4; 1 of 3" in wrong.message


def test_a_bool_may_differ_only_where_the_reference_is_in_doubt():
    answer = Answer(
        path="out",
        exact=bools(True, False, True),
        eager=bools(True, True, True),
        alternatives=(bools(False, False, True),),
    )
    accepted(bools(False, True, True), answer)
    assert refused(bools(True, True, False), answer).kind is Kind.BOOL


def test_integers_off_by_one_everywhere_are_told_so():
    assert "off by 1" in refused(ints(2, 3, 4), sure(ints(1, 2, 3))).message


def test_negated_bools_are_told_so():
    answer = sure(bools(True, False, True))
    assert "negated" in refused(bools(False, True, False), answer).message


TIED = torch.tensor([[1.0, 5.0, 5.0, 2.0], [7.0, 1.0, 7.0, 7.0]])


def test_a_tie_may_be_broken_either_way():
    answer = indexed(TIED.argmax(1), TIED)
    accepted(ints(2, 3), answer)
    wrong = refused(ints(3, 0), answer)
    assert wrong.kind is Kind.INDEX
    assert "the values there are 5 and 2" in wrong.message


@pytest.mark.parametrize("bad", [-1, 4])
def test_an_index_out_of_range_is_wrong(bad):
    assert "outside 0..3" in refused(ints(1, bad), indexed(TIED.argmax(1), TIED)).message


def test_a_topk_index_taken_twice_is_wrong():
    answer = indexed(TIED.topk(2).indices, TIED)
    accepted(carried(torch.tensor([[2, 1], [3, 0]])), answer)
    assert "taken twice" in refused(carried(torch.tensor([[1, 1], [0, 2]])), answer).message


def test_indices_of_an_empty_batch_are_right():
    none = carried(torch.empty(0, 2, dtype=torch.int64))
    accepted(none, replace(sure(none), scores=np.empty((0, 4)), dim=1))


def test_masked_scores_do_not_make_every_choice_near_enough():
    scores = torch.tensor([[float("-inf"), 1.0, 2.0], [float("-inf")] * 3])
    answer = indexed(scores.argmax(1), scores)
    accepted(ints(2, 1), answer)
    refused(ints(0, 0), answer)
    refused(ints(1, 0), answer)


CUBE = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("indices", "dim"),
    [
        (CUBE.argmax(1), 1),
        (CUBE.argmin(2), 2),
        (CUBE.argmax(0, keepdim=True), 0),
        (CUBE.topk(3, dim=2).indices, 2),
        (CUBE.topk(2, dim=0, largest=False).indices, 0),
        (CUBE.sort(dim=1, descending=True).indices, 1),
        (CUBE.argsort(dim=2), 2),
    ],
)
def test_what_an_index_points_into_is_found(indices, dim):
    inferred = infer_scores(sure(carried(indices)), [carried(torch.randn(3)), carried(CUBE)])
    assert inferred is not None
    assert inferred[1] == dim
    assert np.array_equal(inferred[0], CUBE.double().numpy())


@pytest.mark.parametrize("keepdim", [False, True])
def test_an_index_into_the_flattened_input_is_found(keepdim):
    inferred = infer_scores(sure(carried(torch.argmax(CUBE, keepdim=keepdim))), [carried(CUBE)])
    assert inferred is not None
    assert inferred[0].shape == (120,)


def test_nan_is_the_largest_as_torch_has_it():
    scores = torch.tensor([[1.0, float("nan"), 3.0], [1.0, 2.0, 0.0]])
    answer = indexed(scores.argmax(1), scores)
    accepted(ints(1, 1), answer)
    refused(ints(2, 1), answer)


def test_integers_that_are_no_best_indices_have_no_scores():
    assert (
        infer_scores(sure(carried(torch.zeros(4, 6, dtype=torch.int64))), [carried(CUBE)]) is None
    )
    assert infer_scores(sure(bools(True)), [carried(CUBE)]) is None
