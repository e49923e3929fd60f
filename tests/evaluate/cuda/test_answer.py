"""An answer known by its form and by numbers judges as one whose values are at hand."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.checks.output import check_output, eager_error
from kernelsmith.evaluate.cuda.answer import DeviceAnswer, Placed, Seen
from kernelsmith.evaluate.tensors import Spec, Tensor, from_bytes


@dataclass(frozen=True)
class HostRuler:
    """A ruler whose device is a dictionary of bytes: it measures by numpy, where it is told to."""

    answer: Answer
    memory: dict[str, bytes]

    def read(self, place: Placed) -> Tensor:
        raw = self.memory[place.allocation][place.offset :]
        return from_bytes(bytearray(raw[: place.spec.span_bytes]), place.spec)

    def measure(self, place: Placed, *, allowed: float, tolerance: Tolerance) -> Seen:
        found = self.read(place)
        if not found.is_float:
            budget = Budget(eager_error=allowed, compute_dtype="float64", k=1.0)
            said = check_output(found, self.answer, budget=budget, tolerance=tolerance)
            if isinstance(said, Measured):
                return Seen()
            is_index = said.kind is Kind.INDEX
            return Seen(wrong=1, message=said.message if is_index else None)
        seen = distance(
            found, self.answer.exact, self.answer.eager, tolerance=tolerance, allowed=allowed
        )
        return Seen(error=seen.error, strangers=seen.strangers, excess=seen.excess)

    def eager_excess(self, tolerance: Tolerance) -> float:
        eager = self.answer.eager
        return distance(eager, self.answer.exact, eager, tolerance=tolerance).excess

    def explain(
        self, place: Placed, *, kind: Kind, budget: Budget, tolerance: Tolerance
    ) -> Mismatch | Measured:
        del kind
        return check_output(self.read(place), self.answer, budget=budget, tolerance=tolerance)

    def magnified(self) -> float:
        return 0.0


def spec_of(values: np.ndarray) -> Spec:
    strides = tuple(step // values.itemsize for step in values.strides)
    return Spec(dtype=str(values.dtype), shape=values.shape, strides=strides)


def an_answer(exact: np.ndarray, eager: np.ndarray, **more: object) -> Answer:
    sides = {"exact": exact, "eager": eager}
    tensors = {name: Tensor(str(each.dtype), each) for name, each in sides.items()}
    return Answer(path="out", **tensors, **more)  # type: ignore[arg-type]


def both_ways(found: np.ndarray, answer: Answer, tolerance: Tolerance | None = None):
    """What numpy says with the values at hand, and what a device's answer says without them."""
    tolerance = tolerance or Tolerance()
    budget = Budget(eager_error=eager_error(answer), compute_dtype="float32")
    here = check_output(Tensor(str(found.dtype), found), answer, budget=budget, tolerance=tolerance)
    ruler = HostRuler(answer, {"7f00": b"\xff" * 64 + found.tobytes()})
    device = DeviceAnswer(
        path="out", eager=spec_of(answer.eager.values), eager_error=budget.eager_error,
        scale=1.0, is_finite=True, ruler=ruler,
    )  # fmt: skip
    place = Placed(allocation="7f00", offset=64, spec=spec_of(np.ascontiguousarray(found)))
    return here, device.check(place, budget=budget, tolerance=tolerance)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


EXACT = normal(6, 40)
EAGER = EXACT.astype(np.float32)
FLOATS = an_answer(EXACT, EAGER)


def test_a_right_output_is_measured():
    here, there = both_ways(EAGER + np.float32(1e-7), FLOATS)
    assert isinstance(there, Measured)
    assert there == here


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        (EAGER.astype(np.float16), Kind.DTYPE),
        (EAGER[:5], Kind.SHAPE),
        (np.where(EAGER > 2, np.nan, EAGER).astype(np.float32), Kind.NONFINITE),
        (EAGER * np.float32(1.001), Kind.ERROR),
    ],
)
def test_a_wrong_output_is_refused_for_the_same_reason_in_the_same_words(found, kind):
    here, there = both_ways(found, FLOATS)
    assert isinstance(there, Mismatch)
    assert there.kind is kind
    assert there.message == here.message


