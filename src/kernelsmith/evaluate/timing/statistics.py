"""From interleaved samples to a speed-up with an interval that holds (``docs/timing.md``)."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from kernelsmith.domain.timing import Pair, Ratio
from kernelsmith.evaluate.tensors import Float64

OUTLIER_MADS = 5.0
"""A sample is an outlier when its log ratio lies further than this from its pair's median,
in normal-consistent median absolute deviations (1.4826 MAD)."""

OUTLIER_SHARE = 0.2
"""At most this share of a pair is dropped: what happens more often is not an outlier."""

PRIOR_BETWEEN_SD = 0.02
"""How much fresh process pairs are taken to differ, in log ratio, where only one was measured:
0.6 to 3.4 % was seen on an H200 (``shared/anchors/judge-traps.md``)."""

_Z = NormalDist().inv_cdf(0.975)

_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
)  # fmt: skip
"""97.5 % points of Student's t for 1 to 20 degrees of freedom."""


def speedup(
    pairs: Sequence[Pair], *, generator: np.random.Generator, resamples: int = 2000,
    outliers: bool = True,
) -> Ratio:  # fmt: skip
    """Return baseline time over candidate time with its 95 % interval.

    The value is the geometric mean over pairs of each pair's median ratio. The interval
    comes from a hierarchical bootstrap (pairs, then samples inside them), expanded for few
    pairs. The same generator state gives the same interval.
    """
    if not pairs:
        raise ValueError("a speed-up needs at least one pair of samples")
    if resamples < 100:
        raise ValueError(f"a 95 % interval needs at least 100 resamples; got {resamples}")
    logs = [log_ratios(pair) for pair in pairs]
    kept = [keep_usual(each) for each in logs] if outliers else logs
    center = float(np.mean([np.median(logs) for logs in kept]))
    medians = np.stack([_resampled_medians(logs, resamples, generator) for logs in kept])
    below, above = _reach(medians, center, generator)
    return Ratio(
        value=math.exp(center), low=math.exp(center - below), high=math.exp(center + above)
    )


def log_ratios(pair: Pair) -> Float64:
    """Return log(baseline / candidate), sample by sample: both were taken back to back."""
    baseline = np.asarray(pair.baseline_us, dtype=np.float64)
    return np.asarray(np.log(baseline / np.asarray(pair.candidate_us)), dtype=np.float64)


def keep_usual(logs: Float64) -> Float64:
    """Drop outliers of one pair by the stated rule, the furthest first, never over the share."""
    distance = np.abs(logs - np.median(logs))
    limit = OUTLIER_MADS * 1.4826 * float(np.median(distance))
    # A MAD of 0 says that the clock is coarser than the noise, not that the rest are outliers.
    if limit == 0.0:
        return logs
    most = int(OUTLIER_SHARE * logs.size)
    furthest = np.argsort(distance)[logs.size - most :]
    dropped = furthest[distance[furthest] > limit]
    return np.delete(logs, dropped)


def small_sample_factor(pairs: int) -> float:
    """Return by how much a bootstrap percentile interval over ``pairs`` is too narrow.

    Hesterberg's expansion: the bootstrap uses the variance with divisor n, and normal
    quantiles where Student's t is due.
    """
    if pairs < 2:
        raise ValueError("one pair says nothing about how much pairs differ")
    dof = pairs - 1
    # Beyond the table, the first correction term of Cornish and Fisher is good to 0.1 %.
    t = _T[dof - 1] if dof <= len(_T) else _Z + (_Z**3 + _Z) / (4 * dof)
    return t / _Z * math.sqrt(pairs / dof)


def _resampled_medians(logs: Float64, resamples: int, generator: np.random.Generator) -> Float64:
    drawn = np.sort(logs[generator.integers(0, logs.size, (resamples, logs.size))], axis=1)
    middle = logs.size // 2
    upper = drawn[:, middle]
    return upper if logs.size % 2 else (drawn[:, middle - 1] + upper) / 2


def _reach(medians: Float64, center: float, generator: np.random.Generator) -> tuple[float, float]:
    """Return how far the interval reaches below and above the center, in log ratio."""
    pairs, resamples = medians.shape
    if pairs == 1:
        reach = _Z * math.hypot(float(np.std(medians)), PRIOR_BETWEEN_SD)
        return reach, reach
    which = generator.integers(0, pairs, (resamples, pairs))
    draw = generator.integers(0, resamples, (resamples, pairs))
    means = medians[which, draw].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    factor = small_sample_factor(pairs)
    return factor * max(0.0, center - float(low)), factor * max(0.0, float(high) - center)
