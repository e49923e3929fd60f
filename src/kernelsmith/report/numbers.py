"""From a journal to the numbers that a report shows."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Outcome, Step
from kernelsmith.run.recorded import Recorded, Stage

_UNJUDGED = (Outcome.DUPLICATE, Outcome.REJECTED, Outcome.LOST)

FATES = (
    *(verdict.value for verdict in reversed(Verdict)),
    *(outcome.value for outcome in _UNJUDGED),
)
"""What can become of a step: a verdict, or why there is no new one; the best first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step, as far as a picture needs it."""

    step: int
    fate: str
    """One of ``FATES``."""
    island: int
    candidate: CandidateId | None = None
    parent: CandidateId | None = None
    score: float | None = None
    speedup: Ratio | None = None
    gain: Ratio | None = None
    """Over the parent, measured beside it."""
    is_best: bool = False
    """Whether it was the best of the run when it came."""
    proposer: str = ""
    note: str = ""
    message: str = ""
    """Why it did not pass, in one line."""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One occupied cell of an island's archive, and the best that was ever proposed for it."""

    island: int
    place: tuple[int, ...]
    score: float
    point: Point
    arrivals: int
    """How often it was taken or improved."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credit:
    """What one proposer wrote, what that cost, and what it brought."""

    proposer: str
    proposals: int
    passed: int
    bests: int
    """Times that it wrote the best of the run."""
    lifted: float
    """By what factor it raised the run's best speed-up, all its bests together; 1: not at all."""
    gained: float
    """Score that it added to the archive."""
    input_tokens: int | None
    output_tokens: int | None
    usd: float | None
    seconds: float
    attempts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """A run in numbers; everything follows from its journal."""

    points: tuple[Point, ...]
    """In the order of the asks."""
    winner: Step | None
    """The step that wrote the best candidate; none while nothing passed."""
    final: Evaluation | None
    """What the judge said at the very end, of the winner if it passed; none if it was not asked."""
    lineage: tuple[Step, ...]
    """The winner's ancestors as far as the run knows them, oldest first, and the winner."""
    cells: tuple[Cell, ...]
    credits: tuple[Credit, ...]
    """The proposer that brought most comes first."""
    stages: tuple[tuple[str, float], ...]
    """Seconds of work per stage, proposals and judging, longest first; stages overlap in time."""
    elapsed_s: float
    """From the first ask to the last tell, over all sessions."""

    @property
    def bests(self) -> tuple[Point, ...]:
        """Each best of the run in its turn: the curve."""
        return tuple(point for point in self.points if point.is_best)

    @property
    def tally(self) -> tuple[tuple[str, int], ...]:
        """How many steps came to which end, in the order of ``FATES``; none with 0."""
        found = Counter(point.fate for point in self.points)
        return tuple((fate, found[fate]) for fate in FATES if found[fate])

    @property
    def passed(self) -> int:
        """Candidates that the judge believed."""
        return sum(point.fate == Verdict.PASSED for point in self.points)

    @property
    def judged(self) -> int:
        """Candidates with a verdict of their own."""
        return sum(point.fate not in _UNJUDGED for point in self.points)

    @property
    def evaluation(self) -> Evaluation | None:
        """What to quote of the winner: the confirmation, else what made it the best."""
        if self.final is not None and self.final.verdict is Verdict.PASSED:
            return self.final
        return self.winner.evaluation if self.winner else None

    @property
    def speedup(self) -> Ratio | None:
        """The winner's; none while nothing passed, or where nothing is timed."""
        timing = self.evaluation.timing if self.evaluation else None
        return timing.speedup if timing else None

    @property
    def is_confirmed(self) -> bool:
        """Whether the winner passed once more at the end."""
        return self.final is not None and self.final.verdict is Verdict.PASSED

    @property
    def usd(self) -> float | None:
        """What the proposals cost together; none where nobody counted."""
        return _total(credit.usd for credit in self.credits)

    @property
    def tokens(self) -> int | None:
        """Tokens in and out together; none where nobody counted."""
        counts = [
            count for each in self.credits for count in (each.input_tokens, each.output_tokens)
        ]
        found = _total(counts)
        return None if found is None else int(found)


def numbers_of(recorded: Recorded) -> Numbers:
    """Count what a run did."""
    steps = recorded.steps
    points = tuple(point_of(step) for step in steps)
    last = recorded.judged.get((len(steps), Stage.FINAL))
    final = last.evaluation if last else None
    winner = _winner(steps, final)
    return Numbers(
        points=points,
        winner=winner,
        final=final,
        lineage=lineage_of(steps, winner) if winner else (),
        cells=_cells(points, steps),
        credits=_credits(steps),
        stages=_stages(recorded),
        elapsed_s=recorded.elapsed_s,
    )


