"""Evaluators: whoever turns a task and a candidate into an evaluation, here or elsewhere."""

import asyncio
import threading
from dataclasses import replace
from types import TracebackType
from typing import Protocol, Self

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.backend import Backend, load_backend
from kernelsmith.evaluate.failure import KilledFromOutside, ReferenceBroken
from kernelsmith.evaluate.harness import JUDGE, Judge
from kernelsmith.evaluate.rehearsal import rehearse
from kernelsmith.evaluate.settings import Settings

_ATTEMPTS = 3
_AHEAD = 4
"""Candidates that are compiled before their turn: backends keep what some leave, and not of all."""


class Evaluator(Protocol):
    """The one asynchronous edge to judging; local, served and cluster evaluators look the same."""

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Return the verdict.

        Raises:
            UsageError: The task cannot be judged.
            EvaluationLost: Judging failed for reasons of ours, repeatedly.
        """
        ...


class Elsewhere(Protocol):
    """A place to judge at that is not this process: a server, a cluster. Open until closed."""

    @property
    def device(self) -> Device:
        """What is judged on there."""
        ...

    def evaluator(self, settings: Settings, *, fresh: bool = False) -> Evaluator:
        """One way of judging there; ``fresh`` where an evaluation of before will not do."""
        ...

    async def close(self) -> None:
        """Let go of it."""
        ...


class LocalEvaluator:
    """Judges on this machine, one after the other, whoever asks at the same time.

    A lost evaluation is judged again before anyone hears of it.
    """

    _maker: type[Judge] = Judge

    def __init__(self, backend: Backend | str, settings: Settings | None = None) -> None:
        self._backend = load_backend(backend) if isinstance(backend, str) else backend
        self._settings = settings or Settings()
        self._judges: dict[Task, Judge] = {}
        self._closed = False
        self._turn = threading.Lock()
        """A reference answers one judgement at a time: it holds that one's weights and inputs."""
        self._ahead = threading.BoundedSemaphore(_AHEAD)

    @property
    def backend(self) -> Backend:
        """What it judges with."""
        return self._backend

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Judge in a thread, so that the caller's loop goes on."""
        return await asyncio.to_thread(self.judge, task, candidate, baseline=baseline)

    def judge(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Judge now; the same as ``evaluate`` for callers without a loop."""
        with self._ahead:
            if not self._closed:
                rehearse(self._backend, task, candidate, self._settings)
            self._turn.acquire()
        try:
            return self._judged(task, candidate, baseline)
        finally:
            self._turn.release()

    def _judged(self, task: Task, candidate: Candidate, baseline: Candidate | None) -> Evaluation:
        attempts = killed = 0
        while attempts < _ATTEMPTS:
            attempts += 1
            if self._closed:  # in the middle of it, or while others had their turn
                raise EvaluationLost(f"candidate {candidate.id}: the evaluator was closed")
            try:
                return self._judge_of(task).judge(candidate, baseline=baseline)
            except ReferenceBroken:
                self._forget(task)
                attempts -= 1  # the next one is not asked the same, so there is an end to it
            except KilledFromOutside as error:
                self._forget(task)
                killed += 1
                if killed == 2:
                    return self._killed(task, candidate, str(error))
            except EvaluationLost:
                self._forget(task)
                if attempts == _ATTEMPTS:
                    raise
        raise EvaluationLost(f"candidate {candidate.id} was not judged in {_ATTEMPTS} attempts")

    def adopt(self, other: "LocalEvaluator") -> None:
        """Take over the references that another one has open, on the same device.

        Opening one takes seconds, and what is known of it (its size, its speed) goes along.
        """
        with self._turn, other._turn:
            self.forget()
            while other._judges:
                task, judge = other._judges.popitem()
                self._judges[task] = self._maker(
                    self._backend, task, self._settings, oracle=judge.hand_over()
                )

    def forget(self) -> None:
        """End the references that are open; large tasks leave no room for others."""
        for task in list(self._judges):
            self._forget(task)

    def close(self) -> None:
        """End every process; who still waits for an answer gets none."""
        self._closed = True
        self.forget()
        self._backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _judge_of(self, task: Task) -> Judge:
        if task not in self._judges:
            twin = next((each for each in self._judges if _same_reference(each, task)), None)
            oracle = None if twin is None else self._judges.pop(twin).hand_over()
            while len(self._judges) >= self._backend.references:
                self._forget(next(iter(self._judges)))
            self._judges[task] = self._maker(self._backend, task, self._settings, oracle=oracle)
        return self._judges[task]

    def _forget(self, task: Task) -> None:
        if judge := self._judges.pop(task, None):
            judge.close()

    def _killed(self, task: Task, candidate: Candidate, reason: str) -> Evaluation:
        return Evaluation(
            task=task.name,
            candidate=candidate.id,
            device=self._backend.device(),
            verdict=Verdict.CRASHED,
            message=f"killed by the system twice, most likely for lack of memory: {reason}",
            judge=JUDGE,
        )


def _same_reference(one: Task, other: Task) -> bool:
    """Whether two tasks differ only in what they let a candidate call."""
    return replace(one, library=other.library) == other
