"""The protocol: a plan, carried out job by job over workers, and taken up again after anything.

Whatever happened before, records that exist are not made again. So a bench that was interrupted
and taken up has the records of the first part and of the second, as one that was not has.
"""

import asyncio
import signal
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from kernelsmith.bench.crew import LOCAL, Answer, Progress, Staff, Worker
from kernelsmith.bench.entrant import SEARCH
from kernelsmith.bench.job import Job, task_hash
from kernelsmith.bench.ledger import RECORDS, Ledger, Results, read
from kernelsmith.bench.plan import Plan, chosen, jobs_of, names
from kernelsmith.bench.record import Key, Missing, Record
from kernelsmith.bench.suite import Suite, open_suite

LOG = "log"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@dataclass(slots=True)
class Status:
    """Where a bench stands; handed to whoever watches it after every change."""

    total: int
    """Jobs of the plan."""
    before: int
    """Of these, done in earlier sessions."""
    done: int = 0
    missing: int = 0
    spent_usd: float = 0.0
    """On jobs that have a record."""
    paid: dict[Key, float] = field(default_factory=dict)
    """What searches have spent that have none, over all sessions."""
    begun: float = field(default_factory=time.monotonic)
    running: dict[Key, Progress | None] = field(default_factory=dict)
    last: Record | Missing | None = None
    note: str = ""

    @property
    def ended(self) -> int:
        """Jobs with an end, in this session or before."""
        return self.before + self.done + self.missing

    @property
    def left(self) -> int:
        """Jobs without an end, those under way included."""
        return self.total - self.ended

    @property
    def usd(self) -> float:
        """Spent, what is under way or was given up included."""
        return self.spent_usd + sum(self.paid.values())

    @property
    def eta_s(self) -> float | None:
        """At the pace so far."""
        ended = self.done + self.missing
        return (time.monotonic() - self.begun) / ended * self.left if ended else None


