"""Where a candidate lies: fixed bins over what a kernel is and does.

Bins never move while a search runs, so that every elite stays in the cell that it was put into.
Whoever changes an edge or a measure raises ``VERSION``; an older archive is then binned anew.
A measure that is not known has a bin of its own, 0 in a cell, and costs a candidate nothing.
"""

import itertools
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.search.kernel_text import Family, complexity, family
from kernelsmith.search.score import score, score_of_speedup

VERSION = 1
DEFAULT = ("complexity", "score", "schedule", "launches")

Cell = tuple[int, ...]

_SPEEDUPS = (0.5, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_LIBRARY_SHARE = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """One axis of an archive."""

    name: str
    labels: tuple[str, ...]
    """What each bin holds, for people."""
    bin: Callable[[Candidate, Evaluation], int | None]

    @property
    def size(self) -> int:
        """Bins, that of the unknown included."""
        return len(self.labels) + 1

    def label(self, index: int) -> str:
        """Say what a cell's index along this dimension means."""
        return self.labels[index - 1] if index else "not known"


def descriptors(
    candidate: Candidate, evaluation: Evaluation, *, dimensions: Sequence[str] = DEFAULT
) -> tuple[int | None, ...]:
    """Return the bin along each dimension, counted from 0; none where it is not known."""
    return tuple(DIMENSIONS[name].bin(candidate, evaluation) for name in dimensions)


def cell_of(found: Sequence[int | None]) -> Cell:
    """Turn descriptors into a cell: 0 for what is not known, bins from 1."""
    return tuple(0 if each is None else each + 1 for each in found)


def _complexity(candidate: Candidate, evaluation: Evaluation) -> int | None:
    return bisect_right(_COMPLEXITY, complexity(candidate.source))


def _score(candidate: Candidate, evaluation: Evaluation) -> int | None:
    return bisect_right(_SCORES, score(evaluation))


def _schedule(candidate: Candidate, evaluation: Evaluation) -> int | None:
    coverage = evaluation.coverage
    if coverage is not None and coverage.own < _LIBRARY_SHARE:
        return _FAMILIES.index(Family.LIBRARY)
    found = family(candidate.source)
    return None if found is None else _FAMILIES.index(found)


def _launches(candidate: Candidate, evaluation: Evaluation) -> int | None:
    if not evaluation.kernels:
        return None
    return bisect_right(_LAUNCHES, sum(kernel.launches for kernel in evaluation.kernels)) - 1


def _own(candidate: Candidate, evaluation: Evaluation) -> int | None:
    coverage = evaluation.coverage
    return None if coverage is None else bisect_right(_OWN, coverage.own)


def _traffic(candidate: Candidate, evaluation: Evaluation) -> int | None:
    if not evaluation.rooflines:
        return None
    return bisect_right(_TRAFFIC, min(each.bandwidth_share for each in evaluation.rooflines))


def _ranges(edges: Sequence[float], unit: str = "") -> tuple[str, ...]:
    texts = [f"{edge:g}{unit}" for edge in edges]
    between = [f"{low} to {high}" for low, high in itertools.pairwise(texts)]
    return (f"below {texts[0]}", *between, f"{texts[-1]} and above")


_FAMILIES = tuple(Family)
_SCORES = tuple(score_of_speedup(low) for low in _SPEEDUPS)
_COMPLEXITY = (16, 32, 64, 128, 256, 512, 1024)
_LAUNCHES = (1, 2, 3, 5, 9)
_OWN = (0.2, 0.5, 0.8, 0.95)
_TRAFFIC = (0.1, 0.25, 0.5, 0.75, 0.9)

DIMENSIONS = {
    each.name: each
    for each in (
        Dimension(name="complexity", labels=_ranges(_COMPLEXITY), bin=_complexity),
        Dimension(name="score", labels=_ranges(_SPEEDUPS, "x"), bin=_score),
        Dimension(name="schedule", labels=tuple(_FAMILIES), bin=_schedule),
        Dimension(name="launches", labels=("1", "2", "3 or 4", "5 to 8", "9+"), bin=_launches),
        Dimension(name="own", labels=_ranges(_OWN), bin=_own),
        Dimension(name="traffic", labels=_ranges(_TRAFFIC), bin=_traffic),
    )
}
"""``complexity``: operators, calls, subscripts, branches and loops of the kernels. ``score``: by
the low end of the speed-up. ``schedule``: how the work is divided, from the text. ``launches``: on
the device, per call. ``own``: share of the time in the candidate's own code. ``traffic``: bandwidth
achieved for the bytes that must be moved at least, over the device's; the worst workload counts."""
