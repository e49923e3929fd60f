"""One step's work between ask and tell: propose, judge, measure the gain; nothing done twice."""

import asyncio
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, replace
from typing import TypeVar

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Brief, Exemplar, Proposal
from kernelsmith.errors import BackendUnavailable, EvaluationLost, UsageError
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.propose.proposer import Proposer, Recalling
from kernelsmith.run.config import Remeasure
from kernelsmith.run.journal import Journal
from kernelsmith.run.recorded import Judged, Recorded, Stage
from kernelsmith.search.search import Search

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What came of a brief before search was told."""

    proposal: Proposal
    candidate: Candidate | None = None
    evaluation: Evaluation | None = None
    gain: Ratio | None = None
    lost: str = ""


class Workshop:
    """Works on briefs, many at a time. What the journal has already is taken from it."""

    def __init__(
        self,
        *,
        task: Task,
        search: Search,
        proposer: Proposer,
        evaluator: Evaluator,
        confirmer: Evaluator | None,
        journal: Journal,
        rules: Remeasure,
        recorded: Recorded | None = None,
    ) -> None:
        self._task, self._search, self._proposer = task, search, proposer
        self._evaluator, self._confirmer = evaluator, confirmer
        self._journal, self._rules = journal, rules
        self._proposals: dict[int, Proposal] = {}
        self._judged: dict[tuple[int, Stage], Judged] = {}
        if recorded is not None:  # what is told is not worked on again
            told = len(recorded.steps)
            self._proposals = {n: found for n, found in recorded.proposals.items() if n >= told}
            self._judged = {key: found for key, found in recorded.judged.items() if key[0] >= told}
        self._under_way: dict[CandidateId, asyncio.Future[Judged]] = {}

    async def work(self, brief: Brief, proposal: Proposal | None = None) -> Attempt:
        """Get a proposal (unless there is one) and everything that must be known of it."""
        proposal = await self._proposal(brief, proposal)
        candidate, proposal = _candidate(proposal, brief)
        if candidate is None:
            return Attempt(proposal=proposal)
        known = self._search.known(candidate.id)
        if known is not None:
            return Attempt(proposal=proposal, candidate=candidate, evaluation=known)
        judged = await self._first(brief.number, candidate)
        if judged.evaluation is None:
            return Attempt(proposal=proposal, candidate=candidate, lost=judged.lost)
        gain = await self._gain(brief, candidate, judged.evaluation)
        return Attempt(
            proposal=proposal, candidate=candidate, evaluation=judged.evaluation, gain=gain
        )

    async def confirmed(self, number: int, candidate: Candidate, stage: Stage) -> Judged | None:
        """Judge again with more effort; none where nobody is there to do so."""
        if self._confirmer is None:
            return None
        return await self._judge(self._confirmer, number, candidate, stage)

    def settle(self, number: int, judged: Judged) -> None:
        """Write down which of several that were confirmed is the result."""
        self._journal.append_judged(number, judged)

    async def _proposal(self, brief: Brief, given: Proposal | None) -> Proposal:
        number = brief.number
        if number in self._proposals:
            recorded = self._proposals.pop(number)
            if isinstance(self._proposer, Recalling):
                self._proposer.recall(brief, recorded)
            return recorded
        proposal = given or await self._proposed(brief)
        self._journal.append_proposal(number, proposal)
        return proposal

    async def _proposed(self, brief: Brief) -> Proposal:
        found = await _outcome(self._proposer.propose(brief))
        if not isinstance(found, Exception):
            return found
        if isinstance(found, UsageError):
            raise found
        logger.warning("proposer %s failed on ask %d", self._proposer.name, brief.number)
        return Proposal(
            source=None,
            rejection=f"the proposer failed: {_said(found)}",
            proposer=self._proposer.name,
        )

    async def _first(self, number: int, candidate: Candidate) -> Judged:
        """Judge once, also where two steps in flight have brought the same candidate."""
        if known := self._known(number, candidate, Stage.FIRST):
            return known
        id = candidate.id
        twin = self._under_way.get(id)
        if twin is None:
            work = self._judge(self._evaluator, number, candidate, Stage.FIRST)
            twin = self._under_way[id] = asyncio.ensure_future(work)
            twin.add_done_callback(lambda _: self._under_way.pop(id))
            return await twin
        judged = replace(await asyncio.shield(twin), candidate=candidate)
        self._journal.append_judged(number, judged)
        return judged

    def _known(self, number: int, candidate: Candidate, stage: Stage) -> Judged | None:
        """What the journal says already; at the end several may have been tried for one number."""
        found = self._judged.get((number, stage))
        return found if found is not None and found.candidate.id == candidate.id else None

    async def _gain(
        self, brief: Brief, candidate: Candidate, evaluation: Evaluation
    ) -> Ratio | None:
        """The ratio to the parent, side by side, where the candidate may be as good."""
        parent = brief.parent
        if parent is None or not self._rules.gain or not _is_near(evaluation, parent, self._rules):
            return None
        judged = await self._judge(
            self._evaluator, brief.number, candidate, Stage.GAIN, baseline=parent.candidate
        )
        if judged.evaluation is None or judged.evaluation.timing is None:
            return None
        return judged.evaluation.timing.speedup

    async def _judge(
        self,
        evaluator: Evaluator,
        number: int,
        candidate: Candidate,
        stage: Stage,
        *,
        baseline: Candidate | None = None,
    ) -> Judged:
        """Ask an evaluator, again where it was lost, and write down what it said."""
        if known := self._known(number, candidate, stage):
            return known
        lost = ""
        for _ in range(self._rules.lost + 1):
            found = await _outcome(evaluator.evaluate(self._task, candidate, baseline=baseline))
            if isinstance(found, Evaluation):
                judged = Judged(stage=stage, candidate=candidate, evaluation=found)
                break
            if isinstance(found, UsageError | BackendUnavailable) and baseline is None:
                raise found
            lost = _said(found)
            logger.warning("candidate %s was not judged: %s", candidate.id, lost)
            if baseline is not None and not isinstance(found, EvaluationLost):
                judged = Judged(stage=stage, candidate=candidate, lost=lost)
                break
        else:
            judged = Judged(stage=stage, candidate=candidate, lost=lost)
        self._journal.append_judged(number, judged)
        return judged


async def _outcome(work: Awaitable[T]) -> T | Exception:
    """Wait for the result or for what was raised instead; being cancelled is neither."""
    (found,) = await asyncio.gather(work, return_exceptions=True)
    if isinstance(found, BaseException) and not isinstance(found, Exception):
        raise found
    return found


def _candidate(proposal: Proposal, brief: Brief) -> tuple[Candidate | None, Proposal]:
    """Make the candidate; a source that cannot be one turns the proposal into a rejection."""
    if proposal.source is None:
        return None, proposal
    parent = None if brief.parent is None else brief.parent.candidate.id
    try:
        candidate = Candidate(backend=brief.backend, source=proposal.source, parent=parent)
        assert candidate.id  # reads the source once: it may hold what is no text
    except ValueError as error:
        return None, replace(proposal, source=None, rejection=f"no candidate: {_said(error)}")
    return candidate, proposal


def _is_near(evaluation: Evaluation, parent: Exemplar, rules: Remeasure) -> bool:
    before, now = parent.evaluation.timing, evaluation.timing
    if evaluation.verdict is not Verdict.PASSED or now is None or before is None:
        return False
    return now.speedup.value >= rules.near * before.speedup.value


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:500] if text else type(error).__name__
