"""The supervisor: a worker at every post, sick devices taken out, dead workers replaced."""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelsmith.domain.device import Device
from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service.line import Turn
from kernelsmith.service.metrics import Metrics
from kernelsmith.service.process import Post, Worker, WorkerDied
from kernelsmith.service.queue import Held, Queue
from kernelsmith.service.scrub import Scrub
from kernelsmith.service.station import Hello, Job
from kernelsmith.service.wire import DeviceStatus

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Care:
    """When a device is sick, and how long it rests."""

    sick_after: int = 3
    """Faults in a row. Where all are one request's, the device shows first whether it can still
    judge what it judged last; if it can, it was the request."""
    rest_s: float = 30.0
    """Doubled each time until it answers again."""
    most_rest_s: float = 600.0


class Stand:
    """One post: a worker there, what it did, and how it is."""

    def __init__(
        self, post: Post, *, queue: Queue, hire: Callable[[Post], Worker], care: Care,
        metrics: Metrics,
    ) -> None:  # fmt: skip
        self.post = post
        self._queue, self._hire, self._care, self._metrics = queue, hire, care, metrics
        self._scrub = Scrub()
        self._state, self._message = "starting", ""
        self._hello: Hello | None = None
        self._judged = self._faults = 0
        self._streak: list[int] = []
        """Requests that came back without an answer since the last one that did not."""
        self._proof: Job | None = None
        """What was judged here last, and can be again if the device is well."""
        self._rest_s = care.rest_s
        self.is_free = True
        """Whether ending it now would interrupt nobody."""

    @property
    def status(self) -> DeviceStatus:
        """As a client sees it."""
        return DeviceStatus(
            backend=self.post.backend, number=self.post.number, state=self._state,
            device=None if self._hello is None else self._hello.device, message=self._message,
            judged=self._judged, faults=self._faults,
        )  # fmt: skip

    async def run(self) -> None:
        """Keep a worker here until cancelled."""
        try:
            while True:
                worker = self._hire(self.post)
                try:
                    if hello := await self._started(worker):
                        await self._serve(worker, hello)
                finally:
                    await worker.stop()
                if self._state == "sick":
                    await asyncio.sleep(self._rest_s)
                    self._rest_s = min(2 * self._rest_s, self._care.most_rest_s)
        finally:
            self._state = "stopped"

    async def _started(self, worker: Worker) -> Hello | None:
        self._metrics.count("worker_starts_total")
        try:
            hello = await worker.start()
        except (BackendUnavailable, WorkerDied) as error:
            self._sick(self._scrub.text(str(error)))
            return None
        if hello.judge != JUDGE:
            self._sick(f"it judges with {hello.judge}, this server with {JUDGE}")
            return None
        self._hello, self._state = hello, "up"
        return hello

    async def _serve(self, worker: Worker, hello: Hello) -> None:
        """Hand over one request after the other until the worker fails."""
        if len(self._streak) >= self._care.sick_after and not await self._proven(worker):
            return
        warm: OrderedDict[str, None] = OrderedDict()
        last: Turn | None = None
        row = 0
        while True:
            held = await self._queue.take(
                self.post.backend, hello.device, warm=warm, last=last, row=row
            )
            task = held.turn.entry.task
            row = row + 1 if last is not None and last.entry.task == task else 1
            last = held.turn
            warm[task] = None
            warm.move_to_end(task)
            while len(warm) > hello.references:
                warm.popitem(last=False)
            self.is_free = False
            try:
                if not await self._judged_one(worker, held):
                    return
            finally:
                self.is_free = True

    async def _judged_one(self, worker: Worker, held: Held) -> bool:
        """Judge one request; returns whether the worker can go on."""
        order, begun = held.order, time.monotonic()
        job = Job(
            task=order.task, candidate=order.candidate, baseline=order.baseline,
            settings=order.settings,
        )  # fmt: skip
        try:
            report = await worker.judge(job)
        except WorkerDied as error:
            await self._faulted(held, str(error), time.monotonic() - begun, died=True)
            return False
        seconds = time.monotonic() - begun
        if report.lost:
            await self._faulted(held, report.lost, seconds, died=False)
            return False
        self._judged += 1
        self._streak.clear()
        self._rest_s, self._message, self._proof = self._care.rest_s, "", job
        await self._queue.answer(held, report, seconds)
        return True

    async def _faulted(self, held: Held, why: str, seconds: float, *, died: bool) -> None:
        why = self._scrub.text(why)
        self._faults += 1
        self._message = why
        self._streak.append(held.order.seq)
        await self._queue.fault(held, why, seconds, died=died)
        many = len(set(self._streak)) > 1 or self._proof is None
        if len(self._streak) >= self._care.sick_after and many:
            await self._give_up(why)

    async def _proven(self, worker: Worker) -> bool:
        """Judge again what was judged here last; if that fails too, it was the device."""
        assert self._proof is not None
        try:
            report = await worker.judge(self._proof)
        except WorkerDied as error:
            await self._give_up(str(error))
            return False
        if report.lost:
            await self._give_up(report.lost)
            return False
        self._streak.clear()
        return True

    async def _give_up(self, why: str) -> None:
        """Take the device out; what it did to requests is not theirs."""
        blamed, self._streak = self._streak, []
        self._sick(f"{len(blamed)} requests in a row came back unjudged: {self._scrub.text(why)}")
        await self._queue.forgive(blamed)

    def _sick(self, why: str) -> None:
        self._state, self._message = "sick", why
        logger.warning(
            "%s %d is taken out for %.0f s: %s",
            self.post.backend, self.post.number, self._rest_s, why,
        )  # fmt: skip


class Fleet:
    """All posts of one server."""

    def __init__(
        self, posts: Sequence[Post], *, queue: Queue, hire: Callable[[Post], Worker],
        care: Care, metrics: Metrics,
    ) -> None:  # fmt: skip
        self._stands = [
            Stand(post, queue=queue, hire=hire, care=care, metrics=metrics) for post in posts
        ]
        self._running: dict[asyncio.Task[None], Stand] = {}

    @property
    def backends(self) -> tuple[str, ...]:
        """What can be judged here, whether it is up or not."""
        return tuple(sorted({stand.post.backend for stand in self._stands}))

    def statuses(self) -> tuple[DeviceStatus, ...]:
        """How each post is."""
        return tuple(stand.status for stand in self._stands)

    def devices(self) -> dict[str, set[Device]]:
        """Devices that have been up, by backend."""
        found: dict[str, set[Device]] = {}
        for status in self.statuses():
            if status.device is not None:
                found.setdefault(status.backend, set()).add(status.device)
        return found

    def start(self) -> None:
        """Man every post."""
        for stand in self._stands:
            task = asyncio.create_task(stand.run())
            task.add_done_callback(_tell_of_defects)
            self._running[task] = stand

    async def stop(self, grace_s: float) -> None:
        """Let what is being judged be finished, for so long, and end all workers."""
        tasks = dict(self._running)
        self._running.clear()
        for task, stand in tasks.items():
            if stand.is_free:
                task.cancel()
        busy = [task for task, stand in tasks.items() if not stand.is_free]
        deadline = time.monotonic() + grace_s
        while busy and time.monotonic() < deadline:
            await asyncio.sleep(0.05)
            for task in busy:
                if tasks[task].is_free:
                    task.cancel()
            busy = [task for task in busy if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell_of_defects(task: asyncio.Task[None]) -> None:
    """Nothing but being cancelled ends a post; if something does, it must not go unseen."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.error("a post ended: %r", error, exc_info=error)
