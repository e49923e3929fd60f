"""Whom to improve next, and what to show beside it: evolution, and the controls it must beat.

All policies keep the same archive and are told the same; they differ in what a brief holds.

``evolve``     parents from top, diverse and little used regions, beside top and diverse ones
``best-of-n``  every candidate from the reference alone; the budget's independent samples
``refine``     one chain: the parent is the last that was as good as the best, with none beside it
``greedy``     the parent is the best of the run, beside the next best
``random``     the parent is any that passed, each as likely, and so are the inspirations

While nothing has passed, all but ``best-of-n`` mend: the parent is one of the failures that came
furthest. In ``evolve`` and in mending, a parent is the less likely the more children it has, by
1 / (1 + children), those in flight included.
"""

import math
import operator
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.trajectory import Exemplar, Role
from kernelsmith.search.archive import Archive, Elite
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.descriptors import Cell
from kernelsmith.search.draw import Draw
from kernelsmith.search.islands import source_of

PURSUIT = 0.8
"""Share of an island's asks that improve on its best as long as that has few children."""
LEADERS = 4
"""Among how many of an island's best the parent is drawn, by 1 / (1 + rank)^2."""
SHARPNESS = 3.0
"""How much the better of a few drawn elites are preferred."""
TRIES = 6
"""Elites looked at for one that is drawn: an ask costs the same however many there are."""


class Told(Protocol):
    """What a policy may look at."""

    @property
    def config(self) -> SearchConfig:
        """The mix and the counts."""
        ...

    @property
    def islands(self) -> Sequence[Archive]:
        """The archives."""
        ...

    @property
    def champion(self) -> Elite | None:
        """The best of the run."""
        ...

    @property
    def head(self) -> Elite | None:
        """The last that passed and was not worse than the best beyond noise."""
        ...

    @property
    def passed(self) -> Sequence[Elite]:
        """All that passed; kept for policies that ask for it only."""
        ...

    @property
    def promising(self) -> Sequence[Exemplar]:
        """Failures that came furthest, best first; empty as soon as anything has passed."""
        ...

    def children(self, id: CandidateId) -> int:
        """How often it was a parent, briefs in flight included."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The part of a brief that a policy decides."""

    parent: Exemplar | None = None
    inspirations: tuple[Exemplar, ...] = ()
    shows_failures: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One way to search."""

    choose: Callable[[Told, int, Draw], Choice]
    has_islands: bool = False
    keeps_all: bool = False
    """Whether it needs all that passed, which costs memory."""


def evolve(told: Told, island: int, draw: Draw) -> Choice:
    """Draw the parent by the stated mix, then inspirations around it."""
    archive = source_of(told.islands, island)
    if archive is None:
        return Choice(parent=_to_mend(told, draw))
    parent = _parent(told, archive, draw)
    return Choice(
        parent=parent.as_exemplar(Role.PARENT),
        inspirations=_inspirations(archive, parent, draw, count=told.config.inspirations),
    )


def best_of_n(told: Told, island: int, draw: Draw) -> Choice:
    """Start from the reference, knowing nothing of the others."""
    return Choice(shows_failures=False)


def refine(told: Told, island: int, draw: Draw) -> Choice:
    """Go on with the one chain there is."""
    if told.head is None:
        return Choice(parent=told.promising[0] if told.promising else None)
    return Choice(parent=told.head.as_exemplar(Role.PARENT))


def greedy(told: Told, island: int, draw: Draw) -> Choice:
    """Improve the best, beside the next best."""
    best = told.champion
    if best is None:
        return Choice(parent=_to_mend(told, draw))
    others = [each for each in told.islands[0].top if each.id != best.id]
    beside = others[: told.config.inspirations]
    return Choice(
        parent=best.as_exemplar(Role.PARENT),
        inspirations=tuple(each.as_exemplar(Role.TOP) for each in beside),
    )


def at_random(told: Told, island: int, draw: Draw) -> Choice:
    """Improve any that passed, beside any others."""
    if not told.passed:
        return Choice(parent=_to_mend(told, draw))
    parent = draw.one(told.passed)
    beside: dict[CandidateId, Elite] = {}
    for _ in range(told.config.inspirations):
        other = draw.one(told.passed)
        if other.id != parent.id:
            beside[other.id] = other
    ordered = sorted(beside.values(), key=lambda each: -each.score)
    return Choice(
        parent=parent.as_exemplar(Role.PARENT),
        inspirations=tuple(each.as_exemplar(Role.DIVERSE) for each in ordered),
    )


POLICIES = {
    "evolve": Policy(choose=evolve, has_islands=True),
    "best-of-n": Policy(choose=best_of_n),
    "refine": Policy(choose=refine),
    "greedy": Policy(choose=greedy),
    "random": Policy(choose=at_random, keeps_all=True),
}


def _parent(told: Told, archive: Archive, draw: Draw) -> Elite:
    config, leaders = told.config, archive.top[:LEADERS]
    if told.children(leaders[0].id) < config.pursue and draw.share() < PURSUIT:
        return leaders[0]
    mark = draw.share()
    if mark < config.exploit:
        weights = [_damped(told, each) / (1 + rank) ** 2 for rank, each in enumerate(leaders)]
        return draw.weighted(leaders, weights)
    if mark < config.exploit + config.explore:
        anywhere = [each for each in told.islands if len(each)]
        seen = [_one(draw.one(anywhere), draw) for _ in range(TRIES)]
        return min(seen, key=lambda each: told.children(each.id))
    seen = [_one(archive, draw) for _ in range(TRIES)]
    preferences = _preferences([each.score for each in seen])
    weights = [_damped(told, each) * by for each, by in zip(seen, preferences, strict=True)]
    return draw.weighted(seen, weights)


def _preferences(scores: Sequence[float]) -> list[float]:
    """A sigmoid around the median, in units of the median deviation: free of the score's scale."""
    middle = statistics.median(scores)
    spread = statistics.median(abs(score - middle) for score in scores) or 1.0
    steps = [SHARPNESS * (score - middle) / spread for score in scores]
    return [1 / (1 + math.exp(-min(max(step, -30.0), 30.0))) for step in steps]


