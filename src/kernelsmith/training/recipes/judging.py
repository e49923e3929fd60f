"""Judging beside generation: answers are sent to the evaluator as soon as they are written."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.propose.reply import Unreadable
from kernelsmith.training.forms.form import Form
from kernelsmith.training.recipes.store import Store
from kernelsmith.training.reward.trial import Trial

Turn = Callable[[], AbstractContextManager[None]]


async def _nothing() -> None:
    """Close nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """An evaluator, and how it is closed: in the loop that it was used in."""

    evaluator: Evaluator
    close: Callable[[], Awaitable[None]] = _nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Seconds since the last look."""

    judging: float
    """With at least one answer being judged."""
    waiting: float
    """With nothing else to do meanwhile."""
    answers: int
    judged: int
    """Evaluations made; an answer that was given before is not judged again."""


class Judging:
    """Takes replies, gives trials; any evaluator will do: here, at a server, on a cluster.

    Args:
        opened: Who judges. Used from a loop of its own, in a thread of its own, and closed there.
        form: How replies are read.
        in_flight: Answers judged at a time; how many of them build while one is timed is the
            evaluator's business.
        turn: Held while a model generates on the device that is timed, where it is the same one:
            building and checking go on beside it, timing waits for it and it for timing.
        store: What was judged before; closed here.
    """

    def __init__(
        self, opened: Opened, form: Form, *, in_flight: int = 4, turn: Turn = nullcontext,
        store: Store | None = None,
    ) -> None:  # fmt: skip
        self.form, self.generating = form, turn
        self._opened, self._store = opened, store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._room = asyncio.Semaphore(in_flight)
        self._known: dict[tuple[Task, CandidateId], asyncio.Task[Evaluation]] = {}
        self._lock = threading.Lock()
        self._busy, self._since, self._judging_s, self._waiting_s = 0, 0.0, 0.0, 0.0
        self._answers = self._judged = 0

    def submit(self, brief: Brief, reply: str, *, cut_off: bool = False) -> "Future[Trial]":
        """Begin to judge a reply; returns at once."""
        self._answers += 1
        return asyncio.run_coroutine_threadsafe(self._trial(brief, reply, cut_off), self._loop)

    def wait(self, futures: "Sequence[Future[Trial]]") -> list[Trial]:
        """Wait for all of them."""
        began = time.monotonic()
        found = [each.result() for each in futures]
        self._waiting_s += time.monotonic() - began
        return found

    def spent(self) -> Spent:
        """What was spent since the last call."""
        with self._lock:
            now = time.monotonic()
            if self._busy:
                self._judging_s += now - self._since
                self._since = now
            found = Spent(
                judging=self._judging_s, waiting=self._waiting_s, answers=self._answers,
                judged=self._judged,
            )  # fmt: skip
            self._judging_s = self._waiting_s = 0.0
            self._answers = self._judged = 0
        return found

    def close(self) -> None:
        """Close the evaluator, and end the loop."""
        asyncio.run_coroutine_threadsafe(self._closed(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def _closed(self) -> None:
        await self._opened.close()
        if self._store is not None:
            self._store.close()

    async def _trial(self, brief: Brief, reply: str, cut_off: bool) -> Trial:
        return await tried(self.form, self._evaluated, brief, reply, cut_off=cut_off)

    async def _evaluated(self, task: Task, candidate: Candidate) -> Evaluation:
        key = (task, candidate.id)
        if key not in self._known:
            self._known[key] = asyncio.ensure_future(self._judge(task, candidate))
        try:
            return await asyncio.shield(self._known[key])
        except EvaluationLost:
            self._known.pop(key, None)  # says nothing about the candidate: the next one asks again
            raise

    async def _judge(self, task: Task, candidate: Candidate) -> Evaluation:
        if self._store is not None and (known := self._store.get(task, candidate.id)) is not None:
            return known
        async with self._room:
            self._count(1)
            try:
                found = await self._opened.evaluator.evaluate(task, candidate)
            finally:
                self._count(-1)
        if self._store is not None:
            self._store.put(task, found)
        return found

    def _count(self, change: int) -> None:
        with self._lock:
            now = time.monotonic()
            if self._busy:
                self._judging_s += now - self._since
            self._since = now
            self._busy += change
            self._judged += change > 0


async def tried(
    form: Form, evaluate: "Callable[[Task, Candidate], Awaitable[Evaluation]]", brief: Brief,
    reply: str, *, cut_off: bool = False,
) -> Trial:  # fmt: skip
    """Read one reply and have it judged; the same for every trainer, here and on clusters.

    A parent that was judged on another kind of device is judged again where its child is, and only
    once: a gain is the ratio of two speed-ups, and these are of one machine.
    """
    parent = brief.parent
    shown = tuple(each.evaluation for each in (*brief.inspirations, *brief.failures))
    usual = Trial(
        parent=None if parent is None else parent.evaluation, shown=shown, rejection="unread"
    )
    try:
        source = await asyncio.to_thread(form.source, reply, brief, cut_off=cut_off)
    except Unreadable as error:
        return replace(usual, rejection=str(error) or "unreadable")
    above = None if parent is None else parent.candidate.id
    candidate = Candidate(backend=brief.backend, source=source, parent=above)
    try:
        evaluation = await evaluate(brief.task, candidate)
        passed = evaluation.verdict is Verdict.PASSED
        if parent and passed and not evaluation.device.is_like(parent.evaluation.device):
            usual = replace(usual, parent=await evaluate(brief.task, parent.candidate))
    except EvaluationLost as error:
        return replace(usual, rejection="", lost=str(error) or "lost", source=source)
    return replace(usual, rejection="", evaluation=evaluation, source=source)