def _winner(steps: Sequence[Step], final: Evaluation | None) -> Step | None:
    """Who was confirmed at the end, though it may not have led before; else the last best."""
    if final is not None and final.verdict is Verdict.PASSED:
        for step in steps:
            if step.candidate is not None and step.candidate.id == final.candidate:
                return step
    return next((step for step in reversed(steps) if step.placement.is_best), None)


def point_of(step: Step) -> Point:
    """One step without its texts."""
    evaluation = step.evaluation
    judged = None if step.placement.outcome in _UNJUDGED else evaluation
    timing = evaluation.timing if evaluation else None
    said = step.lost or step.proposal.rejection or (evaluation.message if evaluation else "")
    return Point(
        step=step.brief.number,
        fate=judged.verdict.value if judged else step.placement.outcome.value,
        island=step.placement.island,
        candidate=step.candidate.id if step.candidate else None,
        parent=step.candidate.parent if step.candidate else None,
        score=step.placement.score,
        speedup=timing.speedup if timing else None,
        gain=step.gain,
        is_best=step.placement.is_best,
        proposer=step.proposal.proposer,
        note=first_line(step.proposal.note),
        message=first_line(said),
        seconds=step.seconds,
    )


def lineage_of(steps: Iterable[Step], last: Step) -> tuple[Step, ...]:
    """Follow parents back from ``last`` to the first; the oldest comes first."""
    born: dict[CandidateId, Step] = {}
    for step in steps:
        if step.candidate is not None:
            born.setdefault(step.candidate.id, step)
    found = [last]
    while True:
        child = found[-1].candidate
        parent = born.get(child.parent) if child and child.parent else None
        if parent is None or parent.brief.number >= found[-1].brief.number:
            return tuple(reversed(found))
        found.append(parent)


def first_line(text: str, most: int = 160) -> str:
    """The first line that says something, cut to fit a table."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def _cells(points: Sequence[Point], steps: Sequence[Step]) -> tuple[Cell, ...]:
    """Who holds which cell. Migrants are copies and are left out."""
    found: dict[tuple[int, tuple[int, ...]], Cell] = {}
    for point, step in zip(points, steps, strict=True):
        placement = step.placement
        if placement.outcome not in (Outcome.NEW, Outcome.IMPROVED) or placement.cell is None:
            continue
        key = (placement.island, placement.cell)
        before = found.get(key)
        found[key] = Cell(
            island=placement.island,
            place=placement.cell,
            score=placement.score or 0.0,
            point=point,
            arrivals=before.arrivals + 1 if before else 1,
        )
    return tuple(found[key] for key in sorted(found))


def _credits(steps: Sequence[Step]) -> tuple[Credit, ...]:
    by_name: dict[str, list[Step]] = {}
    for step in steps:
        by_name.setdefault(step.proposal.proposer or "unnamed", []).append(step)
    lifted = _lifted(steps)
    credits = [_credit(name, own, lifted) for name, own in by_name.items()]
    return tuple(sorted(credits, key=lambda each: (-each.lifted, -each.gained, each.proposer)))


def _credit(name: str, own: Sequence[Step], lifted: dict[int, float]) -> Credit:
    usages = [step.proposal.usage for step in own]
    tokens_in = _total(usage.input_tokens for usage in usages)
    tokens_out = _total(usage.output_tokens for usage in usages)
    return Credit(
        proposer=name,
        proposals=len(own),
        passed=sum(step.passed and step.placement.outcome not in _UNJUDGED for step in own),
        bests=sum(step.placement.is_best for step in own),
        lifted=math.prod(lifted.get(step.brief.number, 1.0) for step in own),
        gained=math.fsum(step.placement.gained for step in own),
        input_tokens=None if tokens_in is None else int(tokens_in),
        output_tokens=None if tokens_out is None else int(tokens_out),
        usd=_total(usage.usd for usage in usages),
        seconds=math.fsum(usage.seconds for usage in usages),
        attempts=sum(usage.attempts for usage in usages),
    )


def _lifted(steps: Sequence[Step]) -> dict[int, float]:
    """By what factor each step raised the best speed-up; the first best is held against 1."""
    found: dict[int, float] = {}
    before = 1.0
    for step in steps:
        timing = step.evaluation.timing if step.evaluation else None
        if step.placement.is_best and timing is not None:
            now = max(timing.speedup.value, before)
            found[step.brief.number] = now / before
            before = now
    return found


def _stages(recorded: Recorded) -> tuple[tuple[str, float], ...]:
    found = {"propose": math.fsum(step.proposal.usage.seconds for step in recorded.steps)}
    for judged in recorded.judged.values():
        for name, seconds in judged.evaluation.spent if judged.evaluation else ():
            found[name] = found.get(name, 0.0) + seconds
    ranked = sorted(found.items(), key=lambda each: -each[1])
    return tuple((name, seconds) for name, seconds in ranked if seconds > 0)


def _total(counts: Iterable[float | None]) -> float | None:
    known = [count for count in counts if count is not None]
    return math.fsum(known) if known else None