def _to_mend(told: Told, draw: Draw) -> Exemplar | None:
    """One of the failures that came furthest; now and then none, to start over."""
    failures = told.promising
    if not failures or draw.share() < told.config.explore:
        return None
    weights = [
        1 / (1 + rank) / (1 + told.children(each.evaluation.candidate))
        for rank, each in enumerate(failures)
    ]
    return draw.weighted(failures, weights)


def _damped(told: Told, elite: Elite) -> float:
    return 1 / (1 + told.children(elite.id))


def _one(archive: Archive, draw: Draw) -> Elite:
    return archive[draw.below(len(archive))]


def _inspirations(
    archive: Archive, parent: Elite, draw: Draw, *, count: int
) -> tuple[Exemplar, ...]:
    """Half from the top, the rest from cells as far as possible from those chosen already."""
    chosen = [each for each in archive.top if each.id != parent.id][: (count + 1) // 2]
    top = {each.id for each in chosen}
    taken = top | {parent.id}
    cells = [parent.cell, *(each.cell for each in chosen)]
    while len(chosen) < count:
        seen = [_one(archive, draw) for _ in range(TRIES)]
        fresh = [each for each in seen if each.id not in taken]
        if not fresh:
            break
        far = max(fresh, key=lambda each: min(_distance(each.cell, cell) for cell in cells))
        chosen.append(far)
        taken.add(far.id)
        cells.append(far.cell)
    chosen.sort(key=lambda each: -each.score)
    return tuple(each.as_exemplar(Role.TOP if each.id in top else Role.DIVERSE) for each in chosen)


def _distance(one: Cell, other: Cell) -> int:
    """In how many dimensions two cells differ."""
    return sum(map(operator.ne, one, other))
