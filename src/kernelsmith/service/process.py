"""The server's hold on one worker process: started, asked, watched, ended."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kernelsmith.domain.codec import Json
from kernelsmith.errors import BackendUnavailable, EvaluationLost
from kernelsmith.service import frames
from kernelsmith.service.station import Hello, Job, Report, hello_from, report_from, to_json
from kernelsmith.service.worker import SECRETS


class WorkerDied(EvaluationLost):
    """A worker ended, or had to be ended, before it answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a worker may take before it is given up."""

    start_s: float = 180.0
    beat_s: float = 2.0
    """How often it says that it lives."""
    silence_s: float = 30.0
    job_s: float = 1800.0
    """For one job, all its workloads and attempts included."""


class Worker(Protocol):
    """Somebody who judges one job at a time: a process here, an actor on a cluster."""

    async def start(self) -> Hello:
        """Come up and say who it is.

        Raises:
            BackendUnavailable: It cannot work there.
            WorkerDied: It did not come up.
        """
        ...

    async def judge(self, job: Job) -> Report:
        """Judge.

        Raises:
            WorkerDied: It ended before it answered; it must not be asked again.
        """
        ...

    async def stop(self) -> None:
        """End it, and all that it started. Does no harm twice."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """A place for one worker: a device and what must be in the environment to use it."""

    backend: str
    number: int
    environment: Mapping[str, str] = field(default_factory=dict)
    cores: tuple[int, ...] = ()
    """The only ones that it may use; all where none are named."""


class WorkerProcess:
    """A worker in a process group of its own on this machine."""

    def __init__(self, post: Post, patience: Patience) -> None:
        self._post, self._patience = post, patience
        self._process: subprocess.Popen[bytes] | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None
        self._answer: asyncio.Future[dict[str, Json]] | None = None
        self._heard = 0.0
        self._number = 0

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return None if self._process is None else self._process.pid

    async def start(self) -> Hello:
        """Start the process and wait until its backend is open."""
        ours, theirs = socket.socketpair()
        cores = self._post.cores
        command = [sys.executable, "-m", "kernelsmith.service.worker", str(theirs.fileno())]
        with theirs:
            self._process = subprocess.Popen(
                [*command, self._post.backend, str(self._patience.beat_s), *map(str, cores)],
                env=_environment(self._post.environment), pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        reader, self._writer = await asyncio.open_connection(sock=ours, limit=1 << 20)
        self._answer = asyncio.get_running_loop().create_future()
        self._listening = asyncio.create_task(self._listen(reader))
        said = await self._answered(self._patience.start_s)
        if "trouble" in said:
            await self.stop()
            raise BackendUnavailable(str(said["trouble"]))
        try:
            return hello_from(said.get("hello"))
        except ValueError as error:
            await self.stop()
            raise WorkerDied(f"a worker said something else than hello: {error}") from error

    async def judge(self, job: Job) -> Report:
        """Send a job and wait for its report, for as long as the worker shows signs of life."""
        assert self._writer is not None
        self._number += 1
        self._answer = asyncio.get_running_loop().create_future()
        self._writer.write(frames.packed({"number": self._number, "job": to_json(job)}))
        said = await self._answered(self._patience.job_s)
        try:
            if said.get("number") != self._number:
                raise ValueError("an answer to another question")
            return report_from(said.get("report"))
        except ValueError as error:
            await self.stop()
            raise WorkerDied(f"a worker's answer cannot be read: {error}") from error

    async def stop(self) -> None:
        """Kill the group. Its leader is not waited for before, so the number is still its own."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if self._listening is not None:
            self._listening.cancel()
        if self._writer is not None:
            self._writer.close()
        await asyncio.to_thread(process.wait)

    async def _answered(self, limit_s: float) -> dict[str, Json]:
        assert self._answer is not None
        loop = asyncio.get_running_loop()
        begun = self._heard = loop.time()
        while True:
            done, _ = await asyncio.wait({self._answer}, timeout=self._patience.beat_s)
            if done:
                break
            now = loop.time()
            if now - self._heard > self._patience.silence_s:
                why = f"it was silent for {self._patience.silence_s:.0f} s"
            elif now - begun > limit_s:
                why = f"it took more than {limit_s:.0f} s"
            else:
                continue
            await self.stop()
            raise WorkerDied(f"a worker was ended: {why}")
        try:
            return self._answer.result()
        except WorkerDied:
            await self.stop()
            raise

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        why = "it hung up"
        try:
            while True:
                said = await frames.read(reader)
                self._heard = asyncio.get_running_loop().time()
                if isinstance(said, dict) and self._answer and not self._answer.done():
                    self._answer.set_result(said)
        except (EOFError, ConnectionError) as error:
            why = str(error) or why
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(WorkerDied(f"a worker died: {why}"))


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return {**own, **extra}
