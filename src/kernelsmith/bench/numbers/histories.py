"""How searches went, step by step: one row a recorded search, ready for drawing tasks and seeds.

A search that ended early is carried on at its best: it found nothing more because it did not look.
Speed-ups are as the search timed them, over eager; the best of many noisy ones is a little too
good, which is why winners are judged again and tables use that.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from kernelsmith.bench.numbers.metrics import by_task
from kernelsmith.bench.numbers.resampling import Draws, Floats
from kernelsmith.bench.numbers.statistics import Estimate, interval, wilson
from kernelsmith.bench.record import Record
from kernelsmith.domain.evaluation import Verdict

_ROUNDING = 1e-9
NOT_BELOW_0 = (0.0, math.inf)
"""Bounds of what only adds up: a price, or a logarithm where eager is kept until beaten."""


@dataclass(frozen=True, slots=True)
class Histories:
    """Searches of one system, each as long as the longest."""

    records: tuple[Record, ...]
    task: NDArray[np.int64]
    """Which task each row is of, counted from 0."""
    kept: Floats
    """Search by step: logarithm of the best speed-up so far; 0 while nothing beats eager."""
    correct: Floats
    """Search by step: 1 once something passed."""
    taken: NDArray[np.int64]
    """Steps that each search took."""

    @classmethod
    def of(cls, records: Sequence[Record]) -> "Histories | None":
        """Arrange the searches among some records; none where there are none."""
        rows = [
            (index, record)
            for index, own in enumerate(by_task(r for r in records if r.points).values())
            for record in own
        ]
        if not rows:
            return None
        horizon = max(record.steps for _, record in rows)
        return cls(
            records=tuple(record for _, record in rows),
            task=np.asarray([index for index, _ in rows], dtype=np.int64),
            kept=np.asarray([_kept(record, horizon) for _, record in rows]),
            correct=np.asarray([_correct(record, horizon) for _, record in rows]),
            taken=np.asarray([record.steps for _, record in rows], dtype=np.int64),
        )

    @property
    def horizon(self) -> int:
        """Steps of the longest search."""
        return int(self.kept.shape[1])

    @property
    def tasks(self) -> int:
        """How many tasks were searched."""
        return int(self.task.max()) + 1

    @property
    def weights(self) -> Floats:
        """What each row weighs: tasks alike, seeds of one task alike."""
        counts = np.bincount(self.task)
        found: Floats = 1.0 / counts[self.task] / self.tasks
        return found

    def spent(self, what: str) -> Floats | None:
        """Search by step: tokens, dollars or seconds so far; none where no step was counted.

        A search that ended early spends nothing more. A step that nobody counted adds nothing; how
        many there were is ``uncounted``.
        """
        if self.uncounted(what) == int(self.taken.sum()):
            return None
        rows = []
        for record in self.records:
            values = [getattr(point, what) for point in record.searched]
            padded = np.zeros(self.horizon)
            padded[: len(values)] = [0.0 if value is None else value for value in values]
            rows.append(np.cumsum(padded))
        return np.asarray(rows)

    def uncounted(self, what: str) -> int:
        """Steps of which nobody knows what they took: an endpoint that did not answer, say."""
        values = [getattr(point, what) for each in self.records for point in each.searched]
        return sum(value is None for value in values)

    def drawn_weights(self, generator: np.random.Generator, resamples: int) -> Floats:
        """Resample by row: what each weighs when tasks, and seeds inside them, are drawn again."""
        # rows stand task by task, as draws have them
        seeds = np.bincount(self.task).astype(np.int64)
        return Draws.of(seeds, generator, resamples=resamples).weights


def over_tasks(
    histories: Histories, values: Floats, drawn: Floats, *,
    scale: Callable[[float], float] = float, is_rate: bool = False,
    bounds: tuple[float, float] | None = None,
) -> list[Estimate]:  # fmt: skip
    """The mean over tasks of each column of ``values`` (search by column), with intervals.

    ``bounds`` are the ends that a mean cannot leave, on the scale of values; a rate has its own.
    """
    every = drawn @ values
    found = []
    for index, center in enumerate((histories.weights @ values).tolist()):
        if is_rate and histories.tasks > 1 and min(center, 1 - center) < _ROUNDING:
            # where all tasks agree, resampling sees no spread
            low, high = wilson(round(center), histories.tasks)
            found.append(
                Estimate(value=float(round(center)), low=low, high=high, tasks=histories.tasks)
            )
        else:
            ends = (0.0, 1.0) if is_rate else bounds
            found.append(_estimate(center, every[:, index], histories.tasks, scale, ends))
    return found


def kept_over_tasks(histories: Histories, logs: Floats, drawn: Floats) -> list[Estimate]:
    """Geometric means over tasks of speed-ups, or of gains, by someone who keeps what is better."""
    return over_tasks(histories, logs, drawn, scale=math.exp, bounds=NOT_BELOW_0)


def ratio_of_means(
    histories: Histories, above: Floats, below: Floats, drawn: Floats, *,
    bounds: tuple[float, float] | None = None,
) -> Estimate | None:  # fmt: skip
    """One mean over another, with an interval; none where the lower one is 0."""
    bottom = float(histories.weights @ below)
    if bottom <= 0:
        return None
    center = float(histories.weights @ above) / bottom
    under = drawn @ below
    every = np.where(under > 0, (drawn @ above) / np.where(under > 0, under, 1.0), np.nan)
    return _estimate(center, every, histories.tasks, float, bounds)


def _estimate(
    center: float, every: Floats, tasks: int, scale: Callable[[float], float],
    bounds: tuple[float, float] | None,
) -> Estimate:  # fmt: skip
    if bounds is not None:  # sums of weights are off by a rounding
        center = min(max(center, bounds[0]), bounds[1])
    if tasks < 2:
        return Estimate(value=scale(center), tasks=tasks)
    low, high = interval(every, center, tasks)
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return Estimate(value=scale(center), low=scale(low), high=scale(high), tasks=tasks)


def _kept(record: Record, horizon: int) -> list[float]:
    found = [
        0.0 if ratio is None else max(0.0, math.log(ratio.value)) for ratio in record.best_by_step()
    ]
    # what search calls the best is by its score, which may prefer a surer kernel to a faster one:
    # a user has the better of both, so the line never falls
    best = list(accumulate(found, max))
    return best + [best[-1]] * (horizon - len(best))


def _correct(record: Record, horizon: int) -> list[float]:
    found, seen = [], 0.0
    for point in record.searched:
        seen = max(seen, float(point.verdict is Verdict.PASSED))
        found.append(seen)
    return found + [seen] * (horizon - len(found))
