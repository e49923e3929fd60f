"""What the trusted process says about tensors without showing them."""

import math
from json import dumps

import pytest
import torch

from kernelsmith.evaluate.worker.answers import Answer, Output
from kernelsmith.evaluate.worker.cuda.summary import (
    answer_bytes,
    attach_scores,
    described,
    plain,
    same_bits,
    set_bytes,
)
from kernelsmith.evaluate.worker.inputs import InputSet


def an_output(exact: torch.Tensor, eager: torch.Tensor, **changes: object) -> Output:
    usual = {"path": "out", "exact": exact, "eager": eager, "alternatives": []}
    return Output(**{**usual, **changes})  # type: ignore[arg-type]


def test_an_answer_is_told_by_its_form_and_by_numbers():
    exact = torch.tensor([[3.0, 4.0], [0.0, 5.0]], dtype=torch.float64)
    said = described(an_output(exact, exact.float() * 1.001, aliases=2, kept=True))
    assert said["path"] == "out"
    assert said["eager"]["shape"] == [2, 2]  # type: ignore[index]
    assert said["eager"]["dtype"] == "float32"  # type: ignore[index]
    assert said["eager_error"] == pytest.approx(1e-3, rel=1e-3)
    assert said["scale"] == pytest.approx(math.sqrt(50 / 4))
    assert (said["finite"], said["aliases"], said["kept"]) == (True, 2, True)


def test_integers_have_no_error_and_no_scale():
    whole = torch.arange(6)
    said = described(an_output(whole, whole))
    assert (said["eager_error"], said["scale"], said["finite"]) == (0.0, 0.0, True)


def test_an_answer_that_is_not_finite_is_still_json():
    exact = torch.tensor([1.0, math.nan], dtype=torch.float64)
    said = described(an_output(exact, torch.tensor([1.0, math.inf])))
    assert said["finite"] is False
    dumps(said, allow_nan=False)


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300])
def test_a_number_stays_one(value):
    assert plain(value) == value


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_json_has_no_word_for_comes_back_as_it_was(value):
    said = plain(value)
    assert isinstance(said, str)
    assert repr(float(said)) == repr(value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.uint8])
def test_the_same_bytes_are_the_same(dtype):
    tensor = torch.arange(10).to(dtype)
    assert same_bits(tensor, tensor.clone())
    assert not same_bits(tensor, tensor.flip(0))


def test_nan_equals_itself_and_zero_has_a_sign():
    assert same_bits(torch.tensor([math.nan]), torch.tensor([math.nan]))
    assert not same_bits(torch.tensor([0.0]), torch.tensor([-0.0]))


def test_an_index_output_finds_the_input_that_it_points_into():
    x = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    best = x.argmax(dim=1)
    output = an_output(best, best)
    attach_scores(output, [torch.randn(3), x])
    assert output.scores is x
    assert output.dim == 1


def test_other_outputs_point_at_nothing():
    x = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    for each in (x, (x > 0), torch.arange(6) * 1000):
        output = an_output(each, each)
        attach_scores(output, [x])
        assert output.scores is None


def test_scores_that_the_task_gave_are_left_alone():
    x = torch.randn(6, 50, generator=torch.Generator().manual_seed(0))
    own = torch.zeros(6, 50)
    output = an_output(x.argmax(dim=1), x.argmax(dim=1), scores=own, dim=0)
    attach_scores(output, [x])
    assert output.scores is own
    assert output.dim == 0


def test_memory_of_sets_and_answers_is_what_they_hold_alive():
    whole = torch.zeros(100)
    chosen = InputSet(None, [whole[:10], torch.zeros(5, dtype=torch.float64)], keywords=False)
    assert set_bytes(chosen) == 440
    found = Answer(None, [an_output(torch.zeros(4).double(), torch.zeros(4))], [], [], exact=True)
    assert answer_bytes(found) == 48
