"""Estimates with intervals over tasks and seeds: what a benchmark's figures rest on.

Tasks are what a suite samples, seeds are repeats inside a task: so tasks are drawn first and then
seeds inside the drawn ones, and a task with more seeds does not weigh more (``docs/metrics.md``).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from kernelsmith.bench.numbers.resampling import Combine, Draws, Floats, Grid, means
from kernelsmith.evaluate.timing.statistics import small_sample_factor

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure over tasks, with a 95 % interval where there are enough of them."""

    value: float
    low: float | None = None
    high: float | None = None
    """Both ends or none: one task says nothing about how much tasks differ."""
    tasks: int
    """How many tasks it rests on."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.tasks < 1:
            raise ValueError(f"an estimate is a number that rests on tasks; got {self}")
        if (self.low is None) is not (self.high is None):
            raise ValueError(f"an interval has two ends; got {self}")
        if self.low is not None and self.high is not None:
            span = 1e-9 * max(1.0, abs(self.value))
            if not self.low - span <= self.value <= self.high + span:
                raise ValueError(f"an estimate lies inside its interval; got {self}")


def mean(values: Floats) -> Floats:
    """Mean over the tasks that say something."""
    return means(values)


def quantile(share: float) -> Combine:
    """The value below which ``share`` of the tasks lie."""

    def combine(values: Floats) -> Floats:
        # sorting puts NaN last; np.nanquantile goes row by row and is a hundred times slower
        ranked = np.sort(values, axis=-1)
        counts = np.count_nonzero(~np.isnan(values), axis=-1)
        at = share * np.maximum(counts - 1, 0)
        below = np.floor(at).astype(np.int64)
        above = np.minimum(below + 1, np.maximum(counts - 1, 0))
        low, high = (
            np.take_along_axis(ranked, index[..., np.newaxis], axis=-1)[..., 0]
            for index in (below, above)
        )
        found: Floats = low + (at - below) * (high - low)
        return found

    return combine


def stratified(groups: Sequence[int]) -> Combine:
    """The unweighted mean of the groups' means, as the paper averages levels."""
    which = np.asarray(groups)
    names = np.unique(which)

    def combine(values: Floats) -> Floats:
        parts = [means(values[..., which == name]) for name in names]
        return means(np.stack(parts, axis=-1))

    return combine


def estimate(
    grid: Grid, combine: Combine, draws: Draws, *, bounds: tuple[float, float] | None = None,
    scale: Callable[[float], float] = float,
) -> Estimate | None:  # fmt: skip
    """Return a figure with its interval; none where no task says anything.

    Percentile bootstrap over tasks, then seeds, expanded for few tasks. ``bounds`` are the ends
    that a figure cannot leave; where all tasks agree at one end of a rate, resampling sees no
    spread and Wilson's interval stands in. ``scale`` is applied last (``math.exp`` after means of
    logarithms).
    """
    per_task = grid.per_task
    held = int(np.count_nonzero(~np.isnan(per_task)))
    if held == 0:
        return None
    center = float(combine(per_task[np.newaxis])[0])
    if held == 1:
        return Estimate(value=scale(center), tasks=1)
    if bounds is not None and math.isfinite(bounds[1]) and center in bounds:
        low, high = wilson(center, held, bounds)
    else:
        drawn = draws.means(grid) if combine is mean else combine(draws.per_task(grid))
        low, high = interval(drawn, center, held)
        if bounds is not None:
            low, high = max(low, bounds[0]), min(high, bounds[1])
    return Estimate(value=scale(center), low=scale(low), high=scale(high), tasks=held)


def interval(drawn: Floats, center: float, tasks: int) -> tuple[float, float]:
    """The middle 95 % of what was drawn, pulled apart around the centre for few tasks."""
    drawn = drawn[~np.isnan(drawn)]
    if drawn.size == 0:
        return center, center
    low, high = (float(each) for each in np.quantile(drawn, (0.025, 0.975)))
    factor = small_sample_factor(tasks)
    return center - factor * max(0.0, center - low), center + factor * max(0.0, high - center)


def wilson(
    share: float, tasks: int, bounds: tuple[float, float] = (0.0, 1.0)
) -> tuple[float, float]:
    """Wilson's interval of a rate between ``bounds``, by the number of tasks.

    Holds for means of rates inside tasks too: they spread less than yes and no do.
    """
    low, high = bounds
    rate = (share - low) / (high - low)
    squared = _Z**2
    middle = (rate + squared / (2 * tasks)) / (1 + squared / tasks)
    reach = (
        _Z / (1 + squared / tasks)
        * math.sqrt(rate * (1 - rate) / tasks + squared / (4 * tasks**2))
    )  # fmt: skip
    ends = max(0.0, middle - reach), min(1.0, middle + reach)
    # rounding must not move the end at which every task stands
    ends = (0.0 if rate == 0 else ends[0], 1.0 if rate == 1 else ends[1])
    return low + ends[0] * (high - low), low + ends[1] * (high - low)
