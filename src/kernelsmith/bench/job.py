"""One job of a bench: one entrant on one entry with one seed, from nothing to a record.

Runs in a worker's process. What a search did before an interruption lies in its journal and is
not done again; the judgement of its winner is.
"""

import asyncio
import hashlib
import platform
import re
import signal
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kernelsmith import __version__
from kernelsmith.bench.compiled import MODES, compiling, eager
from kernelsmith.bench.entrant import RUNS, SEARCH, run_for
from kernelsmith.bench.final import Exam, Examiner, Finding
from kernelsmith.bench.history import archive_of, cost_of, furthest, last_words, points_of
from kernelsmith.bench.ledger import TASKS, sha256
from kernelsmith.bench.record import Archive, Cost, Record, Rules, Winner
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.evaluator import Elsewhere
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.run.best import replace_file
from kernelsmith.run.config import RunConfig, parse_config
from kernelsmith.run.journal import read
from kernelsmith.run.loop import Run
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.progress import Watch
from kernelsmith.run.proposers import Opens, make_proposer, replayed
from kernelsmith.run.recorded import Recorded
from kernelsmith.run.start import JOURNAL, Judges, resume, settings_of, start
from kernelsmith.run.stopping import Stop

WINNERS, RUN_FOLDERS = "winners", "runs"
"""Folders beside the file of records."""
_MESSAGE = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Everything that a worker must know."""

    entrant: str
    kind: str
    """As of ``Entrant``."""
    runs: str = ""
    entry: str
    suite: str
    level: str = ""
    category: str = ""
    family: str = ""
    dtype: str = ""
    note: str = ""
    task: Task
    seed: int = 0
    sample: int = 0
    """Which of the runs per task it is, whatever its seed."""
    device: str = ""
    """On which one the bench's other records were made, by name; empty where there are none."""
    config: str = ""
    """The run's configuration, TOML; for a search."""
    rules: Rules
    exam: Exam
    home: str
    """The folder of the bench."""
    grant_usd: float | None = None
    """What the bench lets its search spend, over all sessions; whatever its own budget says."""

    @property
    def folder(self) -> Path:
        """Where its run lies; a task that was changed since begins another."""
        runs = Path(self.home, RUN_FOLDERS, path_word(self.entrant))
        return runs.joinpath(*_parts(self.entry), f"seed{self.seed}-{task_hash(self.task)[:8]}")

    @property
    def paid_usd(self) -> float:
        """What its search has spent in earlier sessions, as far as its journal says."""
        if self.kind != SEARCH or not (self.folder / JOURNAL).is_file():
            return 0.0
        return cost_of(points_of(read(self.folder / JOURNAL).steps), 0.0).usd or 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """A search that the bench's money ended: it goes on from its journal when there is more."""

    usd: float
    """Spent on it so far."""


class Workbench:
    """What a worker keeps open from one job to the next."""

    def __init__(
        self, where: str = "local", place: Elsewhere | None = None, *,
        proposer_of: Opens = make_proposer,
    ) -> None:  # fmt: skip
        """Nothing is open yet.

        Args:
            where: The evaluator's name, for the record.
            place: Who judges there; this machine where absent.
            proposer_of: Opens who writes in a run's folder.
        """
        self.where, self._place = where, place
        self.proposer_of = proposer_of
        self._pools: dict[tuple[object, ...], LocalPool] = {}
        self._examiners: dict[Exam, Examiner] = {}
        self._devices: dict[str, Device] = {}

    def examiner(self, exam: Exam) -> Examiner:
        """Who judges winners."""
        if exam not in self._examiners:
            self._examiners[exam] = Examiner(exam, self._place)
        return self._examiners[exam]

    def device(self, backend: str) -> Device:
        """What a backend runs on."""
        if self._place is not None:
            return self._place.device
        if backend not in self._devices:
            opened = load_backend(backend)
            try:
                self._devices[backend] = opened.device()
            finally:
                opened.close()
        return self._devices[backend]

    def judges(self, config: RunConfig) -> Judges | None:
        """Who judges candidates in a search; none where a run brings its own."""
        if self._place is not None:
            return Judges(
                evaluator=self._place.evaluator(settings_of(config.effort, config)),
                confirmer=self._place.evaluator(
                    settings_of(config.confirm_effort, config), fresh=True
                ),
            )
        if config.backend == "null":
            return None
        key = (
            config.backend, config.effort, config.confirm_effort, config.timeout_s, config.judges,
        )  # fmt: skip
        if key not in self._pools:
            self._pools[key] = LocalPool(
                config.backend,
                usual=settings_of(config.effort, config),
                thorough=settings_of(config.confirm_effort, config),
                size=config.judges,
            )
        pool = self._pools[key]
        return Judges(evaluator=pool.evaluator, confirmer=pool.confirmer, shapes_of=pool.shapes)

    async def found(self, examining: Coroutine[Any, Any, Finding]) -> Finding:
        """Wait for a finding; whoever ends this process takes what was asked for elsewhere back."""
        if self._place is None:
            return await examining  # nobody else is kept busy by it
        loop, task = asyncio.get_running_loop(), asyncio.ensure_future(examining)
        loop.add_signal_handler(signal.SIGTERM, task.cancel)
        try:
            return await task
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    async def close(self) -> None:
        """End every process."""
        for pool in self._pools.values():
            await pool.close()
        for examiner in self._examiners.values():
            examiner.close()
        if self._place is not None:
            await self._place.close()


