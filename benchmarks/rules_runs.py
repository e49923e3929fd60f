"""A task's run on a machine that is lent for minutes: ended in time, and taken up again."""

import asyncio
import dataclasses
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.rules_tasks import file_name
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run.config import RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.loop import Run
from kernelsmith.run.progress import Watch
from kernelsmith.run.recorded import Recorded
from kernelsmith.run.result import Result
from kernelsmith.run.start import JOURNAL, Judges, resume, start


@contextmanager
def folder_for(key: str, runs: str) -> Generator[Path]:
    """Where a task's run lies: under ``runs``, to be gone on with, or nowhere for long."""
    if runs:
        yield Path(runs, file_name(key))
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        yield Path(folder, "run")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One task's run, over as many sessions as it takes."""

    task: Task
    folder: Path
    config: RunConfig
    device: Device
    proposer: Callable[[], Proposer]
    judges: Judges
    watch: Watch

    def known(self) -> Recorded | None:
        """What earlier sessions found, where it is of the same task, judge and device."""
        path = self.folder / JOURNAL
        if not path.is_file():
            return None
        recorded = read(path)
        return None if _why_anew(recorded, self) else recorded

    def begun(self) -> Run:
        """The run, taken up where its journal ends or begun; another's journal is put aside."""
        if self.known() is not None:
            return self.again(self.config)
        put_aside(self.folder)
        return start(
            self.task, self.folder, self.config, proposer=self.proposer(), judges=self.judges,
            device=self.device, watch=self.watch,
        )  # fmt: skip

    def again(self, config: RunConfig) -> Run:
        """The run with another budget."""
        return resume(
            self.folder, proposer_of=lambda _: self.proposer(), budget=config.budget,
            judges=self.judges, watch=self.watch,
        )  # fmt: skip


def ended(run: Run, seconds: float | None) -> Result:
    """Go on with a run; after ``seconds`` it is interrupted, and nothing told is lost."""

    async def within() -> Result:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, run.stop)
        return await run.go()

    return asyncio.run(within())


def put_aside(folder: Path) -> None:
    """Keep a run that cannot be gone on with under another name."""
    if (folder / JOURNAL).is_file():
        number = 1
        while (other := folder.with_name(f"{folder.name}.{number}")).exists():
            number += 1
        folder.rename(other)


def _why_anew(recorded: Recorded, asked: Runs) -> str:
    """Why figures of a journal and of today do not belong together; nothing where they do."""
    sessions = (recorded.header.versions, *(each.versions for each in recorded.sessions))
    if any(dict(versions).get("judge") != JUDGE for versions in sessions):
        return "another judge"
    if recorded.header.task != asked.task:
        return "another task"
    if recorded.header.device is None or not recorded.header.device.is_like(asked.device):
        return "another device"
    names = ("backend", "effort", "confirm_effort", "seed", "concurrency", "remeasure", "search")
    if any(getattr(recorded.config, name) != getattr(asked.config, name) for name in names):
        return "other settings"
    return ""
