"""Telling a random reference from a fixed one, and two sources of randomness from each other."""

import math

import numpy as np

from kernelsmith.evaluate.checks.answer import Budget
from kernelsmith.evaluate.checks.norm import distance
from kernelsmith.evaluate.tensors import Float64, Tensor

FALSE_ALARM = 1e-6
"""How often an honest candidate may be refused, per evaluation."""

_STATISTICS = 3
"""Mean, variance and covariance with the next element."""


def same_within(first: Tensor, second: Tensor, budget: Budget) -> bool:
    """Whether two runs of one module on the same input agree but for rounding.

    Run under two seeds, a reference that does not agree with itself is random.
    """
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if not first.is_float:
        return bool(np.array_equal(first.values, second.values))
    apart = distance(second, first, first)
    return apart.strangers == 0 and apart.error <= budget.allowed


def alarm_threshold(elements: int) -> float:
    """Return the ``worst_z`` above which two sources differ.

    Hoeffding's bound, with Bonferroni over all elements, their sum, and all statistics: it
    holds for any distribution, so that dropout and heavy tails raise no false alarm.
    """
    tests = _STATISTICS * (elements + 1)
    return math.sqrt(2 * math.log(2 * tests / FALSE_ALARM))


def runs_needed(elements: int) -> int:
    """Return how many runs of each side can raise an alarm with room to spare.

    Over r runs no statistic exceeds the square root of r; twice the bare minimum leaves half
    of the runs free to look innocent.
    """
    return math.ceil(2 * alarm_threshold(elements) ** 2)


def worst_z(reference_samples: Float64, candidate_samples: Float64) -> float:
    """Return the largest standardised difference between two sets of runs, ``[runs, n]`` each.

    Run j of one side is paired with run j of the other. If both draw from one distribution,
    swapping the two changes nothing, so the sum of their differences over the root of the sum
    of squares has a sub-Gaussian tail whatever that distribution is. What is compared, element
    by element and summed over all elements: mean, variance, covariance with the neighbour.
    """
    if reference_samples.shape != candidate_samples.shape or reference_samples.ndim != 2:
        raise ValueError(
            f"both sides need the same [runs, n]; got {reference_samples.shape} "
            f"and {candidate_samples.shape}"
        )
    both = np.stack([reference_samples, candidate_samples]).astype(np.float64)
    if not np.isfinite(both).all():
        raise ValueError("random outputs are compared where they are finite; mask them first")
    # Everything used to center and scale is symmetric in the two sides: the argument holds.
    mean = both.mean(axis=(0, 1))
    deviation = both - mean
    spread = np.sqrt(np.square(deviation).mean(axis=(0, 1)))
    unit = deviation / np.where(spread > 0, spread, 1.0)
    signs = np.where(mean < 0, -1.0, 1.0)
    statistics = (unit * signs, np.square(unit), unit * np.roll(unit, 1, axis=2))
    return max(_worst(each) for each in statistics)


def _worst(values: Float64) -> float:
    """Return the largest |z| over elements and over their sum; values are [2, runs, n]."""
    apart = values[0] - values[1]
    apart = np.concatenate([apart, apart.sum(axis=1, keepdims=True)], axis=1)
    size = np.sqrt(np.square(apart).sum(axis=0))
    return float((np.abs(apart.sum(axis=0)) / np.where(size > 0, size, 1.0)).max())
