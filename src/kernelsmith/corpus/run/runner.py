"""The execution filter from outside: a zygote with torch, a confined child per module, limits."""

import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import cast

from kernelsmith.corpus.run.order import COPY, groups, waves
from kernelsmith.corpus.store import Record, Stage, Store
from kernelsmith.domain.codec import Json
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.sandbox.errors import ChildFailed, ChildTimedOut
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.process import Zygote

_ENTRY = "kernelsmith.corpus.run.child:serve"
_PRELOAD = ("torch", "torch._dynamo", "kernelsmith.corpus.run.child")
_LIMITS = Limits(memory_bytes=4 << 30, scratch_bytes=16 << 20, threads=16, output_bytes=4 << 20)
TIMEOUT_S = 12.0
_AT_ONCE = 64
_GRAPH_S = 8.0
UNTRIED = "copy of some that do not run"
FIXTURE = "is a test fixture"
_FIXTURE = re.compile(
    r"(?:.*[:/])?(?:(?:tests?|test_utils|testing)(?:\.py)?[/:].*|test_\w*\.py:.*|\w+_test\.py:.*)"
    r"|.*:Test[A-Z_0-9]\w*"
)

Progress = Callable[[int, int, int], None]
"""Told after every module: done, in all, kept."""


class Runner:
    """Runs extracted modules, several at a time; each in a process of its own."""

    def __init__(self, *, timeout_s: float = TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._zygote: Zygote | None = None

    def close(self) -> None:
        """End all processes."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    def _ready(self) -> Zygote:
        with self._lock:
            if self._zygote is None or not self._zygote.alive:
                self._zygote = Zygote(preload=_PRELOAD)
            return self._zygote

    def _patience(self) -> float:
        """Longer on a busy machine, or its neighbours would turn modules away."""
        crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
        return self._timeout_s * min(max(1.0, crowd), 5.0)

    def run(self, record: Record) -> Record:
        """Examine one extracted module; whatever it does becomes a record."""
        if is_fixture(record.key):
            return Record(key=record.key, reason=FIXTURE)
        return self.ask(record.key, {"job": job_of(record)})

    def check(self, key: str, text: str) -> Record:
        """Check a finished task file."""
        return self.ask(key, {"check": text})

    def graph(self, key: str, text: str) -> str:
        """The hash of a task's graph; empty where it cannot be had."""
        return self.ask(key, {"graph": text}, timeout_s=_GRAPH_S).text("graph")

    def ask(
        self, key: str, message: Mapping[str, object], *, timeout_s: float | None = None
    ) -> Record:
        """Have one child answer one request."""
        began = time.monotonic()
        patience = timeout_s or self._patience()
        try:
            with self._ready().spawn(entry=_ENTRY, limits=_LIMITS) as child:
                answer = child.call(message, timeout_s=patience)
        except ChildTimedOut:
            answer = {"reason": "takes too long", "detail": f"{patience:.0f} s"}
        except ChildFailed as error:
            answer = {"reason": "ends its process", "detail": str(error)[:300]}
        spent = round(time.monotonic() - began, 3)
        return _record(key, answer, spent)


@contextmanager
def lent(runner: Runner | None) -> Iterator[Runner]:
    """Use a runner that is there, or one of our own for the length of a block."""
    if runner is not None:
        yield runner
        return
    own = Runner()
    try:
        yield own
    finally:
        own.close()


def is_fixture(key: str) -> bool:
    """Whether a class was written to test something else with, by its file or its name."""
    return _FIXTURE.fullmatch(key) is not None


def job_of(record: Record) -> dict[str, object]:
    """What the sandbox is told about one module."""
    keys = ("root", "init", "forward", "shapes", "config", "config_values", "examples")
    about = record.key.replace('"', "'").replace("\\", "/")
    return {
        **{key: record.data[key] for key in keys},
        "source": record.text("code"),
        "about": about,
    }


def _record(key: str, answer: dict[str, object], spent: float) -> Record:
    reason, detail = str(answer.pop("reason", "")), str(answer.pop("detail", ""))
    if not reason and not isinstance(answer.get("code"), str):
        reason, detail = "ends its process", "its answer is not one of ours"
    data = cast(dict[str, Json], {**answer, "spent": spent})
    return Record(key=key, reason=reason, detail=detail[:300], data=data)


def run(store: Store, *, processes: int, progress: Progress, most: int | None = None) -> float:
    """Run extracted modules that were not run yet, one of each group of near copies first.

    Returns the seconds it took. A text that occurs twice is run once.
    """
    extracted = store.need("extract")
    stage = store.stage("run")
    began = time.monotonic()
    done = {record.key: record.kept for record in stage}
    distinct = _distinct(extracted)
    for record in distinct:
        if is_fixture(record.key) and record.key not in done:
            stage.add(Record(key=record.key, reason=FIXTURE))
    # Left out here, so that none of them stands for copies that people use.
    found = groups([record for record in distinct if not is_fixture(record.key)])
    count = kept = 0
    runner = Runner()
    try:
        while most is None or count < most:
            todo = waves(found, done)[0]
            if not todo:
                break
            todo = todo[: None if most is None else most - count]
            total = count + len(todo)
            for record in _parallel(runner, todo, processes):
                stage.add(record)
                done[record.key] = record.kept
                count += 1
                kept += record.kept
                progress(count, total, kept)
        if most is None:
            ran = {r.key: next((o.key for o in each if done.get(o.key)), "")
                   for each in found for r in each}  # fmt: skip
            for record in waves(found, done)[1]:
                reason = COPY if ran[record.key] else UNTRIED
                stage.add(Record(key=record.key, reason=reason, detail=ran[record.key]))
    finally:
        runner.close()
        stage.close()
    return time.monotonic() - began


def _distinct(extracted: Stage) -> list[Record]:
    seen: set[str] = set()
    found = []
    for record in extracted.kept():
        if not record.key.endswith("!file") and record.text("hash") not in seen:
            seen.add(record.text("hash"))
            found.append(record)
    return found


def _parallel(runner: Runner, todo: Sequence[Record], processes: int) -> Iterator[Record]:
    with ThreadPoolExecutor(processes) as pool:
        for start in range(0, len(todo), _AT_ONCE):
            futures = [pool.submit(_one, runner, each) for each in todo[start : start + _AT_ONCE]]
            for future in as_completed(futures):
                yield future.result()


def _one(runner: Runner, record: Record) -> Record:
    for attempt in (1, 2):
        try:
            return runner.run(record)
        except EvaluationLost as error:
            if attempt == 2:
                return Record(key=record.key, reason="lost, our fault", detail=str(error)[:300])
    raise AssertionError
