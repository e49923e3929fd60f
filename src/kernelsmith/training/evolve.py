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
from kernelsmith.run.start import JOURNAL, Judges, resume, start

MakeProposer = Callable[[Task, Path], Proposer]
OpenJudges = Callable[[AsyncExitStack], Judges]
"""Opens judges for some runs, and says to the stack how they are closed."""


def quick_run() -> RunConfig:
    """Evolutions for training: many steps, each measured once, nothing confirmed."""
    return RunConfig(
        concurrency=2, effort="quick", confirm_effort="quick",
        remeasure=Remeasure(champions=False, gain=False, final=0),
    )  # fmt: skip


def evolve(
    tasks: Sequence[Task], folder: Path, config: RunConfig, proposer_for: MakeProposer, *,
    judges: OpenJudges | None = None, device: Device | None = None, at_a_time: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> None:  # fmt: skip
    """Run every task to the end of its budget; what is done already is not done again.

    Judges are processes on this machine where none are given; those given serve all runs.

    Raises:
        UsageError: A run was interrupted; the same call goes on with it.
    """
    begun = {task.name: _steps(folder / task.name) for task in tasks}
    left = [
        (number, task) for number, task in enumerate(tasks, 1)
        if (done := begun[task.name]) is None or done < config.budget.steps
    ]  # fmt: skip

    def made(task: Task, found: Judges | None) -> Run:
        place = folder / task.name
        proposer = proposer_for(task, place)
        if begun[task.name] is None:
            return start(task, place, config, proposer=proposer, judges=found, device=device)
        return resume(place, proposer_of=lambda _: proposer, budget=config.budget, judges=found)

    async def gone() -> None:
        going: dict[str, Run] = {}
        room = asyncio.Semaphore(at_a_time)
        causes: list[BaseException] = []
        """What ended it all comes first; the others were stopped for that."""

        async def one(number: int, task: Task) -> None:
            async with room:
                if causes:
                    return
                say(f"[{number}/{len(tasks)}] {task.name}")
                try:
                    going[task.name] = made(task, found)
                    result = await going[task.name].go()
                    if result.stopped:
                        raise UsageError(
                            f"stopped after {result.steps} steps of {task.name}; the same goes on"
                        )
                except BaseException as error:
                    causes.append(error)
                    for other in going.values():  # one hears a signal, and it was meant for all
                        other.stop()
                    raise
                finally:
                    going.pop(task.name, None)

        async with AsyncExitStack() as opened:
            found = None if judges is None else judges(opened)
            await asyncio.gather(*(one(*each) for each in left), return_exceptions=True)
        if causes:
            raise causes[0]

    asyncio.run(gone())


def _steps(place: Path) -> int | None:
    """How many a run has taken; none where there is no run."""
    return len(read(place / JOURNAL).steps) if (place / JOURNAL).is_file() else None
