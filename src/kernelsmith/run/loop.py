"""The loop: keeps steps in flight, tells search in the order of the asks, and ends on time.

Ask n is made right after tell n - concurrency, whatever finishes first. So a run is a function of
its seed and of what proposer and evaluator answer, and its journal can be replayed.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Exemplar, Proposal, Role, Step
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run import dispatch
from kernelsmith.run.attempt import Attempt, Workshop
from kernelsmith.run.best import best_source, replace_file
from kernelsmith.run.commit import Committer
from kernelsmith.run.config import RunConfig
from kernelsmith.run.interrupt import Interruption
from kernelsmith.run.journal import Journal
from kernelsmith.run.leaders import Leaders
from kernelsmith.run.progress import Tally, Watch
from kernelsmith.run.recorded import Header, Judged, Recorded, Stage
from kernelsmith.run.result import Result
from kernelsmith.run.stopping import Stop, reason_to_stop
from kernelsmith.search.score import grade
from kernelsmith.search.search import Search

T = TypeVar("T")
ShapesOf = Callable[[Task], Coroutine[Any, Any, dict[str, dispatch.Shapes]]]
"""Says what the inputs of each timed workload look like; without it nothing is dispatched."""


class Run:
    """One run in one folder. ``go`` is called once; ``stop`` may be called from a signal."""

    def __init__(
        self,
        *,
        folder: Path,
        task: Task,
        config: RunConfig,
        header: Header,
        search: Search,
        proposer: Proposer,
        evaluator: Evaluator,
        journal: Journal,
        confirmer: Evaluator | None = None,
        recorded: Recorded | None = None,
        shapes_of: ShapesOf | None = None,
        watch: Watch | None = None,
        clock: Callable[[], float] = time.monotonic,
        owned: AsyncExitStack | None = None,
    ) -> None:
        self.folder, self.task, self.config, self.search = folder, task, config, search
        self._header, self._journal, self._proposer = header, journal, proposer
        self._shapes_of, self._clock = shapes_of, clock
        self._owned = owned or AsyncExitStack()
        self._steps = recorded.steps if recorded else ()
        self._leaders = Leaders()
        self._drained = set(recorded.drained) if recorded else set()
        self._recorded_final = recorded.final if recorded else None
        self._adapted = dict(recorded.adapted) if recorded else {}
        self._begun = clock() - (recorded.elapsed_s if recorded else 0.0)
        journal.elapsed = lambda: self._elapsed
        journal.asked = dict(recorded.asked) if recorded else {}
        self._work = Workshop(
            task=task, search=search, proposer=proposer, evaluator=evaluator, confirmer=confirmer,
            journal=journal, rules=config.remeasure, recorded=recorded,
        )  # fmt: skip
        self._tally = Tally()
        self._committer = Committer(journal, watch)
        self._flying: dict[int, _Flight] = {}
        self._asides: set[asyncio.Task[Any]] = set()
        self._interruption = Interruption()

    def stop(self, *, at_once: bool = False) -> None:
        """End soon: work in flight is finished, the second time or ``at_once`` it is not."""
        self._interruption.set(at_once=at_once)

    async def go(self) -> Result:
        """Take steps until a rule of the budget applies or someone interrupts.

        Raises:
            UsageError: The task cannot be judged, or the proposer can never work.
        """
        async with self._owned:
            self._owned.push_async_callback(self._proposer.close)
            self._owned.callback(self._journal.close)
            with self._interruption.by_signals():
                try:
                    async with self._committer:
                        return await self._all_steps()
                finally:
                    await self._cancel_all()

    async def _all_steps(self) -> Result:
        stop = await self._until_drained()
        if stop is not Stop.INTERRUPTED:
            self._note_drained()
            if await self._dispatched():
                self._note_drained()
        best = None if self._interruption.is_set else await self._final()
        if self._interruption.is_set and best is None:
            # What is under way is written down and not told: resuming is as if nothing happened.
            await self._interruption.landed(self._tasks, grace_s=self.config.grace_s)
            stop = Stop.INTERRUPTED
        return self._result(stop, best)

    async def _until_drained(self) -> Stop:
        """Ask and tell until nothing more may be asked and everything asked is told."""
        while True:
            stop = self._ask_more()
            told = self.search.told
            if told not in self._flying:
                assert stop is not None, "nothing is in flight, and nothing says why"
                return stop
            if told < len(self._steps):
                self._retell(self._steps[told])
                if told % 100 == 0:
                    await asyncio.sleep(0)
            elif not await self._tell_next():
                return Stop.INTERRUPTED

    def _ask_more(self) -> Stop | None:
        """Fill the window, or say why not: a pure function of what was told, but for the clock."""
        search = self.search
        while True:
            replaying = search.asked < len(self._steps) or search.told < max(
                self._drained, default=0
            )
            stop = None if replaying else self._reason()
            if stop is not None:
                return stop
            barrier = min((each for each in self._drained if each > search.told), default=None)
            if barrier is not None and search.asked >= barrier:
                return None
            if search.asked - search.told >= self.config.concurrency:
                return None
            self._ask(None)

    def _reason(self) -> Stop | None:
        return reason_to_stop(
            self.config.budget,
            self._tally,
            self.search.best,
            in_flight=self.search.asked - self.search.told,
            elapsed_s=self._elapsed,
        )

    def _ask(self, proposal: Proposal | None) -> None:
        brief, task = self.search.ask(), None
        if brief.number >= len(self._steps):
            task = asyncio.create_task(self._work.work(brief, proposal))
        self._journal.asked.setdefault(brief.number, self._elapsed)
        self._flying[brief.number] = _Flight(brief, task)

    def _retell(self, step: Step) -> None:
        """Tell a step of the journal again, and make sure that search says what it said then."""
        flight = self._flying.pop(step.brief.number)
        placement = self.search.tell(
            step.brief, step.candidate, step.evaluation,
            rejection=step.proposal.rejection, lost=step.lost,
        )  # fmt: skip
        if flight.brief != step.brief or placement != step.placement:
            raise UsageError(
                f"step {step.brief.number} of {self.folder} does not replay: the journal was "
                f"written by another version of the search; go on with that one"
            )
        self._learn(step)
        self._tally.add(step)
        self._leaders.add(step)

    async def _tell_next(self) -> bool:
        """Wait for the oldest step in flight and tell it; false where someone interrupted."""
        flight = self._flying[self.search.told]
        assert flight.task is not None
        if not await self._waited(flight.task):
            return False
        attempt = flight.task.result()
        if self._is_champion(attempt):
            assert attempt.candidate is not None
            confirming = self._aside(
                self._work.confirmed(flight.brief.number, attempt.candidate, Stage.CONFIRM)
            )
            if not await self._waited(confirming):
                return False
            if (judged := confirming.result()) is not None:
                attempt = replace(attempt, evaluation=judged.evaluation, lost=judged.lost)
        self._tell(flight, attempt)
        return True

    def _tell(self, flight: "_Flight", attempt: Attempt) -> None:
        brief, candidate = flight.brief, attempt.candidate
        known = None if candidate is None else self.search.known(candidate.id)
        if known is not None:
            attempt = replace(attempt, evaluation=known, gain=None, lost="")
        placement = self.search.tell(
            brief, candidate, attempt.evaluation,
            rejection=attempt.proposal.rejection, lost=attempt.lost,
        )  # fmt: skip
        step = Step(
            brief=brief,
            proposal=attempt.proposal,
            placement=placement,
            candidate=candidate,
            evaluation=attempt.evaluation,
            gain=attempt.gain,
            lost=attempt.lost,
            seconds=round(self._elapsed - self._journal.asked[brief.number], 3),
        )
        del self._flying[brief.number]
        self._journal.append_step(step, at_s=self._elapsed)
        self._learn(step)
        self._tally.add(step)
        self._leaders.add(step)
        if placement.is_best:
            self._write_best(self.search.best, confirmed=False)
        progress = self._tally.progress(
            self.config.budget, asked=self.search.asked,
            coverage=self.search.coverage, elapsed_s=self._elapsed,
        )  # fmt: skip
        self._committer.announce(progress)

    def _learn(self, step: Step) -> None:
        """Pass a step on; weights that it changed are written down once."""
        number = step.brief.number
        weights = self._proposer.learn(step)
        if weights is not None and number not in self._adapted:
            self._adapted[number] = weights
            self._journal.append_adapted(number, weights)

    def _is_champion(self, attempt: Attempt) -> bool:
        """Whether it would be the run's best, and is to be measured again before it is."""
        found = attempt.evaluation
        if not self.config.remeasure.champions or found is None or found.timing is None:
            return False
        if self.search.known(found.candidate) is not None:
            return False
        best = self.search.best
        return best is None or grade(found).improves_on(grade(best.evaluation))

    def _note_drained(self) -> None:
        if self.search.told not in self._drained:
            self._drained.add(self.search.told)
            self._journal.append_drained(self.search.told)

    async def _dispatched(self) -> bool:
        """Try one candidate made of the winners of single workloads, where there are such."""
        best = self.search.best
        if best is None or self._shapes_of is None:
            return False
        plan = dispatch.plan(best, (elite for _, _, elite in self.search.cells()))
        if plan is None:
            return False
        shaping = self._aside(self._shapes_of(self.task))
        if not await self._waited(shaping):
            return False
        source = dispatch.written(plan, self.task, shaping.result())
        if source is None:
            return False
        if self.search.known(Candidate(backend=self.config.backend, source=source).id) is not None:
            return False
        routes = ", ".join(f"{name}: {plan.candidates[index].id}" for name, index in plan.routes)
        self._ask(Proposal(source=source, proposer=dispatch.PROPOSER, note=f"by shape: {routes}"))
        return await self._tell_next()

    async def _final(self) -> Exemplar | None:
        """Judge the best once more, with fresh inputs; where it fails, the next best.

        Others that measured as well within the noise are judged too: who came first among them is
        chance, and who is faster shows when all are measured well.
        """
        # A run that was given more steps has another end than the one it had before.
        recorded = self._recorded_final if self.search.told == len(self._steps) else None
        if recorded is not None and recorded.evaluation is not None:
            return _exemplar(recorded.candidate, recorded.evaluation)
        best = self.search.best
        rivals = self._leaders.rivals(best, self.config.remeasure.rivals) if best else {}
        stage = Stage.RUNOFF if rivals else Stage.FINAL
        winner: Judged | None = None
        judged: Judged | None = None
        for candidate in self._finalists(rivals):
            if winner is not None and candidate.id not in rivals:
                break
            judging = self._aside(self._work.confirmed(self.search.told, candidate, stage))
            if not await self._waited(judging):
                return None
            judged = judging.result()
            if judged is None:
                return None
            if judged.passed and (winner is None or _worth(judged) > _worth(winner)):
                winner = judged
        ended = winner or judged
        if rivals and ended is not None:
            self._work.settle(self.search.told, replace(ended, stage=Stage.FINAL))
        if winner is None or winner.evaluation is None:
            return None
        return _exemplar(winner.candidate, winner.evaluation)

    def _finalists(self, rivals: Mapping[CandidateId, Candidate]) -> list[Candidate]:
        best = self.search.best
        if best is None or not self.config.remeasure.final:
            return []
        ranked = sorted(self.search.cells(), key=lambda each: -each[2].score)
        found = {best.candidate.id: best.candidate, **rivals}
        for _, _, elite in ranked:
            found.setdefault(elite.candidate.id, elite.candidate)
        return list(found.values())[: max(self.config.remeasure.final, 1 + len(rivals))]

    def _result(self, stop: Stop, final: Exemplar | None) -> Result:
        best = final or self.search.best
        if best is not None:
            self._write_best(best, confirmed=final is not None)
        return Result(
            folder=self.folder,
            stop=stop,
            steps=self.search.told,
            best=best,
            confirmed=final is not None,
            tokens=self._tally.tokens,
            usd=self._tally.usd,
            elapsed_s=self._elapsed,
        )

    def _write_best(self, best: Exemplar | None, *, confirmed: bool) -> None:
        assert best is not None
        is_told = self._tally.best_id == best.candidate.id
        step = self._tally.best_step if is_told else None
        text = best_source(best, self._header, step=step, confirmed=confirmed)
        replace_file(self.folder / "best.py", text)

    @property
    def _elapsed(self) -> float:
        return self._clock() - self._begun

    def _aside(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Start work that belongs to no ask."""
        task = asyncio.create_task(work)
        self._asides.add(task)
        task.add_done_callback(self._asides.discard)
        return task

    async def _waited(self, task: asyncio.Task[T]) -> bool:
        """Wait for ``task``; false where someone interrupts first."""
        assert self._committer.task is not None
        return await self._interruption.waited(task, self._committer.task)

    @property
    def under_way(self) -> int:
        """Pieces of work that are not done: proposals, evaluations, confirmations."""
        return sum(not task.done() for task in self._tasks())

    def _tasks(self) -> list[asyncio.Task[Any]]:
        flying = [flight.task for flight in self._flying.values() if flight.task is not None]
        return [*flying, *self._asides]

    async def _cancel_all(self) -> None:
        self._interruption.close()
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class _Flight:
    """A brief under way; no task where its step is in the journal already."""

    brief: Brief
    task: asyncio.Task[Attempt] | None


def _exemplar(candidate: Candidate, evaluation: Evaluation) -> Exemplar:
    return Exemplar(
        role=Role.TOP, candidate=candidate, evaluation=evaluation, score=grade(evaluation).score
    )


def _worth(judged: Judged) -> float:
    return 0.0 if judged.evaluation is None else grade(judged.evaluation).score