Show = Callable[[Status], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a bench ended."""

    results: Results
    stopped: bool = False
    """Whether someone interrupted it."""
    unbegun: int = 0
    """Jobs that were not begun, or not finished, because the money was spent or the time over."""
    fatal: str = ""
    """Why it was ended before its time: no job can work as things are."""


def carried_out(
    plan: Plan, folder: Path, show: Show, *, suite: Suite | None = None,
    staff: Staff | None = None, local: Sequence[str] = LOCAL,
) -> Ended:  # fmt: skip
    """Do what a plan says that has not been done, and return everything that is known.

    Args:
        plan: What to do.
        folder: Where it lies; gone on with where it was begun before.
        show: Called after every change.
        suite: Instead of the one that the plan names.
        staff: Workers for the evaluators that the plan names, where it names some.
        local: The module of a worker that judges on this machine, with its arguments.

    Raises:
        UsageError: The suite is not there, or the folder holds another bench.
    """
    assert (staff is not None) is bool(plan.evaluators)
    suite = suite or open_suite(plan.suite, partial(names, plan.only))
    entries, absent = chosen(plan, suite)
    plan.save(folder)
    with Ledger(folder / RECORDS) as ledger:
        known = read(folder)
        said = {(each.entry, each.reason) for each in known.missing}
        judged = {record.entry for record in known.records}
        new = [
            Missing(entry=gone.id, reason=gone.reason, level=gone.level)
            for gone in absent
            if gone.id not in judged
        ]
        ledger.append(*(each for each in new if (each.entry, each.reason) not in said))
        gpu = None if staff is None else staff.gpu
        jobs = list(jobs_of(plan, suite, entries, folder, gpu=gpu))
        done = {(record.key, record.task) for record in known.records}
        device = _device_of(known.records)
        waiting = [
            replace(job, device=device)
            for job in jobs
            if (_key(job), task_hash(job.task)) not in done
        ]
        status = Status(total=len(jobs), before=len(jobs) - len(waiting))
        crew = _crew(plan, folder / LOG, staff, local, most=max(len(waiting), 1))
        bench = _Bench(plan, ledger, status, show, waiting, crew)
        status.spent_usd = sum(each.cost.usd or 0.0 for each in known.records)
        status.paid |= {_key(job): paid for job in waiting if (paid := job.paid_usd)}
        asyncio.run(bench.go())
    return Ended(
        results=read(folder), stopped=bench.stopped, unbegun=bench.unbegun, fatal=bench.fatal
    )


def _device_of(records: Sequence[Record]) -> str:
    """The device that all of them are of; empty where there are none, or of several."""
    names = {record.device.name for record in records}
    return names.pop() if len(names) == 1 else ""


def _crew(
    plan: Plan, log: Path, staff: Staff | None, local: Sequence[str], *, most: int
) -> list[Worker]:
    """A worker per device or evaluator, more where the plan says so, and not more than jobs."""
    if staff is None:
        devices: tuple[str | None, ...] = plan.devices or (None,)
        count = min(max(len(devices), plan.workers), most)
        return [
            Worker(f"worker{n}", log=log, device=devices[n % len(devices)], module=local)
            for n in range(count)
        ]
    count = min(max(len(staff.modules), plan.workers), most)
    return [
        Worker(f"worker{number}", log=log, module=staff.modules[number % len(staff.modules)])
        for number in range(count)
    ]


_TELL_S = 10.0


class _Bench:
    """One session."""

    def __init__(
        self, plan: Plan, ledger: Ledger, status: Status, show: Show, waiting: Sequence[Job],
        crew: Sequence[Worker],
    ) -> None:  # fmt: skip
        self._plan, self._ledger, self._show = plan, ledger, show
        self.status = status
        self._waiting = deque(waiting)
        self._crew = crew
        self._grants: dict[Key, float] = {}
        """What each search under way may have spent in the end."""
        self._asked = 0
        self.stopped = False
        self.unbegun = 0
        self.fatal = ""

    async def go(self) -> None:
        """Work until nothing waits, or someone asks for the end."""
        with self._by_signals():
            self._tell()
            telling = asyncio.create_task(self._keep_telling())
            try:
                await asyncio.gather(*(self._work(worker) for worker in self._crew))
            finally:
                telling.cancel()
                await asyncio.gather(*(worker.close() for worker in self._crew))

    async def _work(self, worker: Worker) -> None:
        while self._waiting and not self.stopped and not self.fatal:
            if self._is_spent():
                self.unbegun += len(self._waiting)
                self._waiting.clear()
                return
            job = self._waiting.popleft()
            key = _key(job)
            self.status.running[key] = None

            def note(progress: Progress, key: Key = key) -> None:
                self.status.running[key] = progress
                if progress.usd is not None:
                    self.status.paid[key] = progress.usd
                self._tell()

            self._tell()
            before = self.status.paid.get(key, 0.0)
            answer = await worker.do(self._affordable(job), note)
            del self.status.running[key]
            self._grants.pop(key, None)
            self._take(job, answer)
            if answer.unfinished_usd is not None:
                self._go_on_later(job, gained=answer.unfinished_usd > before)
            self._tell()

    def _is_spent(self) -> bool:
        plan, status = self._plan, self.status
        over = time.monotonic() - status.begun
        if plan.max_seconds is not None and over >= plan.max_seconds:
            return True
        return plan.max_usd is not None and status.usd >= plan.max_usd

    def _affordable(self, job: Job) -> Job:
        """A search may spend what is left, and no more; searches side by side share it."""
        if self._plan.max_usd is None or job.kind != SEARCH:
            return job
        key, paid = _key(job), self.status.paid
        promised = sum(max(0.0, usd - paid.get(one, 0.0)) for one, usd in self._grants.items())
        left = max(0.0, self._plan.max_usd - self.status.usd - promised)
        idle = len(self._crew) - len(self.status.running) + 1
        self._grants[key] = paid.get(key, 0.0) + left / idle
        return replace(job, grant_usd=self._grants[key])

    def _take(self, job: Job, answer: Answer) -> None:
        status = self.status
        if answer.record is not None:
            self._ledger.append(answer.record)
            status.done += 1
            status.spent_usd += answer.record.cost.usd or 0.0
            status.paid.pop(_key(job), None)
            status.last = answer.record
        elif answer.missing:
            missing = Missing(
                entry=job.entry, entrant=job.entrant, seed=job.seed, level=job.level,
                reason=answer.missing, fault=answer.fault, task=task_hash(job.task),
            )  # fmt: skip
            self._ledger.append(missing)
            status.missing += 1
            status.last = missing
        elif answer.fatal:
            self.fatal = answer.fatal
        elif answer.unfinished_usd is not None:
            status.paid[_key(job)] = answer.unfinished_usd
        else:
            self.stopped = True

    def _go_on_later(self, job: Job, *, gained: bool) -> None:
        """Take a search up again with what others have left over, if it got anywhere."""
        if gained:
            self._waiting.appendleft(job)
        else:
            self.unbegun += 1

    def _stop(self) -> None:
        """First Ctrl-C: finish what is under way in the searches; second: do not; third: kill."""
        self._asked += 1
        self.stopped = True
        notes = (
            "stopping: what is under way is finished first; Ctrl-C again stops at once",
            "stopping at once",
            "ending every process",
        )
        self.status.note = notes[min(self._asked, 3) - 1]
        for worker in self._crew:
            if self._asked < 3:
                worker.stop()
            else:
                worker.kill()
        self._tell()

    def _tell(self) -> None:
        """Say how far it is; where whoever looked on is gone, the work goes on without."""
        try:
            self._show(self.status)
        except BrokenPipeError:
            self._show = _to_nobody

    async def _keep_telling(self) -> None:
        """Long jobs pass without news: whoever shows them may say so."""
        while True:
            await asyncio.sleep(_TELL_S)
            self._tell()

    @contextmanager
    def _by_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        try:
            for each in _SIGNALS:
                loop.add_signal_handler(each, self._stop)
        except (ValueError, RuntimeError):  # not the main thread: nobody can interrupt
            yield
            return
        try:
            yield
        finally:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)


def _to_nobody(_: Status) -> None:
    """In the place of a display that is gone."""


def _key(job: Job) -> Key:
    return Key(job.entrant, job.entry, job.seed)
