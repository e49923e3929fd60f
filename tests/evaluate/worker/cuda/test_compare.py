"""What the device's comparisons say is what numpy's say, to the last digit that matters."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks import indices, norm
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Mismatch
from kernelsmith.evaluate.checks.floats import check_float
from kernelsmith.evaluate.tensors import Tensor
from kernelsmith.evaluate.worker.cuda import compare, walk

INF, NAN = math.inf, math.nan
HALVES = (torch.float16, torch.bfloat16)
DTYPES = (torch.float32, torch.float64, *HALVES)
SHAPES = (
    (), (0,), (3, 0), (1,), (7,), (1030,), (3, 16), (5, 17), (40, 20), (3, 5), (2, 4, 20),
    (2, 3, 5, 7), (2, 2100), (1, 3, 4, 4),
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def _small_blocks():
    """Blocks so small that ordinary tensors have many of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(norm, "_BLOCK", 64)
        patch.setattr(walk, "BLOCK", 256)
        yield


def carried(tensor: torch.Tensor) -> Tensor:
    name = str(tensor.dtype).removeprefix("torch.")
    tensor = tensor.contiguous()
    return Tensor(name, (tensor.view(torch.uint16) if name == "bfloat16" else tensor).numpy())


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, stored the other way round."""
    order = tuple(reversed(range(tensor.dim())))
    return tensor.permute(order).contiguous().permute(order)


@st.composite
def sides(draw):
    """Found, exact and eager of one shape, near each other, with odd values here and there."""
    shape = draw(st.sampled_from(SHAPES))
    exact = noise(*shape, seed=draw(st.integers(0, 99)))
    exact *= draw(st.sampled_from((0.0, 1e-3, 1.0, 1e4)))
    eager = exact.to(draw(st.sampled_from(DTYPES)), copy=True)
    moved = exact + draw(st.sampled_from((0.0, 1e-7, 1e-2, 3.0))) * noise(*shape, seed=1)
    found = moved.to(eager.dtype)
    exact = exact.to(draw(st.sampled_from((torch.float64, torch.float64, torch.float32))))
    for which in draw(st.lists(st.sampled_from(((0,), (1,), (2,), (0, 1), (0, 1, 2))), max_size=4)):
        if exact.numel():
            at = draw(st.integers(0, exact.numel() - 1))
            value = draw(st.sampled_from((NAN, INF, -INF, 0.0, 6e4, 3.3e38, 1e200, -1e308)))
            for each in which:
                (found, exact, eager)[each].view(-1)[at] = torch.tensor(value, dtype=torch.float64)
    spread = draw(st.booleans())
    return tuple(strided(each) if spread else each for each in (found, exact, eager))


def same(a: float, b: float) -> bool:
    return a == b or math.isclose(a, b, rel_tol=1e-9)


@given(
    sides=sides(),
    atol=st.sampled_from((0.0, 1e-6, 1e-2)),
    rtol=st.sampled_from((0.0, 1e-2)),
    allowed=st.sampled_from((0.0, 1e-6, 0.05, 1.0, INF)),
)
@settings(max_examples=200, deadline=None)
def test_the_distance_is_that_of_numpy(sides, atol, rtol, allowed):
    seen = compare.distance(*sides, atol=atol, rtol=rtol, allowed=allowed)
    tolerance = Tolerance(atol=atol, rtol=rtol)
    want = norm.distance(*map(carried, sides), tolerance=tolerance, allowed=allowed)
    assert same(seen.error, want.error)
    assert (seen.row, seen.strangers) == (want.row, want.strangers)
    assert same(seen.excess, want.excess) or max(seen.excess, want.excess) <= 0.5


@given(sides=sides(), eager_error=st.sampled_from((0.0, 1e-5, 1e-2, 1e9)))
@settings(max_examples=150, deadline=None)
def test_a_refusal_is_put_in_the_words_of_the_host(sides, eager_error):
    found, exact, eager = sides
    budget = Budget(eager_error=eager_error, compute_dtype=carried(eager).dtype)
    answer = Answer(path="out", exact=carried(exact), eager=carried(eager))
    said = check_float(carried(found), answer, budget=budget, tolerance=Tolerance())
    if not isinstance(said, Mismatch):
        return
    line = explained(found, exact, eager, budget, said.kind).splitlines()[0]
    assert line == said.message.splitlines()[0]


def explained(found, exact, eager, budget, kind) -> str:
    bounds = {"atol": 1e-2, "rtol": 1e-2, "allowed": budget.allowed}
    seen = compare.distance(found, exact, eager, **bounds)
    return compare.explain_float(
        "out", found, exact, eager, seen, kind=kind, eager_error=budget.eager_error, **bounds
    )


@pytest.mark.parametrize("value", [0.0, NAN, 2.5, "unwritten"])
def test_a_blank_output_is_recognised(value):
    exact = noise(40, 20)
    found = exact.float()
    found[3 if value == "unwritten" else slice(None)] = NAN if value == "unwritten" else value
    answer = Answer(path="out", exact=carried(exact), eager=carried(exact.float()))
    budget = Budget(eager_error=0.0, compute_dtype="float32")
    said = check_float(carried(found), answer, budget=budget, tolerance=Tolerance())
    assert isinstance(said, Mismatch)
    assert "hint: " in said.message
    assert explained(found, exact, exact.float(), budget, said.kind) == said.message


def test_an_output_that_is_wrong_in_no_usual_way_gets_no_hint():
    exact = noise(40, 20)
    budget = Budget(eager_error=0.0, compute_dtype="float32")
    said = explained(noise(40, 20, seed=1), exact, exact.float(), budget, Kind.ERROR)
    assert len(said.splitlines()) == 1


def test_elements_are_counted_only_where_the_tensor_is_refused():
    exact = noise(40, 20)
    found = exact + 1.0
    refused = compare.distance(found, exact, exact, atol=1.0, rtol=0.0, allowed=1e-3)
    passed = compare.distance(found, exact, exact, atol=1.0, rtol=0.0, allowed=INF)
    assert (refused.bad, passed.bad) == (800, 0)
    assert refused.error == passed.error


@pytest.mark.parametrize("format", [torch.channels_last, torch.contiguous_format])
def test_rows_are_counted_in_logical_order_however_the_tensor_is_stored(format):
    exact = noise(2, 3, 4, 20)
    found = exact.clone(memory_format=format)
    found[1, 2, 3, 5] += 1.0
    seen = compare.distance(found, exact, exact, atol=1e-2, rtol=0.0, allowed=1e-3)
    assert (seen.row, seen.where, seen.bad) == (23, 465, 1)


@given(st.data())
def test_a_part_is_cut_from_the_logical_order(data):
    shape = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    tensor = torch.arange(math.prod(shape)).reshape(shape)
    stored = tensor.permute(data.draw(st.permutations(range(len(shape)))))[::2]
    flat = stored.reshape(-1)
    start = data.draw(st.integers(0, flat.numel()))
    span = slice(start, data.draw(st.integers(start, flat.numel())))
    assert torch.equal(walk.part_of(stored, span), flat[span])


@given(sides())
@settings(deadline=None)
def test_the_rms_is_of_finite_elements(sides):
    values = carried(sides[1]).float64()
    values = values[np.isfinite(values)]
    with np.errstate(all="ignore"):
        want = math.sqrt(np.square(values).mean()) if values.size else 0.0
    assert same(compare.rms(sides[1]), want)
    assert compare.is_finite(sides[0]) is bool(sides[0].isfinite().all())


def test_integers_are_finite():
    assert compare.is_finite(torch.arange(3))


@given(sides())
@settings(deadline=None)
def test_the_relative_distance_is_one_number_for_the_whole_tensor(sides):
    found, other, _ = sides
    seen = compare.relative(found, other)
    assert (seen.shape, seen.dtype) == ((), torch.float64)
    a, b = (carried(each).float64().reshape(-1) for each in (found, other))
    keep = ~((a == b) | (np.isnan(a) & np.isnan(b)))
    with np.errstate(all="ignore"):
        apart = np.sqrt(np.square((a - b)[keep]).sum())
        size = np.sqrt(np.square(b[np.isfinite(b)]).sum())
    if apart == 0:
        assert seen.item() == 0
    elif not (np.isfinite(apart) and np.isfinite(size)):
        assert seen.item() == INF
    else:
        assert same(seen.item() * max(float(size), 2.0**-1022), float(apart)) or size == 0


@pytest.mark.parametrize(
    ("found", "other", "want"),
    [
        ([1.0, NAN], [1.0, 2.0], INF),
        ([1.0, INF], [1.0, -INF], INF),
        ([1.0, 2.0], [1.0, NAN], INF),
        ([5.0, NAN, -INF], [4.0, NAN, -INF], 0.25),
        ([0.0], [0.0], 0.0),
        ([1, 2, 3, 4], [1, 2, 3, 5], 0.25),
        ([True, False], [False, False], 0.5),
        ([], [], 0.0),
    ],
)
def test_nan_and_infinity_are_left_out_only_where_both_have_them(found, other, want):
    assert compare.relative(torch.tensor(found), torch.tensor(other)).item() == want


def test_unequal_integers_are_counted():
    exact = torch.arange(600).reshape(20, 30)
    found = strided(exact.clone())
    found[3, 4:7] += 1
    assert compare.discrete_differs(found, exact) == 3
    assert compare.discrete_differs(exact > 5, exact > 7) == 2
    assert compare.discrete_differs(exact[:0], exact[:0]) == 0


@st.composite
def indexed(draw):
    """Scores with ties and odd values, and the indices of the best of them."""
    shape = draw(st.sampled_from(((9,), (4, 30), (3, 8, 5), (2, 70, 9))))
    dim = draw(st.integers(0, len(shape) - 1))
    scores = noise(*shape, seed=draw(st.integers(0, 99))).to(draw(st.sampled_from(DTYPES)))
    if draw(st.booleans()):
        scores = scores.round()
    if draw(st.booleans()):
        scores.view(-1)[draw(st.integers(0, scores.numel() - 1))] = NAN
    largest = draw(st.booleans())
    form = draw(st.sampled_from(("arg", "topk", "whole")))
    if form == "topk":
        few = draw(st.integers(1, shape[dim]))
        return scores, dim, scores.topk(few, dim=dim, largest=largest).indices
    pick = torch.argmax if largest else torch.argmin
    return scores, dim, pick(scores) if form == "whole" else pick(scores, dim=dim)


@given(indexed(), st.data())
@settings(max_examples=120, deadline=None)
def test_indices_are_judged_as_numpy_judges_them(case, data):
    scores, dim, exact = case
    if exact.dim() == 0:
        scores, dim = scores.reshape(-1), 0
    eager, found = exact.clone(), exact.clone()
    for each in (eager, found, found):
        at = data.draw(st.integers(0, exact.numel() - 1))
        each.view(-1)[at] = data.draw(st.integers(0 if each is eager else -1, scores.shape[dim]))
    eager.clamp_(max=scores.shape[dim] - 1)
    allowed = data.draw(st.sampled_from((1e-6, 0.3)))
    count, said = compare.indices_wrong(strided(found), exact, eager, scores, dim, allowed)
    answer = Answer(
        path="out", exact=carried(exact), eager=carried(eager),
        scores=carried(scores).float64(), dim=dim,
    )  # fmt: skip
    budget = Budget(eager_error=allowed, compute_dtype="float64", k=1.0, floor_ulps=0.0)
    want = indices.check_indices(carried(found), answer, budget=budget)
    if isinstance(want, Mismatch):
        assert f"out {said}" == want.message
        assert f"; {count:,} of" in said
    else:
        assert (count, said) == (0, "")


@given(indexed(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_the_input_that_is_indexed_is_found_as_numpy_finds_it(case, disturbed):
    scores, _, chosen = case
    if disturbed:
        chosen = chosen.flip(0) if chosen.dim() else chosen + 1
    inputs = [torch.arange(3), noise(4, 30, seed=1234), scores]
    answer = Answer(path="out", exact=carried(chosen), eager=carried(chosen))
    want = indices.infer_scores(answer, [carried(each) for each in inputs])
    seen = compare.infer_scores(chosen, inputs)
    assert (seen is None) is (want is None)
    if seen is not None and want is not None:
        position, dim, flattened = seen
        values = inputs[position].reshape(-1) if flattened else inputs[position]
        assert dim == want[1]
        assert np.array_equal(carried(values).float64(), want[0], equal_nan=True)


def test_indices_of_several_infinities_are_recognised():
    scores = torch.tensor([[1.0, -INF, -INF, -INF], [2.0, 3.0, -INF, -INF]])
    assert compare.infer_scores(scores.topk(3).indices, [scores]) == (0, 1, False)


def test_no_indices_are_seen_in_floats_or_in_nothing():
    assert compare.infer_scores(torch.zeros(3), [noise(3, 4)]) is None
    assert compare.infer_scores(torch.zeros(0, dtype=torch.int64), [noise(0, 4)]) is None
