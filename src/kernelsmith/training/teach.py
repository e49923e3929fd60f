"""A teacher over many tasks: a few cheap steps each, as many judged steps a minute as can be.

What `optimize --suite` does once a task is done once for all here: processes are warm, judges stay
open over tasks, and several tasks are under way, so that one is built while another is timed.
Interrupted at any time, the same call goes on; ``progress.jsonl`` says what is finished.
"""

import asyncio
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.run.config import RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.loop import Run
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.progress import Progress
from kernelsmith.run.simulated import DEVICE, SimulatedEvaluator
from kernelsmith.run.start import JOURNAL, Judges, resume, settings_of, start
from kernelsmith.training.evolve import MakeProposer, OpenJudges

PROGRESS = "progress.jsonl"
_UNJUDGED = {each.value for each in (Outcome.DUPLICATE, Outcome.REJECTED, Outcome.LOST)}
_LOOK_S = 0.2
_SAY_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Lessons:
    """How much is taught, and how."""

    run: RunConfig
    """Its budget is that of each task."""
    until: int | None = None
    """Judged steps in the folder that are enough, those of earlier calls counted."""
    slow_ones: bool = True
    """Whether tasks come at all for which the teacher is not ready at once."""
    lanes: int = 2
    """Tasks under way at a time, each with a judge of its own."""
    max_seconds: float | None = None

    def __post_init__(self) -> None:
        if self.lanes < 1 or (self.until is not None and self.until < 1):
            raise UsageError("a teacher has at least one lane, and something to do")


@dataclass(frozen=True, slots=True, kw_only=True)
class Taught:
    """What is in the folder now, and what this call brought."""

    judged: int
    """Steps with a verdict of their own, over all calls: no rejections, no duplicates."""
    new: int
    """Of them, those of this call."""
    tasks: int
    """Finished, over all calls."""
    skipped: int
    waiting: int
    """Tasks that the teacher was not ready for, and that it was not to wait for."""
    seconds: float
    interrupted: bool
    late: bool
    """Whether its time was over."""


