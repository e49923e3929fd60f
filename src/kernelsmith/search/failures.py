"""Failures worth remembering: recent, distinct, and never many."""

from collections import OrderedDict
from collections.abc import Iterable

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.trajectory import Exemplar

Kept = OrderedDict[tuple[Verdict, str], Exemplar]

PROMISING = 8
"""How many failures are candidates for repair while nothing has passed."""
_PARENTS = (Verdict.WRONG, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.BUILD_FAILED)


def remember(kept: Kept, failure: Exemplar, *, limit: int) -> None:
    """Keep ``failure`` as the newest; it replaces one with the same verdict and first line."""
    evaluation = failure.evaluation
    key = evaluation.verdict, evaluation.message.strip().partition("\n")[0]
    kept[key] = failure
    kept.move_to_end(key)
    while len(kept) > limit:
        kept.popitem(last=False)


def newest(kept: Kept, count: int, *, but: Exemplar | None = None) -> tuple[Exemplar, ...]:
    """Return up to ``count``, newest first, without the one that is the parent already."""
    left_out = None if but is None else but.evaluation.candidate
    chosen: list[Exemplar] = []
    for failure in reversed(kept.values()):
        if len(chosen) == count:
            break
        if failure.evaluation.candidate != left_out:
            chosen.append(failure)
    return tuple(chosen)


def most_promising(failures: Iterable[Exemplar], newer: Exemplar) -> list[Exemplar]:
    """Return the failures that came furthest, the newer first among equals.

    Those that reached around the judge are no start for anything honest.
    """
    if newer.evaluation.verdict not in _PARENTS:
        return list(failures)
    return sorted([newer, *failures], key=lambda each: -each.score)[:PROMISING]