async def done(
    job: Job, bench: Workbench, watch: Watch | None = None
) -> Record | Unfinished | None:
    """Do a job; none where someone asked for the end first.

    Raises:
        UsageError: The task cannot be judged, or the entrant cannot work on it.
        EvaluationLost: Our machinery failed.
        BackendUnavailable: The backend does not work here, or judges on another device.
    """
    if job.device and (here := bench.device(job.exam.backend).name) != job.device:
        raise BackendUnavailable(
            f"this bench was begun on {job.device!r}, and this is {here!r}: their timings do not "
            "compare; use another --out, and kernelsmith bench merge"
        )
    if job.kind == SEARCH:
        return await _searched(job, bench, watch)
    if job.kind == RUNS:
        return await _from_runs(job, bench)
    begun = time.monotonic()
    finding = await bench.found(bench.examiner(job.exam).fixed(job.task, job.kind))
    source = compiling(job.task, job.kind) if job.kind in MODES else eager(job.task)
    judged = Cost(judging_s=round(time.monotonic() - begun, 3))
    candidate = Candidate(backend=job.exam.backend, source=source)
    return _record(job, finding, candidate, device=bench.device(job.exam.backend), cost=judged)


async def _searched(job: Job, bench: Workbench, watch: Watch | None) -> Record | Unfinished | None:
    config = replace(parse_config(job.config), evaluator=bench.where)
    own = config.budget.usd
    granted = job.grant_usd is not None and (own is None or job.grant_usd < own)
    if granted:
        config = replace(config, budget=replace(config.budget, usd=job.grant_usd))
    if config.proposer.kind == "replay":
        config = _one_recording(config, job)
    folder = job.folder
    proposer = bench.proposer_of(config, folder)
    judges, device = bench.judges(config), bench.device(config.backend)
    run: Run
    if (folder / JOURNAL).is_file():
        _refuse_other_device(folder, device)
        run = resume(
            folder, proposer_of=lambda _: proposer, budget=config.budget, judges=judges,
            evaluator=bench.where, watch=watch,
        )  # fmt: skip
    else:
        run = start(
            job.task, folder, config, proposer=proposer, judges=judges, device=device, watch=watch
        )
    result = await run.go()
    if result.stopped:
        return None
    if granted and result.stop is Stop.USD:
        return Unfinished(usd=result.usd or 0.0)
    best = None if result.best is None else result.best.candidate
    said = None
    if result.best is not None and result.confirmed and job.exam.effort == config.confirm_effort:
        said = result.best.evaluation
    return await _examined(
        job, bench, read(folder / JOURNAL), best, said,
        folder=folder, stop=result.stop.value, archive=archive_of(run),
    )  # fmt: skip


def _refuse_other_device(folder: Path, device: Device) -> None:
    before = read(folder / JOURNAL).header.device
    if before is not None and before.name != device.name:
        raise UsageError(
            f"its search was begun on {before.name!r}, and this is {device.name!r}: their timings "
            "do not compare; use another --out"
        )


async def _from_runs(job: Job, bench: Workbench) -> Record:
    """A record of a run that was made elsewhere; its winner is judged here."""
    folder = run_for(Path(job.runs), job.task.name, job.sample)
    if folder is None:
        raise UsageError(f"no recorded run of {job.task.name!r} for seed {job.seed} in {job.runs}")
    recorded = read(folder / JOURNAL)
    best = next((step for step in reversed(recorded.steps) if step.placement.is_best), None)
    winner = best.candidate if best is not None else None
    if recorded.final is not None:
        winner = recorded.final.candidate
    if winner is not None and winner.backend != job.exam.backend:
        raise UsageError(
            f"{folder} was made for the backend {winner.backend!r}; this bench judges with "
            f"{job.exam.backend!r}"
        )
    return await _examined(job, bench, recorded, winner, None, folder=None, stop="", archive=None)


