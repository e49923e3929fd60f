"""One session of a run: started or resumed, watched, stopped by Ctrl-C, and reported on."""

import asyncio
import shlex
import signal
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.cli.elsewhere import elsewhere, load_for
from kernelsmith.cli.extra import needs_train
from kernelsmith.cli.live import Say, watching
from kernelsmith.cli.runs import read_run, write_report
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import SmithError, UsageError
from kernelsmith.evaluate.evaluator import Elsewhere
from kernelsmith.propose.proposer import Proposer
from kernelsmith.report.numbers import Numbers, numbers_of
from kernelsmith.run.config import RunConfig
from kernelsmith.run.loop import Run
from kernelsmith.run.progress import Watch
from kernelsmith.run.proposers import asks_compiler, make_proposer
from kernelsmith.run.result import Result
from kernelsmith.run.start import JOURNAL, Judges, device_of, resume, settings_of, start

_STOPPING = "stopping: what is under way is finished first; Ctrl-C again stops at once"
_AT_ONCE = "stopping at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a session ended, and what it wrote."""

    task: Task
    config: RunConfig
    result: Result
    numbers: Numbers
    report: Path
    adapted: int = 0
    """Times that the proposer changed its weights, over all sessions."""


def load(path: Path, config: RunConfig) -> Task:
    """Read a task for where it is judged; for the null backend a task is one expression."""
    from kernelsmith.api import load_task

    if config.backend == "null":
        return expression(path)
    if place := elsewhere(config.evaluator, config.backend):
        return load_for(path, place.device)
    return load_task(path, backend=config.backend)


def expression(path: Path) -> Task:
    """Read a task of the null backend."""
    from kernelsmith.evaluate.tasks import read_source

    return Task(name=path.stem, source=read_source(path, "task"), entry="expression")


def new_folder(parent: Path, name: str) -> Path:
    """A folder that no run has used yet."""
    folder, number = parent / name, 1
    while folder.exists():
        number += 1
        folder = parent / f"{name}-{number}"
    return folder


def optimized(task: Task, folder: Path, config: RunConfig) -> Ended:
    """Run from the start."""
    title = (
        f"{task.name} on {config.backend}, {config.search.policy} with {_who(config)} -> {folder}"
    )
    place = elsewhere(config.evaluator, config.backend)
    proposer = proposer_for(config, folder)
    return _session(
        task, folder, config, title,
        lambda watch: start(
            task, folder, config, proposer=proposer, watch=watch, judges=_judges(place, config),
            device=None if place is None else place.device,
        ),
        place,
    )  # fmt: skip


def resumed(folder: Path, config: RunConfig, task: Task) -> Ended:
    """Go on where the journal ends, with the budget of ``config``."""
    place = elsewhere(config.evaluator, config.backend)
    if place is not None:
        _refuse_other_device(folder, place.device)
    elif config.backend != "null":
        _refuse_other_device(folder, device_of(config.backend))
    proposer = proposer_for(config, folder)
    return _session(
        task, folder, config, f"{task.name} on {config.backend}, resumed -> {folder}",
        lambda watch: resume(
            folder, proposer_of=lambda _: proposer, budget=config.budget, watch=watch,
            judges=_judges(place, config), evaluator=config.evaluator,
        ),
        place,
    )  # fmt: skip


def proposer_for(config: RunConfig, folder: Path) -> Proposer:
    """Whoever writes candidates; a student is opened here, since ``run`` knows no training."""
    if config.proposer.kind != "student":
        return make_proposer(config, folder)
    with needs_train("a model in a folder"):
        from kernelsmith.training.serve.student import Student

        known = read_run(folder).adapted if is_begun(folder) else {}
        return Student(config, folder, known=known)


def _judges(place: Elsewhere | None, config: RunConfig) -> Judges | None:
    if place is None:
        return None
    return Judges(
        evaluator=place.evaluator(settings_of(config.effort, config)),
        confirmer=place.evaluator(settings_of(config.confirm_effort, config), fresh=True),
    )


def _refuse_other_device(folder: Path, now: Device) -> None:
    before = read_run(folder).header.device
    if before is not None and before.name != now.name:
        raise UsageError(
            f"the run was judged on {before.name!r}, and now it would be {now.name!r}: "
            "their timings do not compare"
        )


def is_begun(folder: Path) -> bool:
    """Whether there is a journal to go on with."""
    return (folder / JOURNAL).is_file()


def _session(
    task: Task, folder: Path, config: RunConfig, title: str, make: Callable[[Watch], Run],
    place: Elsewhere | None,
) -> Ended:  # fmt: skip
    with watching(title, config.budget) as (watch, say):
        if asks_compiler(config):
            say("first the rules ask torch's compiler what it would write (up to a minute)")
        try:
            result = asyncio.run(_gone(lambda: make(watch), say, place))
        except SmithError as error:
            raise type(error)(f"{error}{_left_behind(folder)}") from error
    numbers, report = _reported(folder)
    adapted = len(read_run(folder).adapted) if config.proposer.adapt else 0
    return Ended(
        task=task, config=config, result=result, numbers=numbers, report=report, adapted=adapted
    )


def _reported(folder: Path) -> tuple[Numbers, Path]:
    recorded = read_run(folder)
    numbers = numbers_of(recorded)
    return numbers, write_report(folder, recorded, numbers)


def _left_behind(folder: Path) -> str:
    """What a run that broke off has done so far; nothing where it has not."""
    if not is_begun(folder):
        return ""
    numbers, report = _reported(folder)
    if not numbers.points:
        return ""
    where = shlex.quote(str(folder))
    return f"; {len(numbers.points)} steps are in {report}, go on with: kernelsmith resume {where}"


def _who(config: RunConfig) -> str:
    models = ", ".join(model.name for model in config.proposer.models)
    if config.proposer.kind == "student":
        how = ", adapting" if config.proposer.adapt else ""
        return f"the model in {config.proposer.path}{how}"
    return models if config.proposer.kind == "llm" else config.proposer.kind


async def _gone(make: Callable[[], Run], say: Say, place: Elsewhere | None) -> Result:
    """Run to the end; Ctrl-C is said, and then left to the run."""
    async with AsyncExitStack() as opened:
        if place is not None:
            opened.push_async_callback(place.close)
        return await _until_stopped(make, say)


async def _until_stopped(make: Callable[[], Run], say: Say) -> Result:
    run = make()
    going = asyncio.create_task(run.go())
    await asyncio.sleep(0)  # the run's own handlers are in place now, and are replaced

    asked: list[str] = []

    def stop() -> None:
        say(_AT_ONCE if asked else _STOPPING)
        asked.append("to stop")
        run.stop()

    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, stop)
    return await going
