"""Scores by task and seed, and drawing them again: tasks first, then seeds inside the drawn ones.

One set of draws serves every metric of a table. A mean of scores that are all there is a product of
two matrices; everything else is gathered task by task.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

Combine = Callable[[Floats], Floats]
"""From one value per task (last axis, NaN: this task says nothing) to one per row."""

RESAMPLES = 2000
_SEED_DRAWS = 256
"""Draws of seeds kept per task; each time a task is drawn it gets one of them."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Scores of one system: a row a task, a column a seed, NaN where there is nothing."""

    values: Floats
    """Task by seed. Present values stand first in a row."""
    seeds: Counts
    """How many seeds were run per task, whatever came of them."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> "Grid":
        """Arrange scores task by task; NaN is a seed that was run and says nothing."""
        if not rows or any(len(row) == 0 for row in rows):
            raise ValueError("a grid holds tasks with at least one seed each")
        counts = np.asarray([len(row) for row in rows], dtype=np.int64)
        values = np.full((len(rows), int(counts.max())), np.nan)
        for index, row in enumerate(rows):
            values[index, : len(row)] = row
        if np.isinf(values).any():
            raise ValueError("a score is a number; an infinite one would swallow the others")
        return cls(values, counts)

    @property
    def per_task(self) -> Floats:
        """The mean over each task's seeds; NaN for a task that says nothing."""
        return means(self.values)

    @property
    def flat(self) -> Floats:
        """Every score that was run, task by task."""
        found: Floats = self.values[np.arange(self.values.shape[1]) < self.seeds[:, np.newaxis]]
        return found


@dataclass(frozen=True)
class Draws:
    """Tasks drawn with replacement, and for each drawn task its seeds."""

    seeds: Counts
    """Seeds per task."""
    tasks: Counts
    """Resample by place: which task stands there."""
    columns: Counts
    """Resample by place: which draw of that task's seeds."""
    picks: Counts
    """Task by draw by place: which seed; places beyond a task's own number are not used."""

    @classmethod
    def of(
        cls, seeds: Counts, generator: np.random.Generator, *, resamples: int = RESAMPLES,
        strata: Sequence[int] | None = None, like: "Draws | None" = None,
    ) -> "Draws":  # fmt: skip
        """Draw ``resamples`` times; inside strata if there are; the same tasks as ``like``."""
        tasks = draw_tasks(len(seeds), generator, resamples, strata) if like is None else like.tasks
        most = int(seeds.max())
        draws = _SEED_DRAWS if most > 1 else 1
        counts = seeds[:, np.newaxis, np.newaxis]
        picks = (generator.random((len(seeds), draws, most)) * counts).astype(np.int64)
        return cls(seeds, tasks, generator.integers(0, draws, tasks.shape), picks)

    def per_task(self, grid: Grid) -> Floats:
        """Resample by place: the mean over the drawn seeds of the drawn task."""
        rows = np.arange(len(self.seeds))[:, np.newaxis, np.newaxis]
        table = means(np.where(self._used, grid.values[rows, self.picks], np.nan))
        found: Floats = table[self.tasks, self.columns]
        return found

    @cached_property
    def weights(self) -> Floats:
        """Resample by record (task by task): what each record weighs in a mean over tasks."""
        resamples, tasks = self.tasks.shape
        first = np.cumsum(self.seeds) - self.seeds
        total = int(self.seeds.sum())
        row = np.arange(resamples)[:, np.newaxis] * total
        share = 1.0 / self.seeds[self.tasks] / tasks
        found = np.zeros(resamples * total)
        for place in range(self.picks.shape[2]):
            record = first[self.tasks] + self.picks[self.tasks, self.columns, place]
            used = share * (place < self.seeds[self.tasks])
            found += np.bincount((row + record).ravel(), used.ravel(), resamples * total)
        return found.reshape(resamples, total)

    def means(self, grid: Grid) -> Floats:
        """The mean over tasks, once for each resample."""
        flat = grid.flat
        if np.isnan(flat).any():
            return means(self.per_task(grid))
        found: Floats = self.weights @ flat
        return found

    @property
    def _used(self) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = (
            np.arange(self.picks.shape[2]) < self.seeds[:, np.newaxis, np.newaxis]
        )
        return found


def draw_tasks(
    tasks: int, generator: np.random.Generator, resamples: int,
    strata: Sequence[int] | None = None,
) -> Counts:  # fmt: skip
    """Which tasks stand in each resample, with replacement; inside their stratum if there are."""
    if strata is None:
        return generator.integers(0, tasks, (resamples, tasks))
    which = np.asarray(strata)
    drawn = np.empty((resamples, tasks), dtype=np.int64)
    for name in np.unique(which):
        own = np.flatnonzero(which == name)
        drawn[:, own] = own[generator.integers(0, own.size, (resamples, own.size))]
    return drawn


def means(values: Floats) -> Floats:
    """Mean over the last axis without NaN; NaN, quietly, where nothing is left."""
    present = ~np.isnan(values)
    counts = present.sum(axis=-1)
    sums = np.where(present, values, 0.0).sum(axis=-1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
