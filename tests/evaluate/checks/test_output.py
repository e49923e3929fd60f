"""Whatever is wrong with an output is noticed, located and described."""

import time

import numpy as np
import pytest
from answer_factories import accepted, an_answer, as_float32, as_float64, judged, refused
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Answer, Budget, Kind, Measured, Mismatch
from kernelsmith.evaluate.checks.norm import distance, row_length
from kernelsmith.evaluate.checks.output import check_output, eager_error
from kernelsmith.evaluate.tensors import Tensor

INF, NAN = np.inf, np.nan
FAR = Budget(eager_error=1e9, compute_dtype="float32")
"""A budget that leaves everything to the tolerance."""


def noise(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


def half(values: object) -> Tensor:
    return Tensor("float16", np.asarray(values, dtype=np.float16))


def test_the_reference_is_right_about_itself():
    answer = an_answer(noise(8, 64))
    assert accepted(answer.eager, answer).error == eager_error(answer)


def test_dtype_and_shape_must_match():
    answer = an_answer(noise(8, 64))
    assert refused(as_float64(noise(8, 64)), answer).kind is Kind.DTYPE
    wrong = refused(as_float32(noise(64, 8)), answer)
    assert wrong.kind is Kind.SHAPE
    assert "(8, 64)" in wrong.message
    assert "(64, 8)" in wrong.message


@pytest.mark.parametrize(
    ("shape", "length"),
    [((8, 64), 64), ((8, 15), 120), ((2, 5000), 1024), ((5000,), 1024), ((7,), 7), ((), 1)],
)
def test_rows_are_the_last_dimension_where_it_is_of_a_useful_size(shape, length):
    assert row_length(shape) == length


def test_one_wrong_row_is_not_drowned_by_many_right_ones():
    exact = noise(4096, 64)
    found = exact.copy()
    found[77] *= 1 + 1e-4
    wrong = refused(as_float32(found), an_answer(exact))
    assert wrong.kind is Kind.ERROR
    assert "(77, " in wrong.message


def test_a_nearly_vanishing_row_is_measured_by_the_tensor_not_by_itself():
    exact = noise(64, 64)
    exact[3] = 1e-12
    found = exact.copy()
    found[3] = 3e-9
    accepted(as_float32(found), an_answer(exact))


def test_errors_against_zeros_are_absolute():
    answer = an_answer(np.zeros((4, 32)))
    accepted(as_float32(np.full((4, 32), 1e-7)), answer)
    refused(as_float32(np.full((4, 32), 1e-4)), answer)


def test_a_wrong_element_in_a_ragged_tail_is_found():
    exact = noise(3000)
    found = exact.copy()
    found[2999] += 0.001
    assert "(2999,)" in refused(as_float32(found), an_answer(exact)).message


def test_empty_and_scalar_outputs_are_compared_too():
    accepted(as_float32(np.zeros((0, 5))), an_answer(np.zeros((0, 5))))
    accepted(as_float32(2.0), an_answer(2.0))
    assert "at ()" in refused(as_float32(2.1), an_answer(2.0)).message


def test_strides_do_not_matter():
    exact = noise(64, 32)
    transposed = Tensor("float32", np.asfortranarray(exact.astype(np.float32)))
    accepted(transposed, an_answer(exact))


@pytest.mark.parametrize("place", [NAN, INF, -INF])
def test_non_finite_values_must_be_where_the_reference_has_them(place):
    exact = noise(8, 64)
    exact[2, 3] = place
    answer = an_answer(exact)
    accepted(as_float32(exact), answer)
    for other in (0.0, NAN, INF, -INF):
        if other == place or (np.isnan(other) and np.isnan(place)):
            continue
        found = exact.copy()
        found[2, 3] = other
        wrong = refused(as_float32(found), answer)
        assert wrong.kind is Kind.NONFINITE
        assert "at (2, 3)" in wrong.message


def test_an_infinity_does_not_hide_errors_beside_it():
    exact = noise(8, 64)
    exact[2, 3] = INF
    found = exact.copy()
    found[2, 4] += 0.005
    assert refused(as_float32(found), an_answer(exact)).kind is Kind.ERROR


def test_where_eager_overflows_its_infinity_is_right_and_a_clamped_value_is_not():
    exact = noise(8, 64)
    exact[0, 0] = 1e6
    eager = exact.copy()
    eager[0, 0] = INF
    answer = an_answer(exact, eager=half(eager))
    accepted(half(eager), answer, compute="float16")
    eager[0, 0] = 65504
    refused(half(eager), answer, compute="float16")


def test_an_infinity_is_right_beside_the_largest_number():
    exact = noise(8, 64)
    exact[0, 0] = 65490
    found = exact.copy()
    found[0, 0] = INF
    accepted(half(found), an_answer(exact, eager=half(exact)), compute="float16")


def test_a_wide_budget_does_not_make_infinity_right():
    exact = noise(8, 64)
    found = exact.copy()
    found[0, 0] = np.copysign(INF, exact[0, 0])
    result = check_output(as_float32(found), an_answer(exact), budget=FAR, tolerance=Tolerance())
    assert isinstance(result, Mismatch)
    assert result.kind is Kind.NONFINITE


def test_where_only_float64_is_nan_a_finite_answer_like_eagers_is_right():
    exact, eager = noise(8, 64), noise(8, 64)
    exact[1, 1] = NAN
    answer = an_answer(exact, eager=as_float32(eager))
    accepted(as_float32(eager), answer)
    accepted(as_float32(exact), answer)
    eager[1, 1] += 5
    assert refused(as_float32(eager), answer).kind is Kind.TOLERANCE


def test_the_tolerance_holds_for_every_element_besides_the_budget():
    exact = np.ones((4, 64))
    found = exact.copy()
    found[3, 60] = 1.03
    result = check_output(as_float32(found), an_answer(exact), budget=FAR, tolerance=Tolerance())
    assert isinstance(result, Mismatch)
    assert result.kind is Kind.TOLERANCE
    assert "at (3, 60)" in result.message
    assert "1 of 256" in result.message


def test_a_tolerance_that_eager_breaks_binds_at_twice_eagers_own_excess():
    exact = np.ones((4, 64))
    eager = exact.copy()
    eager[0, 0] = 1.1
    answer = an_answer(exact, eager=as_float32(eager))
    for off, expected in ((0.15, Measured), (0.25, Mismatch)):
        found = exact.copy()
        found[1, 1] += off
        result = check_output(as_float32(found), answer, budget=FAR, tolerance=Tolerance())
        assert isinstance(result, expected)


def test_the_budget_is_the_larger_of_eager_and_floor():
    assert Budget(eager_error=1e-6, compute_dtype="float32").allowed == pytest.approx(1e-5)
    assert Budget(eager_error=0.0, compute_dtype="float32").allowed == 8 * 2.0**-23
    assert Budget(eager_error=0.0, compute_dtype="bfloat16").allowed == 8 * 2.0**-7
    with pytest.raises(ValueError, match="int64"):
        Budget(eager_error=0.0, compute_dtype="int64")
    with pytest.raises(ValueError, match="finite"):
        Budget(eager_error=NAN, compute_dtype="float32")


def test_scores_without_a_dimension_are_refused():
    ints = Tensor("int64", np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="go together"):
        Answer(path="out", exact=ints, eager=ints, scores=np.zeros(3))


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 3000), st.integers(1, 40), st.integers(0, 2**32))
def test_blocks_and_the_formula_written_plainly_agree(rows, columns, seed):
    exact = noise(rows, columns, seed=seed)
    found = exact + 1e-3 * noise(rows, columns, seed=seed + 1)
    length = row_length(exact.shape)
    errors = []
    for start in range(0, exact.size, length):
        want = exact.reshape(-1)[start : start + length]
        apart = np.linalg.norm(found.reshape(-1)[start : start + length] - want)
        scale = np.sqrt(np.square(exact).mean() * want.size)
        errors.append(apart / max(np.linalg.norm(want), scale))
    tensor = as_float64(exact)
    assert distance(as_float64(found), tensor, tensor).error == pytest.approx(max(errors))


def test_sixteen_million_elements_take_well_under_a_second():
    exact = np.tile(noise(64, 4096), (64, 1))
    found, answer = as_float32(exact), an_answer(exact)
    start = time.perf_counter()
    assert isinstance(judged(found, answer), Measured)
    assert time.perf_counter() - start < 1.5
