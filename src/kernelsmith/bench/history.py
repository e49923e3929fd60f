"""From a run's journal to what a record keeps of it: every step, without its texts."""

import math
from collections.abc import Sequence

from kernelsmith.bench.record import Archive, Cost, Point
from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.trajectory import Outcome, Step
from kernelsmith.errors import UsageError
from kernelsmith.run.loop import Run

_UNJUDGED = (Outcome.DUPLICATE, Outcome.REJECTED, Outcome.LOST)
_FURTHEST = (
    Verdict.REFUSED, Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.WRONG,
    Verdict.CHEATED,
)  # fmt: skip
"""How far a candidate that did not pass came."""


def points_of(steps: Sequence[Step]) -> tuple[Point, ...]:
    """Every step, with the step that its parent came from.

    Raises:
        UsageError: A step says what cannot be; somebody has edited its journal.
    """
    born: dict[CandidateId, int] = {}
    found = []
    for step in steps:
        try:
            found.append(_point(step, born))
        except ValueError as error:
            raise UsageError(f"step {step.brief.number} of the run cannot be: {error}") from error
        if step.candidate is not None:
            born.setdefault(step.candidate.id, step.brief.number)
    return tuple(found)


def _point(step: Step, born: dict[CandidateId, int]) -> Point:
    usage, evaluation = step.proposal.usage, step.evaluation
    judged = None if step.placement.outcome in _UNJUDGED else evaluation
    timing = judged.timing if judged else None
    parent = step.candidate.parent if step.candidate else None
    counted = [each for each in (usage.input_tokens, usage.output_tokens) if each is not None]
    return Point(
        step=step.brief.number,
        verdict=judged.verdict if judged else None,
        outcome=step.placement.outcome.value,
        speedup=timing.speedup if timing else None,
        call=timing.call if timing else None,
        gain=step.gain,
        parent=born.get(parent) if parent else None,
        is_best=step.placement.is_best,
        proposer=step.proposal.proposer,
        tokens=sum(counted) if counted else None,
        usd=usage.usd,
        seconds=step.seconds,
    )


def cost_of(points: Sequence[Point], elapsed_s: float) -> Cost:
    """What a search took, as far as anybody counted.

    Raises:
        UsageError: It took a time that cannot be.
    """
    if not 0 <= elapsed_s < math.inf:
        raise UsageError(f"a run does not take {elapsed_s} s; its journal says so")
    tokens = [point.tokens for point in points if point.tokens is not None]
    usd = [point.usd for point in points if point.usd is not None]
    return Cost(
        tokens=sum(tokens) if tokens else None,
        usd=round(sum(usd), 9) if usd else None,
        seconds=round(elapsed_s, 3),
    )


def furthest(steps: Sequence[Step]) -> Evaluation | None:
    """Where nothing passed: the evaluation of whoever came furthest, the last of them."""
    judged = [step.evaluation for step in steps if step.evaluation is not None]
    failed = [each for each in judged if each.verdict is not Verdict.PASSED]
    return max(failed[::-1], key=lambda each: _FURTHEST.index(each.verdict), default=None)


def last_words(steps: Sequence[Step]) -> str:
    """Where nothing was judged: why the last step brought nothing; empty where none says so."""
    said = (step.proposal.rejection or step.lost for step in reversed(steps))
    return next(filter(None, said), "")


def archive_of(run: Run) -> Archive:
    """How full the archive is."""
    search = run.search
    return Archive(
        cells=sum(1 for _ in search.cells()),
        coverage=search.coverage,
        qd_score=round(search.qd_score, 6),
    )
