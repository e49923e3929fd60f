"""What decides whether a kernel is right, the kind of task or who wrote it: explained deviance.

KernelBench-X's analysis: a logistic model of passed or not by category and by system, and the share
of the deviance that each takes away. More groups explain more by chance alone (fifteen categories
against five systems), so each share stands beside what shuffled labels explain.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelsmith.bench.numbers.resampling import Floats

Groups = NDArray[np.int64]

_ROUNDS = 60
_SETTLED = 1e-9
_EDGE = 30.0
"""Log odds beyond which a fitted rate is 0 or 1 for all purposes; separated groups run there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """How much one factor explains, alone and beside the other."""

    name: str
    groups: int
    alone: float
    """Share of the null deviance that the factor takes away by itself."""
    beside: float
    """Share that it takes away once the other factor is in the model."""
    by_chance: float
    """What shuffled labels explain alone, on average."""
    adjusted: float
    """``alone`` with chance taken off: 0 is what shuffling gives, 1 explains everything."""
    p: float
    """How often shuffled labels explain as much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One analysis: two factors, and what both explain together."""

    records: int
    passed: int
    factors: tuple[Factor, ...]
    both: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One record as the analysis sees it."""

    task: str
    category: str
    system: str
    passed: bool


def explained(
    trials: Sequence[Trial], *, generator: np.random.Generator, shuffles: int = 200
) -> Explained | None:
    """Return the shares; none where everything passed, nothing did, or there is one of a kind.

    Labels are shuffled as they were given: a category belongs to a task with all its records, a
    system is shuffled among the records of one task.
    """
    y = np.asarray([trial.passed for trial in trials], dtype=np.float64)
    categories, systems = _coded([t.category for t in trials]), _coded([t.system for t in trials])
    tasks = _coded([t.task for t in trials])
    if y.size == 0 or y.min() == y.max() or min(_count(categories), _count(systems)) < 2:
        return None
    null = _group_deviance(y, np.zeros_like(categories))
    both = _additive_deviance(y, categories, systems)
    of_task = np.zeros(_count(tasks), dtype=np.int64)
    of_task[tasks] = categories

    def as_categories() -> Groups:
        shuffled: Groups = generator.permutation(of_task)[tasks]
        return shuffled

    def as_systems() -> Groups:
        # sorted by task with a random second key: a shuffle inside every task at once
        order = np.lexsort((generator.random(y.size), tasks))
        shuffled = np.empty_like(systems)
        shuffled[np.argsort(tasks, kind="stable")] = systems[order]
        return shuffled

    factors = []
    for name, own, other, shuffle in (
        ("category", categories, systems, as_categories),
        ("system", systems, categories, as_systems),
    ):
        alone = 1 - _group_deviance(y, own) / null
        drawn = np.asarray([1 - _group_deviance(y, shuffle()) / null for _ in range(shuffles)])
        chance = float(drawn.mean())
        factors.append(
            Factor(
                name=name, groups=_count(own), alone=alone,
                beside=max(0.0, (_group_deviance(y, other) - both) / null),
                by_chance=chance, adjusted=(alone - chance) / (1 - chance),
                p=(int((drawn >= alone - 1e-12).sum()) + 1) / (shuffles + 1),
            )
        )  # fmt: skip
    return Explained(
        records=int(y.size), passed=int(y.sum()), factors=tuple(factors), both=1 - both / null
    )


def _coded(names: Sequence[str]) -> Groups:
    _, inverse = np.unique(np.asarray(names, dtype=np.str_), return_inverse=True)
    return inverse.astype(np.int64)


def _count(groups: Groups) -> int:
    return int(groups.max()) + 1 if groups.size else 0


def _group_deviance(y: Floats, groups: Groups) -> float:
    """The deviance of one factor: its fitted rates are the groups' own."""
    counts = np.bincount(groups).astype(np.float64)
    rates = np.bincount(groups, weights=y) / np.maximum(counts, 1)
    return _deviance(y, rates[groups])


def _additive_deviance(y: Floats, first: Groups, second: Groups) -> float:
    """The deviance of both factors in one logistic model, by iterated weighted least squares."""
    design = np.concatenate([_indicators(first), _indicators(second)[:, 1:]], axis=1)
    eta = np.zeros(y.size)
    last = np.inf
    for _ in range(_ROUNDS):
        rate = 1 / (1 + np.exp(-eta))
        weight = np.maximum(rate * (1 - rate), 1e-12)
        target = eta + (y - rate) / weight
        root = np.sqrt(weight)
        found, *_ = np.linalg.lstsq(design * root[:, None], target * root, rcond=None)
        eta = np.clip(design @ found, -_EDGE, _EDGE)
        now = _deviance(y, 1 / (1 + np.exp(-eta)))
        if abs(last - now) < _SETTLED * (1 + now):
            break
        last = now
    return now


def _indicators(groups: Groups) -> Floats:
    found: Floats = (groups[:, None] == np.arange(_count(groups))).astype(np.float64)
    return found


def _deviance(y: Floats, rates: Floats) -> float:
    inside = np.clip(rates, 1e-15, 1 - 1e-15)
    return float(-2 * np.where(y > 0, np.log(inside), np.log1p(-inside)).sum())
