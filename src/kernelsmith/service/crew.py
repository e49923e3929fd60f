"""An evaluator over a few workers, without a server: what a search on a cluster uses."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, EvaluationLost, SmithError, UsageError
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import Settings
from kernelsmith.service.process import Post, Worker, WorkerDied
from kernelsmith.service.station import Hello, Job, Report

T = TypeVar("T")
logger = logging.getLogger(__name__)
_ATTEMPTS = 5
"""Workers that one job may bring down, or that may come back without an answer."""
_STARTS = 3
"""Times in a row that a worker may fail to come up."""


class Crew:
    """Workers that are lent out one job at a time; one that died is replaced, its job redone.

    A job goes to a worker that is up. A replacement may wait for a node that never comes, and
    nobody waits for it as long as others work.
    """

    def __init__(self, posts: Sequence[Post], hire: Callable[[Post], Worker]) -> None:
        """Take places for workers; they are started when the first job comes."""
        self._hire, self._posts = hire, list(posts)
        self._up: dict[int, Worker] = {}
        self._failed: dict[int, SmithError] = {}
        self._device: Device | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._free: asyncio.Queue[int | None] = asyncio.Queue()
        """Posts whose workers are up and have nothing to do; none: look again."""
        self._tasks: set[asyncio.Task[Any]] = set()

    async def connect(self) -> Device:
        """Wait for the first worker and say what it judges on.

        Raises:
            BackendUnavailable: It cannot work there.
            EvaluationLost: No worker came up.
        """
        if self._device is None:
            number = await self._taken()
            self._free.put_nowait(number)
        assert self._device is not None
        return self._device

    async def judge(self, job: Job) -> Evaluation:
        """Judge as soon as a worker is free, again where one died.

        Raises:
            UsageError: The task cannot be judged.
            EvaluationLost: Nobody survived it, or nobody could.
        """
        why = ""
        for _ in range(_ATTEMPTS):
            number = await self._taken()
            # Whoever asked may give up; the worker is free when it has answered, not before.
            task = self._kept(asyncio.create_task(self._work(number, job)))
            try:
                report = await asyncio.shield(task)
            except WorkerDied as error:
                why = str(error)
                continue
            if report.refused:
                raise UsageError(report.refused)
            if report.evaluation is not None:
                return report.evaluation
            why = report.lost
            logger.warning("candidate %s was not judged: %s", job.candidate.id, why)
        raise EvaluationLost(
            f"candidate {job.candidate.id} was not judged in {_ATTEMPTS} attempts: {why}"
        )

    def evaluator(self, settings: Settings) -> "CrewEvaluator":
        """The crew with one way of judging."""
        return CrewEvaluator(self, settings)

    async def close(self) -> None:
        """End every worker. Asked again, it starts new ones."""
        here = self._loop is asyncio.get_running_loop()
        tasks = list(self._tasks) if here else []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        workers, self._up, self._loop = list(self._up.values()), {}, None
        await asyncio.gather(*(worker.stop() for worker in workers))

    async def _taken(self) -> int:
        """Wait for a worker that is up and free."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # one before is over, and nobody holds a worker in it
            self._loop, self._free, self._failed = loop, asyncio.Queue(), {}
            for post in self._posts:
                if post.number in self._up:
                    self._free.put_nowait(post.number)
                else:
                    self._kept(loop.create_task(self._start(post.number)))
        while True:
            if len(self._failed) == len(self._posts):
                self._free.put_nowait(None)  # the next one has to hear it, too
                raise next(iter(self._failed.values()))
            number = await self._free.get()
            if number is not None:
                return number

    async def _work(self, number: int, job: Job) -> Report:
        try:
            report = await self._up[number].judge(job)
        except WorkerDied:
            await self._up.pop(number).stop()
            self._kept(asyncio.create_task(self._start(number)))
            raise
        self._free.put_nowait(number)
        return report

    async def _start(self, number: int) -> None:
        """Bring a worker up, however long that takes, or remember why it cannot be."""
        post = next(each for each in self._posts if each.number == number)
        for attempt in range(1, _STARTS + 1):
            worker = self._hire(post)
            try:
                hello = await worker.start()
                self._check(hello)
            except asyncio.CancelledError:
                await worker.stop()
                raise
            except (WorkerDied, BackendUnavailable, UsageError) as error:
                await worker.stop()
                if isinstance(error, WorkerDied) and attempt < _STARTS:
                    continue
                logger.warning("%s %d has no worker: %s", post.backend, number, error)
                self._failed[number] = error
                self._free.put_nowait(None)
                return
            self._device, self._up[number] = hello.device, worker
            self._free.put_nowait(number)
            return

    def _check(self, hello: Hello) -> None:
        if hello.judge != JUDGE:
            raise UsageError(
                f"a worker judges with {hello.judge!r}, this installation with {JUDGE!r}: their "
                "evaluations do not compare; install the same version everywhere"
            )
        if self._device is not None and hello.device.name != self._device.name:
            raise UsageError(
                f"workers are on {hello.device.name!r} and {self._device.name!r}, whose timings "
                "do not compare; name one kind of device"
            )

    def _kept(self, task: asyncio.Task[T]) -> asyncio.Task[T]:
        """Hold on to a task, and look at what it raised where nobody else does."""
        self._tasks.add(task)

        def over(done: asyncio.Task[T]) -> None:
            self._tasks.discard(done)
            if not done.cancelled():
                done.exception()

        task.add_done_callback(over)
        return task


class CrewEvaluator:
    """A crew with one way of judging."""

    def __init__(self, crew: Crew, settings: Settings) -> None:
        self._crew, self._settings = crew, settings

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Have it judged by whoever is free."""
        return await self._crew.judge(
            Job(task=task, candidate=candidate, baseline=baseline, settings=self._settings)
        )
