"""A run's folder: made, or opened again; and everything a run needs put together."""

import hashlib
import platform
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from kernelsmith import __version__
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import Settings, effort
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run.best import replace_file
from kernelsmith.run.config import Budget, RunConfig, dump_config
from kernelsmith.run.journal import Journal, read
from kernelsmith.run.loop import Run, ShapesOf
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.progress import Watch
from kernelsmith.run.recorded import Header, Recorded, Session
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.search.search import Search

JOURNAL = "journal.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judges:
    """Who judges in a run."""

    evaluator: Evaluator
    confirmer: Evaluator | None = None
    shapes_of: ShapesOf | None = None


def start(
    task: Task,
    folder: Path,
    config: RunConfig,
    *,
    proposer: Proposer,
    judges: Judges | None = None,
    device: Device | None = None,
    watch: Watch | None = None,
) -> Run:
    """Make a run's folder and the run; ``await run.go()`` does the work.

    Args:
        task: What to make faster.
        folder: Made if it is not there; must hold no journal.
        config: Written to ``config.toml`` and into the journal.
        proposer: Who writes candidates; closed at the end.
        judges: Processes on this machine if not given; whoever gives them closes them.
        device: What the briefs say the candidates run on; asked of the backend if not given.
        watch: Called after each step, once the step lasts.

    Raises:
        UsageError: There is a journal already, or the folder cannot be written.
    """
    device = device or device_of(config.backend)
    started = _now()
    header = Header(
        task=task,
        config=config,
        device=device,
        run=hashlib.sha256(f"{started} {folder.resolve()} {task}".encode()).hexdigest()[:8],
        started=started,
        versions=_versions(),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        journal = Journal.create(folder / JOURNAL, header)
        replace_file(folder / "task.py", task.source)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    return _run(folder, header, config, journal, None, proposer, judges, watch)


def resume(
    folder: Path,
    *,
    proposer_of: Callable[[Recorded], Proposer],
    budget: Budget | None = None,
    judges: Judges | None = None,
    evaluator: str | None = None,
    watch: Watch | None = None,
) -> Run:
    """Take a run up where its journal ends: replayed, not judged or paid for again.

    Args:
        folder: Of the run.
        proposer_of: Makes the proposer, from what was recorded.
        budget: Instead of the one that the run had, to go on after its end.
        judges: As for ``start``.
        evaluator: Where they are, for the record, if not where the run was before.
        watch: As for ``start``.

    Raises:
        UsageError: There is no journal, another process writes it, or it does not replay.
    """
    path = folder / JOURNAL
    journal = Journal.open(path)
    try:
        recorded = read(path)
        config = recorded.config
        if budget is not None:
            config = replace(config, budget=budget)
        if evaluator is not None:
            config = replace(config, evaluator=evaluator)
        journal.append_session(Session(config=config, started=_now(), versions=_versions()))
        proposer = proposer_of(recorded)
    except BaseException:
        journal.close()
        raise
    return _run(folder, recorded.header, config, journal, recorded, proposer, judges, watch)


def _run(
    folder: Path,
    header: Header,
    config: RunConfig,
    journal: Journal,
    recorded: Recorded | None,
    proposer: Proposer,
    judges: Judges | None,
    watch: Watch | None,
) -> Run:
    replace_file(folder / "config.toml", dump_config(config))
    owned = AsyncExitStack()
    judges = judges or _local_judges(config, owned)
    search = Search(
        header.task,
        backend=config.backend,
        config=config.search,
        seed=config.seed,
        device=header.device,
    )
    return Run(
        folder=folder, task=header.task, config=config, header=header, search=search,
        proposer=proposer, evaluator=judges.evaluator, confirmer=judges.confirmer,
        shapes_of=judges.shapes_of, journal=journal, recorded=recorded, watch=watch, owned=owned,
    )  # fmt: skip


def _local_judges(config: RunConfig, owned: AsyncExitStack) -> Judges:
    if config.backend == "null":
        simulated = SimulatedEvaluator()
        return Judges(evaluator=simulated, confirmer=simulated)
    pool = LocalPool(
        config.backend,
        usual=settings_of(config.effort, config),
        thorough=settings_of(config.confirm_effort, config),
        size=config.judges,
    )
    owned.push_async_callback(pool.close)
    return Judges(evaluator=pool.evaluator, confirmer=pool.confirmer, shapes_of=pool.shapes)


def settings_of(name: str, config: RunConfig) -> Settings:
    """What an effort means in a run."""
    return replace(effort(name, config.backend), timeout_s=config.timeout_s)


def device_of(backend: str) -> Device:
    """What this machine judges on with a backend."""
    opened = load_backend(backend)
    try:
        return opened.device()
    finally:
        opened.close()


def _versions() -> tuple[tuple[str, str], ...]:
    return (("kernelsmith", __version__), ("judge", JUDGE), ("python", platform.python_version()))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
