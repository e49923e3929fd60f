"""Evolutions over several tasks, each in a folder of its own; begun ones are gone on with."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run.config import Remeasure, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.loop import Run
from kernelsmith.run.result import Result
from kernelsmith.run.start import JOURNAL, Judges, resume, start

MakeProposer = Callable[[Task, Path], Proposer]
OpenJudges = Callable[[AsyncExitStack], Judges]
"""Opens judges for one run, and says to the stack how they are closed."""


def quick_run() -> RunConfig:
    """Evolutions for training: many steps, each measured once, nothing confirmed."""
    return RunConfig(
        concurrency=2, effort="quick", confirm_effort="quick",
        remeasure=Remeasure(champions=False, gain=False, final=0),
    )  # fmt: skip


def evolve(
    tasks: Sequence[Task], folder: Path, config: RunConfig, proposer_for: MakeProposer, *,
    judges: OpenJudges | None = None, device: Device | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Run every task to the end of its budget; what is done already is not done again.

    Judges are processes on this machine where none are given.

    Raises:
        UsageError: A run was interrupted; the same call goes on with it.
    """
    for number, task in enumerate(tasks, 1):
        place = folder / task.name
        done = len(read(place / JOURNAL).steps) if (place / JOURNAL).is_file() else None
        if done is not None and done >= config.budget.steps:
            continue
        say(f"[{number}/{len(tasks)}] {task.name}")
        proposer = proposer_for(task, place)

        def made(found: Judges | None, *, new: bool = done is None, place: Path = place,
                 task: Task = task, proposer: Proposer = proposer) -> Run:  # fmt: skip
            if new:
                return start(task, place, config, proposer=proposer, judges=found, device=device)
            return resume(place, proposer_of=lambda _: proposer, budget=config.budget, judges=found)

        result = asyncio.run(_gone(made, judges))
        if result.stopped:
            raise UsageError(f"stopped after {result.steps} steps of {task.name}; the same goes on")


async def _gone(made: Callable[[Judges | None], Run], judges: OpenJudges | None) -> Result:
    async with AsyncExitStack() as opened:
        return await made(None if judges is None else judges(opened)).go()
