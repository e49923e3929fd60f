"""The usual mistakes are recognised by their traces."""

import numpy as np
import pytest
from answer_factories import an_answer, as_float32, refused

from kernelsmith.domain.task import Tolerance
from kernelsmith.evaluate.checks.answer import Budget, Mismatch
from kernelsmith.evaluate.checks.output import check_output

EXACT = np.random.default_rng(0).normal(size=(48, 48))
OBLONG = np.random.default_rng(1).normal(size=(32, 100))


def with_tail(values: np.ndarray, fill: float) -> np.ndarray:
    found = values.copy()
    found[:, 96:] = fill
    return found


@pytest.mark.parametrize(
    ("exact", "found", "words"),
    [
        (EXACT, np.zeros_like(EXACT), "every element found is 0"),
        (EXACT, np.full_like(EXACT, 3.0), "every element found is 3"),
        (EXACT, np.full_like(EXACT, np.nan), "nothing was written"),
        (EXACT, EXACT.T, "last two dimensions are swapped"),
        (OBLONG, OBLONG.T.reshape(32, 100), "stored column by column"),
        (EXACT, np.roll(EXACT, 1, axis=0), "shifted by 1 in dimension 0"),
        (EXACT, np.roll(EXACT, -1, axis=1), "shifted by -1 in dimension 1"),
        (EXACT, 0.5 * EXACT, "0.5 times what is expected"),
        (EXACT, -EXACT, "-1 times what is expected"),
        (OBLONG, with_tail(OBLONG, 0.0), "index 96 or more in dimension 1"),
        (OBLONG, with_tail(OBLONG, np.nan), "index 96 or more in dimension 1"),
    ],
)
def test_a_usual_mistake_is_named(exact, found, words):
    assert words in refused(as_float32(found), an_answer(exact)).message


def test_scattered_nans_are_called_unwritten():
    found = EXACT.copy()
    found[5, 7] = found[20, 30] = np.nan
    message = refused(as_float32(found), an_answer(EXACT)).message
    assert "never written" in message
    assert "2 of 2,304" in message


def test_the_answer_to_another_input_is_called_stale():
    earlier = as_float32(np.random.default_rng(5).normal(size=(48, 48)))
    budget = Budget(eager_error=0.0, compute_dtype="float32")
    result = check_output(
        earlier, an_answer(EXACT), budget=budget, tolerance=Tolerance(), others=[earlier]
    )
    assert isinstance(result, Mismatch)
    assert "another input" in result.message


def test_plain_nonsense_gets_no_hint():
    found = as_float32(np.random.default_rng(9).normal(size=(48, 48)))
    assert "hint" not in refused(found, an_answer(EXACT)).message


def test_a_message_is_one_or_two_lines():
    message = refused(as_float32(EXACT.T), an_answer(EXACT)).message
    assert len(message.splitlines()) <= 2
    assert "out at (" in message
    assert "expected" in message
    assert "allowed" in message


def test_values_that_hardly_vary_are_not_called_shifted_or_scaled():
    exact = 1000 + np.random.default_rng(2).normal(size=(48, 48))
    message = refused(as_float32(exact + 0.5), an_answer(exact)).message
    assert "shifted" not in message
    assert "swapped" not in message
    assert "times what" not in message
