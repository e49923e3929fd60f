"""What a watcher of a run is shown after each step, kept up in constant time."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Outcome, Step
from kernelsmith.run.config import Budget
from kernelsmith.run.dispatch import PROPOSER as DISPATCH

Curve = tuple[tuple[int, Ratio], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A run after one more step; what it counts has been synced to the journal."""

    told: int
    """Steps done."""
    asked: int
    """Steps begun."""
    of: int
    """Steps that the budget allows."""
    outcome: Outcome
    """Of the last step."""
    best: Ratio | None
    """Speed-up of the best so far, with its interval."""
    best_id: CandidateId | None
    best_step: int | None
    curve: Curve
    """Step and speed-up of each best in its turn."""
    cells: int
    """Cells of the archive opened so far, over all islands."""
    coverage: float
    """Share of the archive's cells that is occupied."""
    verdicts: tuple[tuple[str, int], ...]
    """How many steps came to which end: a verdict, or why there is none."""
    tokens: int
    usd: float | None
    """None where nobody counted."""
    elapsed_s: float
    eta_s: float | None
    """Until the step budget is spent, at the pace so far; none before the first step."""


Watch = Callable[[Progress], None]


class Tally:
    """The counts behind ``Progress`` and the budget's rules."""

    def __init__(self) -> None:
        self.told = 0
        self.tokens = 0
        self.usd: float | None = None
        self.stale = 0
        """Steps since the last new best."""
        self.cells = 0
        self.curve: Curve = ()
        self.best: Ratio | None = None
        self.best_id: CandidateId | None = None
        self.best_step: int | None = None
        self._fates: Counter[str] = Counter()
        self._last = Outcome.REJECTED

    def add(self, step: Step) -> None:
        """Count one step."""
        self.told += 1
        usage, placement = step.proposal.usage, step.placement
        self.tokens += (usage.input_tokens or 0) + (usage.output_tokens or 0)
        if usage.usd is not None:
            self.usd = (self.usd or 0.0) + usage.usd
        self._last = placement.outcome
        self.cells += placement.outcome is Outcome.NEW
        if step.proposal.proposer != DISPATCH:  # what is put together at the end says nothing
            self.stale = 0 if placement.is_best else self.stale + 1
        self._fates[_fate(step)] += 1
        timing = None if step.evaluation is None else step.evaluation.timing
        if placement.is_best and step.candidate is not None:
            self.best_id, self.best_step = step.candidate.id, step.brief.number
            self.best = None if timing is None else timing.speedup
            if self.best is not None:
                self.curve = (*self.curve, (step.brief.number, self.best))

    def progress(
        self, budget: Budget, *, asked: int, coverage: float, elapsed_s: float
    ) -> Progress:
        """Say where the run stands."""
        left = max(budget.steps - self.told, 0)
        return Progress(
            told=self.told,
            asked=asked,
            of=budget.steps,
            outcome=self._last,
            best=self.best,
            best_id=self.best_id,
            best_step=self.best_step,
            curve=self.curve,
            cells=self.cells,
            coverage=coverage,
            verdicts=tuple(sorted(self._fates.items())),
            tokens=self.tokens,
            usd=self.usd,
            elapsed_s=elapsed_s,
            eta_s=elapsed_s / self.told * left if self.told else None,
        )


def _fate(step: Step) -> str:
    if step.placement.outcome in (Outcome.DUPLICATE, Outcome.REJECTED, Outcome.LOST):
        return step.placement.outcome.value
    assert step.evaluation is not None
    return step.evaluation.verdict.value
