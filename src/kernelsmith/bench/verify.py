"""Judging stored winners again, from their sources: which still hold?

Speed is held against speed on the same device only. Elsewhere a winner can be seen to be right or
wrong, and its speed-up there is a number of its own.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from kernelsmith.bench.compiled import MODES
from kernelsmith.bench.final import Exam, Examiner, Finding
from kernelsmith.bench.job import task_hash
from kernelsmith.bench.ledger import TASKS, Results
from kernelsmith.bench.record import Key, Record
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import loads
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import EvaluationLost, SmithError, UsageError
from kernelsmith.evaluate.evaluator import Elsewhere, LocalEvaluator


class Standing(StrEnum):
    """What became of a claim."""

    HOLDS = "holds"
    """It passes, and is as fast as recorded within both intervals, or faster."""
    PASSES = "passes"
    """It passes; its speed was recorded on another device, or cannot be measured here."""
    SLOWER = "slower"
    """It passes, and its interval lies below the recorded one."""
    FAILS = "fails"
    """It does not pass any more."""
    UNKNOWN = "unknown"
    """It could not be judged: no source, no task, another backend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """One winner, judged again."""

    key: Key
    standing: Standing
    was: Ratio | None = None
    now: Ratio | None = None
    baseline: str = "eager"
    """What both ratios are over."""
    said: str = ""
    """The verdict's message, or why there is none."""
    is_lost: bool = False
    """Whether nobody can say because our machinery failed."""


class _Here(LocalEvaluator):
    """Judges in the caller's thread: Ctrl-C ends a judgement there, and none goes on beside it."""

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Judge now."""
        return self.judge(task, candidate, baseline=baseline)


def verified(
    results: Results, records: Sequence[Record], *, effort: str = "usual",
    begin: Callable[[Record], None] | None = None, place: Elsewhere | None = None,
) -> Iterator[Verified]:  # fmt: skip
    """Judge the winners of some records again, one after the other.

    Args:
        results: What the records were read from.
        records: Those to look at; others, and those without a winner, are passed over.
        effort: How thoroughly.
        begin: Called before each.
        place: Who judges; this machine where absent.
    """
    examiners: dict[tuple[str, str], Examiner] = {}
    runner = asyncio.Runner()
    run = _at_once if place is None else runner.run
    try:
        for record in records:
            if record.winner is None:
                continue
            if begin is not None:
                begin(record)
            try:
                task, source = task_of(results, record), results.source_of(record)
                which = record.backend, baseline_of(record)
                if which not in examiners:
                    exam = Exam(backend=record.backend, effort=effort, baselines=(which[1],))
                    examiners[which] = Examiner(exam, place, here=_Here)
                finding = run(_judged(examiners[which], record, task, source))
            except SmithError as error:
                yield Verified(
                    key=record.key, standing=Standing.UNKNOWN, said=str(error),
                    is_lost=isinstance(error, EvaluationLost),
                )  # fmt: skip
                continue
            yield held(record, finding)
    finally:
        for examiner in examiners.values():
            examiner.close()
        if place is not None:
            runner.run(place.close())
        runner.close()


def task_of(results: Results, record: Record) -> Task:
    """The task that a record is about, from beside it.

    Raises:
        UsageError: It is not there, or was changed.
    """
    home = results.homes[results.records.index(record)]
    path = Path(home, TASKS, f"{record.task}.json")
    try:
        task = loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except OSError as error:
        raise UsageError(f"the task is not at {path}: {error.strerror}") from error
    except (ValueError, TypeError, RecursionError) as error:
        raise UsageError(f"{path} is no task: {error}") from error
    if not isinstance(task, Task) or task_hash(task) != record.task:
        raise UsageError(f"{path} was changed after it was judged")
    return task


def baseline_of(record: Record) -> str:
    """What a winner is held against again: eager, or whatever else its speed was recorded over."""
    timed = [each.baseline for each in record.beside if each.device is not None]
    return "eager" if "eager" in timed or not timed else timed[0]


def held(record: Record, finding: Finding) -> Verified:
    """Hold what was found against what was recorded."""
    baseline = baseline_of(record)
    was, evaluation = record.speedup(baseline), finding.evaluation
    if evaluation.verdict is not Verdict.PASSED:
        said = f"{evaluation.verdict.value}: {evaluation.message}"
        return Verified(
            key=record.key, standing=Standing.FAILS, was=was, baseline=baseline, said=said
        )
    beside = next((each for each in finding.beside if each.baseline == baseline), None)
    now = None if beside is None else beside.device
    if now is None or was is None or not _same(record.device, evaluation.device):
        why = "no speed was recorded" if was is None else f"recorded on {record.device}"
        if now is None:
            why = "nothing is timed here" if beside is None else beside.trouble
        return Verified(
            key=record.key, standing=Standing.PASSES, was=was, now=now, baseline=baseline, said=why
        )
    slower = now.high < was.low
    return Verified(
        key=record.key, standing=Standing.SLOWER if slower else Standing.HOLDS, was=was, now=now,
        baseline=baseline,
        said=f"by the judge {record.judge}, now {evaluation.judge}"
        if record.judge != evaluation.judge else "",
    )  # fmt: skip


async def _judged(examiner: Examiner, record: Record, task: Task, source: str) -> Finding:
    if not record.rules.steps and record.entrant in (*MODES, "eager"):
        return await examiner.fixed(task, record.entrant)
    candidate = Candidate(backend=record.backend, source=source)
    return await examiner.examine(task, candidate, None)


def _at_once(judging: Coroutine[Any, Any, Finding]) -> Finding:
    """Run what waits for nobody, without a loop that would keep Ctrl-C to itself."""
    try:
        judging.send(None)
    except StopIteration as end:
        found: Finding = end.value
        return found
    raise AssertionError("a judge on this machine waited for someone")


def _same(one: Device, other: Device) -> bool:
    """Whether times may be held against each other; a sandbox or a patch level changes nothing."""
    return replace(one, sandbox="", versions=()) == replace(other, sandbox="", versions=())
