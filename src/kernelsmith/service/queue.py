"""The queue: requests go in from clients, out to workers, and are answered exactly once.

An attempt is a number that the store counts up when it hands a request out. Only the attempt that
runs may answer; whatever else comes in is late and goes nowhere.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, LabelName, Verdict
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service.bell import Bell
from kernelsmith.service.limits import Limits, TooMuch
from kernelsmith.service.line import Line, Turn
from kernelsmith.service.metrics import Metrics
from kernelsmith.service.station import Report
from kernelsmith.service.store import Order, Store
from kernelsmith.service.wire import Request, State, Ticket, content_of
from kernelsmith.service.writer import StoreUnavailable, Writer

T = TypeVar("T")
logger = logging.getLogger(__name__)
_AGAIN_S = 1.0
"""How long to wait before a disk that was full is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How often a request is tried, and how long it is kept."""

    faults: int = 5
    """Workers that one request may bring down before it is quarantined; more than it takes to
    find a device sick (``Care.sick_after``), or requests are blamed for devices."""
    attempts: int = 20
    """Attempts in all: a server that dies again and again may have a reason."""
    keep_s: float = 24 * 3600.0
    """How long answers, cached evaluations and quarantines last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A request in the hands of a worker."""

    turn: Turn
    order: Order


class Queue:
    """Store, line and bell together. Used from one event loop."""

    def __init__(
        self,
        path: Path,
        *,
        limits: Limits,
        rules: Rules,
        metrics: Metrics,
        most_bytes: int | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._limits, self._rules, self._metrics, self._clock = limits, rules, metrics, clock
        store = Store(path, most_bytes=most_bytes)
        self._line = Line()
        self.bell = Bell()
        self._fresh = asyncio.Condition()
        recovered = self._recover(store)
        if recovered:
            logger.warning("%d requests were under way at the last end; they wait again", recovered)
        self._writer = Writer(store)
        self._reader = Store(path, readonly=True)

    def _recover(self, store: Store) -> int:
        store.begin()
        recovered = store.recover()
        now = self._clock()
        for entry, attempt, faults in list(store.waiting()):
            if faults >= self._rules.faults or attempt >= self._rules.attempts:
                store.give_up(entry.seq, State.QUARANTINED, message=_poison(attempt), now=now)
            else:
                self._line.put(entry)
        store.prune(before=now - self._rules.keep_s)
        store.commit()
        return recovered

    def __len__(self) -> int:
        return len(self._line)

    @property
    def line(self) -> Line:
        """The order of what waits."""
        return self._line

    async def close(self) -> None:
        """Write what is to be written, and close the store."""
        await asyncio.to_thread(self._writer.close)
        self._reader.close()

    # For clients.

    async def submit(
        self, client: str, requests: Sequence[Request], devices: Mapping[str, Collection[Device]]
    ) -> list[Ticket]:
        """Take requests in, all or none; when this returns, they last.

        Args:
            client: Who asks.
            requests: What for; checked already.
            devices: Those that are up, by backend: where the cache may have an answer from.

        Raises:
            TooMuch: Too many wait already.
            KeyTaken: A key was used for something else.
            StoreUnavailable: Nothing can be written.
        """
        limits = self._limits
        if len(self._line) + len(requests) > limits.queued:
            raise TooMuch(f"{limits.queued} requests wait already", 5.0)
        if self._line.waiting(client) + len(requests) > limits.queued_each:
            raise TooMuch(f"{limits.queued_each} requests of yours wait already", 5.0)
        now = self._clock()
        contents = [_contents(each, devices) for each in requests]
        taken = await self._writer.do(
            lambda store: store.submit(client, requests, now=now, contents=contents)
        )
        for each in taken:
            if each.entry is not None:
                self._line.put(each.entry)
                self._metrics.count("submitted_total")
            elif each.ticket.cached:
                self._metrics.count("cache_hits_total")
        if any(each.entry is not None for each in taken):
            await self._wake()
        return [each.ticket for each in taken]

    def ticket(self, client: str, id: str) -> Ticket | None:
        """What became of a request; none where this client has none of this id."""
        return self._reader.ticket(client, id)

    async def wait(self, client: str, id: str, timeout_s: float) -> Ticket | None:
        """The same, when it is over or the time is."""
        with self.bell.watching([id]) as watch:
            ticket = self.ticket(client, id)
            if ticket is None or ticket.state.is_final or timeout_s <= 0:
                return ticket
            await watch.next(timeout_s)
        return self.ticket(client, id)

    async def cancel(self, client: str, id: str) -> Ticket | None:
        """End a request that is not over; it leaves the line when its turn comes."""
        now = self._clock()
        ticket, ended = await self._writer.do(lambda store: store.cancel(client, id, now=now))
        if ended:
            self._over(id, State.CANCELLED)
        return ticket

    def id_of(self, client: str, key: str) -> str | None:
        """Which request a client's key stands for."""
        return self._reader.id_of(client, key)

    def quarantined(self) -> list[Mapping[str, str | float]]:
        """Which candidates are not tried any more, and why."""
        return self._reader.quarantined()

    async def release(self, candidate: str) -> int:
        """Let a candidate be tried again."""
        return await self._writer.do(lambda store: store.release(candidate))

    # For workers.

    async def take(
        self, backend: str, device: Device, *, warm: Collection[str], last: Turn | None, row: int
    ) -> Held:
        """Wait for the next request for a device and hand it out under a new attempt."""
        while True:
            turn = self._line.take(backend, device.name, warm=warm, last=last, row=row)
            if turn is None:
                async with self._fresh:
                    await self._fresh.wait()
                continue
            held = await self._handed(turn, device)
            if held is not None:
                return held

    async def _handed(self, turn: Turn, device: Device) -> Held | None:
        """Start an attempt, unless the request is over or the cache knows the answer by now."""
        try:
            order = await self._writer.do(lambda store: store.start(turn.entry.seq))
        except StoreUnavailable:
            self._line.put(turn.entry, first=True)
            self._line.charge(turn, 0.0)
            await asyncio.sleep(_AGAIN_S)
            return None
        if order is None:  # cancelled
            self._line.charge(turn, 0.0)
            return None
        held = Held(turn=turn, order=order)
        if order.cache:
            line = self._reader.cached(content_of(order.subject, device, JUDGE))
            if line is not None:
                self._metrics.count("cache_hits_total")
                await self._finish(held, State.DONE, line=line, cached=True)
                self._line.charge(turn, 0.0)
                return None
        self._metrics.count("attempts_total")
        if order.attempt == 1:
            self._metrics.span("wait_seconds", max(0.0, self._clock() - order.created))
        return held

    async def answer(self, held: Held, report: Report, seconds: float) -> None:
        """Write down what a worker said; a disk that is full is waited for."""
        self._line.charge(held.turn, seconds)
        self._metrics.span("judge_seconds", seconds)
        if report.refused:
            await self._finish(held, State.REFUSED, message=report.refused)
            return
        found, line = report.evaluation, report.line
        assert found is not None
        assert line is not None
        self._metrics.count("verdicts_total", verdict=found.verdict.value)
        content = content_of(held.order.subject, found.device, found.judge)
        await self._finish(
            held, State.DONE, line=line, content=content if is_lasting(found) else None
        )

    async def fault(self, held: Held, why: str, seconds: float, *, died: bool) -> None:
        """Let a request wait again whose attempt brought no answer, or give it up.

        Args:
            held: What the worker had.
            why: What happened, for whoever asked.
            seconds: How long it took.
            died: Whether the worker went down with it: then nobody tries it again in the end.
        """
        self._line.charge(held.turn, seconds)
        self._metrics.count("faults_total", why="died" if died else "lost")
        order = held.order
        faults = await self._insist(
            lambda store: store.give_back(order.seq, order.attempt, fault=True)
        )
        if faults is None:  # cancelled meanwhile
            return
        if faults < self._rules.faults and order.attempt < self._rules.attempts:
            self._line.put(held.turn.entry)  # at the end: others show whether it was the device
            await self._wake()
            return
        state = State.QUARANTINED if died else State.LOST
        now, message = self._clock(), f"{_poison(order.attempt)}; the last time: {why}"
        if not died:
            message = f"not judged in {order.attempt} attempts; the last time: {why}"
        id = await self._insist(
            lambda store: store.give_up(order.seq, state, message=message, now=now)
        )
        if id is not None:
            logger.warning("candidate %s is given up: %s", order.candidate.id, message)
            self._over(id, state)

    async def forgive(self, seqs: Sequence[int]) -> None:
        """Take back faults that were a device's."""
        await self._insist(lambda store: store.forgive(seqs))

    async def prune(self) -> int:
        """Forget what was answered long ago."""
        before = self._clock() - self._rules.keep_s
        return await self._insist(lambda store: store.prune(before=before))

    async def _finish(
        self, held: Held, state: State, *, message: str = "", line: str | None = None,
        cached: bool = False, content: str | None = None,
    ) -> None:  # fmt: skip
        order, now = held.order, self._clock()

        def operation(store: Store) -> bool:
            if content is not None and line is not None:
                store.remember(content, line, now=now)
            return store.finish(
                order.seq, order.attempt, state, now=now, message=message, line=line, cached=cached
            )

        if await self._insist(operation):
            self._over(order.id, state)
        else:
            self._metrics.count("late_total")

    def _over(self, id: str, state: State) -> None:
        self._metrics.count("finished_total", state=state.value)
        self.bell.ring(id)

    async def _insist(self, operation: Callable[[Store], T]) -> T:
        """Do what must be done, however long the disk is full: the worker waits meanwhile."""
        while True:
            try:
                return await self._writer.do(operation)
            except StoreUnavailable as error:
                logger.warning("%s; trying again", error)
                await asyncio.sleep(_AGAIN_S)

    async def _wake(self) -> None:
        async with self._fresh:
            self._fresh.notify_all()


def is_lasting(found: Evaluation) -> bool:
    """Whether the same again would say the same: not where a busy machine may have decided."""
    if found.verdict in (Verdict.CRASHED, Verdict.TIMED_OUT):
        return False
    return not found.has(LabelName.NOISY) and not found.has(LabelName.THROTTLED)


def _contents(request: Request, devices: Mapping[str, Collection[Device]]) -> list[str]:
    if not request.cache:
        return []
    subject = request.subject
    return [
        content_of(subject, device, JUDGE)
        for device in devices.get(request.candidate.backend, ())
        if request.device in (None, device.name)
    ]


def _poison(attempts: int) -> str:
    return f"no worker survived it in {attempts} attempts; it is quarantined"
