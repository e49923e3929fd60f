"""The workers of a bench: processes that jobs are handed to, one at a time each."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.bench.job import Job
from kernelsmith.bench.ledger import parsed
from kernelsmith.bench.record import Fault, Record
from kernelsmith.domain.codec import encode

_LINE = 1 << 28
"""The longest answer; a record of hundreds of steps has some hundred kilobytes."""
_ATTEMPTS = 2
LOCAL = ("kernelsmith.bench.parts.worker",)
"""A worker that judges on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is."""

    told: int
    of: int
    best: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of a job: a record, a reason why there is none, or an interruption."""

    record: Record | None = None
    missing: str = ""
    fault: Fault | None = None
    """Whose, where it is missing."""
    fatal: str = ""
    """Why no job can work here at all."""
    stopped: bool = False
    unfinished_usd: float | None = None
    """What its search has spent, where the bench's money has ended it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """Workers that judge elsewhere, and how they are started."""

    modules: tuple[tuple[str, ...], ...]
    """For each evaluator the module to run and its arguments."""
    gpu: bool
    """Whether they judge on GPUs: tasks are read for these."""


class Worker:
    """One process, on one device."""

    def __init__(
        self, name: str, *, log: Path, device: str | None = None,
        module: Sequence[str] = LOCAL,
    ) -> None:  # fmt: skip
        """Prepare a worker; its process starts with its first job.

        Args:
            name: For its log.
            log: A folder; what it writes to stderr goes there.
            device: As ``CUDA_VISIBLE_DEVICES`` names it; the caller's where absent.
            module: What to run, with its arguments.
        """
        self._module = module
        self.name = name
        self._log, self._device = log / f"{name}.log", device
        self._process: asyncio.subprocess.Process | None = None
        self._stopping = False

    async def do(self, job: Job, progress: Callable[[Progress], None]) -> Answer:
        """Do a job; where the process dies, once more in a fresh one."""
        for _ in range(_ATTEMPTS):
            answer = await self._once(job, progress)
            if answer is not None:
                return answer
            self._process = None
            if self._stopping:
                return Answer(stopped=True)
        died = f"its process died {_ATTEMPTS} times; {self._log} says why"
        return Answer(missing=died, fault=Fault.OURS)

    def stop(self) -> None:
        """Ask for the end: a search finishes what is under way, the second time it does not."""
        self._stopping = True
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it now."""
        self._stopping = True
        self._signal(signal.SIGKILL)

    async def close(self) -> None:
        """Let it go, and see it gone."""
        process = self._process
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(30):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        self._process = None

    async def _once(self, job: Job, progress: Callable[[Progress], None]) -> Answer | None:
        if self._stopping:
            return Answer(stopped=True)
        process = self._process or await self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(encode(job)).encode() + b"\n")
        try:
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            await process.wait()
            return None
        while line := await process.stdout.readline():
            said = json.loads(line)
            if "progress" in said:
                told, of = said["progress"]
                progress(Progress(told=told, of=of, best=said["best"], usd=said["usd"]))
                continue
            if "record" in said:
                found = parsed(said["record"])
                assert isinstance(found, Record)
                return Answer(record=found)
            if "missing" in said:
                return Answer(missing=said["missing"], fault=Fault(said["fault"]))
            return Answer(**said)
        await process.wait()
        return None

    async def _started(self) -> asyncio.subprocess.Process:
        environment = dict(os.environ)
        if self._device is not None:
            environment["CUDA_VISIBLE_DEVICES"] = self._device
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with self._log.open("ab") as errors:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *self._module,
                stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=errors,
                env=environment, limit=_LINE,
                start_new_session=True,  # Ctrl-C is for the bench, which then asks its workers
            )  # fmt: skip
        return self._process

    def _signal(self, which: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(which)
