"""A random reference is recognised, and another distribution is told from its own."""

import numpy as np
import pytest
from answer_factories import as_float32

from kernelsmith.evaluate.checks.answer import Budget
from kernelsmith.evaluate.checks.randomness import (
    alarm_threshold,
    runs_needed,
    same_within,
    worst_z,
)
from kernelsmith.evaluate.tensors import Tensor

N = 500
RUNS = runs_needed(N)
BUDGET = Budget(eager_error=0.0, compute_dtype="float32")
WEIGHTS = np.random.default_rng(0).normal(size=N)


def dropout(seed: int, *, p: float = 0.5, runs: int = RUNS) -> np.ndarray:
    kept = np.random.default_rng(seed).random((runs, N)) >= p
    return kept * WEIGHTS / (1 - p)


def test_rounding_is_not_randomness_and_randomness_is_not_rounding():
    first = as_float32(WEIGHTS)
    assert same_within(first, as_float32(WEIGHTS * (1 + 1e-7)), BUDGET)
    assert not same_within(first, as_float32(dropout(1)[0]), BUDGET)


def test_random_integers_are_random():
    ints = Tensor("int64", np.arange(5))
    assert same_within(ints, Tensor("int64", np.arange(5)), BUDGET)
    assert not same_within(ints, Tensor("int64", np.arange(5)[::-1]), BUDGET)


@pytest.mark.parametrize("p", [0.01, 0.5, 0.9])
def test_the_same_distribution_raises_no_alarm(p):
    worst = max(worst_z(dropout(2 * i, p=p), dropout(2 * i + 1, p=p)) for i in range(20))
    assert worst < 0.9 * alarm_threshold(N)


def test_heavy_tails_raise_no_alarm():
    draws = np.random.default_rng(3).standard_cauchy((2, RUNS, N))
    assert worst_z(draws[0], draws[1]) < alarm_threshold(N)


def shared_mask(seed: int) -> np.ndarray:
    kept = np.random.default_rng(seed).random((RUNS, 1)) >= 0.5
    return kept * WEIGHTS / 0.5


@pytest.mark.parametrize(
    "candidate",
    [
        np.tile(WEIGHTS, (RUNS, 1)),
        np.zeros((RUNS, N)),
        np.tile(dropout(9)[:1], (RUNS, 1)),
        dropout(9) * 0.5,
        dropout(9, p=0.4),
        shared_mask(9),
    ],
    ids=["nothing dropped", "zeros", "one draw repeated", "not rescaled", "other p", "one mask"],
)
def test_another_distribution_raises_the_alarm(candidate):
    assert worst_z(dropout(8), candidate) > alarm_threshold(N)


def test_sides_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="same"):
        worst_z(dropout(0), dropout(1)[:5])