async def _examined(
    job: Job,
    bench: Workbench,
    recorded: Recorded,
    winner: Candidate | None,
    known: Evaluation | None,
    *,
    folder: Path | None,
    stop: str,
    archive: Archive | None,
) -> Record:
    points = points_of(recorded.steps)
    cost = cost_of(points, recorded.elapsed_s)
    finding: Finding | None = None
    if winner is not None:
        begun = time.monotonic()
        finding = await bench.found(bench.examiner(job.exam).examine(job.task, winner, known))
        cost = replace(cost, judging_s=round(time.monotonic() - begun, 3))
    else:
        failed = furthest(recorded.steps)
        finding = None if failed is None else Finding(evaluation=failed)
    born = {
        step.candidate.id: step.brief.number
        for step in reversed(recorded.steps)
        if step.candidate is not None
    }
    # Where a run was recorded does not matter: ratios are of the device that took them.
    device = bench.device(job.exam.backend)
    if winner is not None and finding is not None:
        device = finding.evaluation.device
    record = _record(job, finding, winner, cost=cost, device=device)
    message = record.message
    if winner is None:
        message = message or _why_nothing(recorded)[:_MESSAGE]
    elif not record.passed:
        message = f"it passed in the search, and not at the end: {message}"
    return replace(
        record, points=points, archive=archive, stop=stop,
        best_step=born.get(winner.id) if winner is not None and record.passed else None,
        confirmed=record.passed,
        run="" if folder is None else str(folder.relative_to(job.home)),
        message=message,
    )  # fmt: skip


def _why_nothing(recorded: Recorded) -> str:
    return last_words(recorded.steps) if recorded.steps else "no step was taken"


def _record(
    job: Job, finding: Finding | None, candidate: Candidate | None, *, cost: Cost, device: Device
) -> Record:
    evaluation = finding.evaluation if finding is not None else None
    passed = evaluation is not None and evaluation.verdict is Verdict.PASSED
    coverage = evaluation.coverage if evaluation is not None else None
    return Record(
        entrant=job.entrant, entry=job.entry, seed=job.seed, suite=job.suite, level=job.level,
        category=job.category, family=job.family, dtype=job.dtype, note=job.note,
        name=job.task.name, task=_task_file(job), backend=job.exam.backend, rules=job.rules,
        verdict=evaluation.verdict if evaluation is not None else None,
        message="" if evaluation is None or passed else evaluation.message[:_MESSAGE],
        confirmed=passed,
        beside=finding.beside if finding is not None else (),
        labels=evaluation.labels if evaluation is not None and passed else (),
        own=coverage.own if coverage is not None and passed else None,
        winner=_winner(job, candidate) if candidate is not None and passed else None,
        cost=cost, device=device,
        judge=(evaluation.judge if evaluation is not None else "") or JUDGE,
        versions=(("kernelsmith", __version__), ("python", platform.python_version())),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )  # fmt: skip


def _winner(job: Job, candidate: Candidate) -> Winner:
    """Write the source down exactly as it was judged."""
    name = f"{_parts(job.entry)[-1]}-{job.seed}-{candidate.id}.py"
    place = Path(WINNERS, path_word(job.entrant), *_parts(job.entry)[:-1], name)
    target = Path(job.home, place)
    target.parent.mkdir(parents=True, exist_ok=True)
    replace_file(target, candidate.source)
    return Winner(candidate=candidate.id, path=str(place), sha256=sha256(candidate.source))


def _task_file(job: Job) -> str:
    """Keep the task beside the records, so that a winner can be judged again anywhere."""
    text = dumps(job.task)
    digest = task_hash(job.task)
    target = Path(job.home, TASKS, f"{digest}.json")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_file(target, text + "\n")
    return digest


def task_hash(task: Task) -> str:
    """What two records must share to be compared."""
    return hashlib.sha256(dumps(task).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _one_recording(config: RunConfig, job: Job) -> RunConfig:
    """The recording that belongs to the task; it cannot give more steps than it holds."""
    path = Path(config.proposer.path or "")
    if path.is_dir() and not (path / JOURNAL).is_file():
        found = run_for(path, job.task.name, job.sample)
        if found is None:
            raise UsageError(f"no recording of {job.task.name!r} for seed {job.seed} in {path}")
        path = found
    steps = min(config.budget.steps, len(replayed(path)))
    return replace(
        config,
        proposer=replace(config.proposer, path=str(path)),
        budget=replace(config.budget, steps=steps),
    )


def path_word(name: str) -> str:
    """A name as one part of a path; two names never share one."""
    safe = re.sub(r"[^A-Za-z0-9._+-]", "-", name)
    return safe if safe == name else f"{safe}-{sha256(name)[:6]}"


def _parts(entry: str) -> tuple[str, ...]:
    return tuple(path_word(part) for part in entry.split("/") if part not in ("", ".", ".."))