class Teaching:
    """One call. ``go`` blocks; ``stop`` may be called from a signal's handler.

    Args:
        tasks: Names and how to get them; a task is loaded when its turn comes.
        folder: Gets a run's folder for each task.
        lessons: How much.
        proposer_for: The teacher, made anew for each task.
        ready: Whether it can begin at once; where it cannot, the task waits for the others.
        say: Told where it stands, now and then.
        judges: Opens those of a lane, by its number; processes on this machine if not given.
        device: What they judge on; this machine if not given.
    """

    def __init__(
        self, tasks: Sequence[tuple[str, Callable[[], Task]]], folder: Path, lessons: Lessons,
        proposer_for: MakeProposer, *, ready: Callable[[Task], bool] = lambda _: True,
        say: Callable[[str], None] = lambda _: None,
        judges: Callable[[int], OpenJudges] | None = None, device: Device | None = None,
    ) -> None:  # fmt: skip
        self._judges, self._device = judges or self._local, device
        self._folder, self._lessons, self._proposer_for, self._say = (
            folder, lessons, proposer_for, say,
        )  # fmt: skip
        self._ready = ready
        self._late: list[tuple[str, Callable[[], Task]]] = []
        """Tasks for which the teacher was not ready."""
        self._before = _read(folder / PROGRESS)
        wanted = lessons.run.budget.steps
        self._waiting = [
            each for each in tasks
            if (done := self._before.get(each[0])) is None
            or (not done.why and done.steps < wanted)
        ][::-1]  # fmt: skip
        self._finished = {name for name, done in self._before.items() if not done.why}
        self._skipped = {name for name, done in self._before.items() if done.why}
        self._judged: Counter[str] = Counter({n: each.judged for n, each in self._before.items()})
        self._lock = threading.Lock()
        self._runs: dict[int, tuple[asyncio.AbstractEventLoop, Run]] = {}
        self._stops = 0
        self._trouble: list[BaseException] = []

    def stop(self) -> None:
        """End soon: what is under way is finished first; the second time it is not."""
        self._stops += 1
        for loop, run in list(self._runs.values()):
            loop.call_soon_threadsafe(run.stop)

    def go(self) -> Taught:
        """Teach until enough is taught, nothing is left, the time is over, or ``stop``.

        Raises:
            UsageError: The folder cannot be written, or nothing can be judged here.
        """
        began, already = time.monotonic(), self._judged.total()
        self._folder.mkdir(parents=True, exist_ok=True)
        device = self._device or _device(self._lessons.run.backend)
        lanes = [
            threading.Thread(target=self._lane, args=(number, device), daemon=True)
            for number in range(self._lessons.lanes)
        ]
        for each in lanes:
            each.start()
        said, late = began, False
        while any(each.is_alive() for each in lanes):
            time.sleep(_LOOK_S)
            now = time.monotonic()
            if not late and not self._stops and self._is_late(now - began):
                late = True
                self.stop()
            if now - said > _SAY_S:
                said = now
                self._say(self._standing(already, now - began))
        if self._trouble:
            raise self._trouble[0]
        return Taught(
            judged=self._judged.total(), new=self._judged.total() - already,
            tasks=len(self._finished), skipped=len(self._skipped), waiting=len(self._late),
            seconds=time.monotonic() - began, late=late, interrupted=self._stops > late,
        )  # fmt: skip

    def _is_late(self, seconds: float) -> bool:
        return self._lessons.max_seconds is not None and seconds > self._lessons.max_seconds

    def _is_enough(self) -> bool:
        return self._lessons.until is not None and self._judged.total() >= self._lessons.until

    def _standing(self, already: int, seconds: float) -> str:
        judged = self._judged.total()
        of = f" of {self._lessons.until}" if self._lessons.until is not None else ""
        pace = (judged - already) / seconds * 60
        return (
            f"{judged}{of} judged steps, {len(self._finished)} tasks done, "
            f"{len(self._waiting) + len(self._late)} waiting, {pace:.1f} steps a minute"
        )

    def _lane(self, number: int, device: Device) -> None:
        """One after the other. In a thread, where a run listens to no signals of its own."""
        try:
            asyncio.run(self._all(number, device))
        except BaseException as error:  # belongs to whoever waits for the lanes
            self._trouble.append(error)
            self.stop()

    async def _all(self, number: int, device: Device) -> None:
        async with AsyncExitStack() as opened:
            judges = self._judges(number)(opened)
            while (chosen := self._next()) is not None:
                await self._one(number, *chosen, judges=judges, device=device)

    def _local(self, _: int) -> OpenJudges:
        run = self._lessons.run

        def opened(stack: AsyncExitStack) -> Judges:
            if run.backend == "null":
                return Judges(evaluator=SimulatedEvaluator())
            settings = settings_of(run.effort, run)
            pool = LocalPool(run.backend, usual=settings, thorough=settings, size=1)
            stack.push_async_callback(pool.close)
            return Judges(evaluator=pool.evaluator)

        return opened

    def _next(self) -> tuple[str, Callable[[], Task], bool] | None:
        """Name, how to get it, and whether it had to wait before."""
        with self._lock:
            if self._stops or self._is_enough():
                return None
            if self._waiting:
                return *self._waiting.pop(), False
            return (*self._late.pop(0), True) if self._late and self._lessons.slow_ones else None

    async def _one(
        self, number: int, name: str, load: Callable[[], Task], waited: bool, *, judges: Judges,
        device: Device,
    ) -> None:  # fmt: skip
        place = self._folder / name
        begun = (place / JOURNAL).is_file()
        try:
            task = await asyncio.to_thread(load)
            if not waited and not begun and not self._ready(task):
                self._late.append((name, lambda: task))
                return
            run = self._opened(name, task, place, judges, device)
            self._runs[number] = asyncio.get_running_loop(), run
            for _ in range(self._stops):  # asked for between two tasks
                run.stop()
            result = await run.go()
        except UsageError as error:
            why = " ".join(str(error).split())[:300]
            if begun:  # somebody else may be writing it; another call may go on
                self._say(f"{name}: {why}")
            else:
                self._note(_Done(task=name, why=why))
            return
        finally:
            self._runs.pop(number, None)
        if result.stopped:
            return
        why = "" if self._judged[name] else _nothing_judged(place)
        self._note(_Done(task=name, steps=result.steps, judged=self._judged[name], why=why))

    def _opened(self, name: str, task: Task, place: Path, judges: Judges, device: Device) -> Run:
        config, proposer = self._lessons.run, self._proposer_for(task, place)

        def watch(progress: Progress) -> None:
            ends = dict(progress.verdicts)
            self._judged[name] = sum(n for end, n in ends.items() if end not in _UNJUDGED)

        if (place / JOURNAL).is_file():
            ends = Counter(each.placement.outcome.value for each in read(place / JOURNAL).steps)
            self._judged[name] = sum(n for end, n in ends.items() if end not in _UNJUDGED)
            return resume(place, proposer_of=lambda _: proposer, budget=config.budget,
                          judges=judges, watch=watch)  # fmt: skip
        return start(task, place, config, proposer=proposer, judges=judges, device=device,
                     watch=watch)  # fmt: skip

    def _note(self, done: "_Done") -> None:
        with self._lock:
            (self._skipped if done.why else self._finished).add(done.task)
            with (self._folder / PROGRESS).open("a", encoding="utf-8") as file:
                file.write(json.dumps(done.to_json()) + "\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """A task that is finished, or why it never will be."""

    task: str
    steps: int = 0
    judged: int = 0
    why: str = ""

    def to_json(self) -> dict[str, object]:
        said = {"task": self.task, "steps": self.steps, "judged": self.judged, "why": self.why}
        return {key: value for key, value in said.items() if value}


def _read(path: Path) -> dict[str, _Done]:
    found: dict[str, _Done] = {}
    if not path.is_file():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            done = _Done(**json.loads(line))
        except (TypeError, ValueError):
            continue  # torn by whatever ended the call before
        # A task may be given up after it was begun: what it had judged until then counts.
        if done.why and done.task in found:
            done = replace(found[done.task], why=done.why)
        found[done.task] = done
    return found


def _nothing_judged(place: Path) -> str:
    """Why a run that ended has no step with a verdict."""
    steps = read(place / JOURNAL).steps
    said = next((each.proposal.rejection for each in steps if each.proposal.rejection), "")
    return f"nothing of it was judged{': ' if said else ''}{' '.join(said.split())[:200]}"


def _device(backend: str) -> Device:
    if backend == "null":
        return DEVICE
    opened = load_backend(backend)
    try:
        return opened.device()
    finally:
        opened.close()