def test_a_form_that_does_not_fit_is_refused_before_a_byte_is_read():
    class Blind(HostRuler):
        def read(self, place):
            raise AssertionError("nobody may read this")

    device = DeviceAnswer(
        path="out", eager=spec_of(EAGER), eager_error=0.0, scale=1.0, is_finite=True,
        ruler=Blind(FLOATS, {}),
    )  # fmt: skip
    budget = Budget(eager_error=0.0, compute_dtype="float32")
    wide = Placed(allocation="?", offset=0, spec=spec_of(EXACT))
    found = device.check(wide, budget=budget, tolerance=Tolerance())
    assert isinstance(found, Mismatch)
    assert found.message == "out: expected dtype float32, found float64"


def test_the_tasks_tolerance_holds_beside_the_budget():
    answer = an_answer(EXACT, (EXACT * (1 + 1e-4)).astype(np.float32))
    strict = Tolerance(atol=1e-9, rtol=1e-4)
    found = (EXACT * (1 + 5e-4)).astype(np.float32)
    here, there = both_ways(found, answer, strict)
    assert isinstance(there, Mismatch)
    assert there.kind is Kind.TOLERANCE
    assert there.message == here.message


def test_nobody_is_held_to_a_tolerance_that_eager_itself_leaves():
    answer = an_answer(EXACT, (EXACT * (1 + 4e-4)).astype(np.float32))
    strict = Tolerance(atol=1e-9, rtol=1e-4)
    here, there = both_ways((EXACT * (1 + 7e-4)).astype(np.float32), answer, strict)
    assert isinstance(there, Measured)
    assert there == here


WHOLE = np.arange(24, dtype=np.int64).reshape(4, 6)


def test_integers_are_exact_and_explained():
    answer = an_answer(WHOLE, WHOLE)
    assert isinstance(both_ways(WHOLE, answer)[1], Measured)
    here, there = both_ways(WHOLE + (WHOLE == 7), answer)
    assert isinstance(there, Mismatch)
    assert there.message == here.message
    assert "expected 7, found 8" in there.message


def test_an_index_is_judged_by_the_value_that_it_points_at():
    scores = normal(4, 30)
    scores[:, 3] = scores[:, 11] = 9.0
    best = np.full(4, 3)
    answer = an_answer(best, best, scores=scores, dim=1)
    assert isinstance(both_ways(np.full(4, 11), answer)[1], Measured), "a tie goes either way"
    here, there = both_ways(np.full(4, 12), answer)
    assert isinstance(there, Mismatch)
    assert there.kind is Kind.INDEX
    assert there.message == here.message


@settings(max_examples=60, deadline=None)
@given(
    scale=st.sampled_from((0.0, 1e-30, 1e-8, 3e-7, 1e-6, 1e-5, 1e-2)),
    rtol=st.sampled_from((1e-8, 1e-6, 1e-2)),
    odd=st.sampled_from((None, np.nan, np.inf)),
    seed=st.integers(0, 9),
)
def test_both_judge_alike_whatever_the_error(scale, rtol, odd, seed):
    found = (EXACT + scale * normal(6, 40, seed=seed)).astype(np.float32)
    if odd is not None:
        found[seed % 6, seed] = odd
    here, there = both_ways(found, FLOATS, Tolerance(atol=rtol, rtol=rtol))
    assert there == here


def test_a_place_is_told_in_jsons_terms():
    place = Placed(allocation="arena", offset=512, spec=spec_of(EAGER.T))
    assert place.to_message() == {
        "in": "arena", "offset": 512, "dtype": "float32", "shape": [40, 6], "strides": [1, 40],
    }  # fmt: skip
