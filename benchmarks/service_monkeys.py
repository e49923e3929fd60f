"""What goes wrong on purpose while the service is under load; see ``service_chaos``."""

import asyncio
import contextlib
import os
import random
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.report import ROOT

HOST = "127.0.0.1"
DEEDS = ("worker", "server", "worker", "freeze", "disk", "worker", "slow")
_RST = b"\x01\x00\x00\x00\x00\x00\x00\x00"
"""SO_LINGER on with no time: closing resets the connection."""


class Victim:
    """A server in a process of its own, which can be killed and started again on its store."""

    def __init__(self, folder: Path, *, judges: int) -> None:
        self._folder, self._judges = folder, judges
        with socket.socket() as probe:
            probe.bind((HOST, 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self.log = folder / "server.log"

    @property
    def store(self) -> Path:
        return self._folder / "store" / "queue.sqlite"

    def start(self) -> None:
        command = [sys.executable, "-m", "benchmarks.service_chaos", "--serve", str(self.port)]
        environment = {**os.environ, "KERNELSMITH_TOKEN": "a secret that no worker may see"}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--judges", str(self._judges), "--store", str(self._folder / "store")],
                cwd=ROOT, stdout=log, stderr=log, env=environment,
            )  # fmt: skip

    async def ready(self, patience_s: float = 30.0) -> None:
        """Wait until it listens."""
        deadline = time.monotonic() + patience_s
        while time.monotonic() < deadline:
            assert self._process is not None
            assert self._process.poll() is None, self.log.read_text()[-2000:]
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(HOST, self.port)
                writer.close()
                return
            await asyncio.sleep(0.1)
        raise TimeoutError("the server did not come up")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def workers(self) -> list[int]:
        """Its worker processes, by who their parent is."""
        found = []
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                after = (entry / "stat").read_text().rpartition(")")[2].split()
                line = (entry / "cmdline").read_bytes()
                if int(after[1]) == self.pid and b"kernelsmith.service.worker" in line:
                    found.append(int(entry.name))
        return found

    def kill(self) -> None:
        """``kill -9``; its workers must end by themselves."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    async def stop(self) -> int:
        """End it as an operator would, and return its exit status."""
        assert self._process is not None
        self._process.terminate()
        return await asyncio.to_thread(self._process.wait, 60)

    def limit_files(self, size: int) -> None:
        """Let no file of its grow beyond this: as a full disk would."""
        _, hard = resource.prlimit(self.pid, resource.RLIMIT_FSIZE)
        soft = hard if size < 0 else size
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (soft, hard))


class Proxy:
    """Passes bytes between clients and the server, and cuts some connections in the middle."""

    def __init__(self, port: int, rng: random.Random, *, cut: float) -> None:
        self._port, self._rng, self._cut = port, rng, cut
        self.cuts = 0
        self.port = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._joined, HOST, 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(HOST, self._port)
        except OSError:
            writer.close()
            return
        budget = None
        if self._rng.random() < self._cut:
            budget = self._rng.randrange(1, 4000)
        ways = [self._pump(reader, far_writer, budget), self._pump(far_reader, writer, budget)]
        tasks = [asyncio.ensure_future(way) for way in ways]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        for each in (writer, far_writer):
            if budget is not None and (sock := each.get_extra_info("socket")) is not None:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RST)
            each.close()

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, budget: int | None
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 14):
                if budget is not None:
                    budget -= len(data)
                    if budget <= 0:
                        self.cuts += 1
                        writer.write(data[:budget] if budget else data)
                        return
                writer.write(data)
                await writer.drain()


class Monkeys:
    """Break things, each kind in turn, until told to stop."""

    def __init__(self, victim: Victim, rng: random.Random, *, pace_s: float) -> None:
        self._victim, self._rng, self._pace_s = victim, rng, pace_s
        self.did: Counter[str] = Counter()

    async def run(self) -> None:
        """Never ends by itself; begins each thing only when the last one is over."""
        while True:
            for deed in DEEDS:
                await asyncio.sleep(self._pace_s * self._rng.uniform(0.5, 1.5))
                await getattr(self, f"_{deed}")()
                self.did[deed] += 1

    async def _worker(self) -> None:
        if workers := self._victim.workers():
            _signal(self._rng.choice(workers), signal.SIGKILL)

    async def _freeze(self) -> None:
        """A worker that hangs: its lease runs out."""
        if workers := self._victim.workers():
            _signal(self._rng.choice(workers), signal.SIGSTOP)

    async def _server(self) -> None:
        self._victim.kill()
        await asyncio.sleep(0.3)
        self._victim.start()
        await self._victim.ready()

    async def _disk(self) -> None:
        wal = self._victim.store.with_name("queue.sqlite-wal")
        size = wal.stat().st_size if wal.exists() else 0
        self._victim.limit_files(max(1, min(size, self._victim.store.stat().st_size)))
        try:
            await asyncio.sleep(min(5.0, self._pace_s))
        finally:
            self._victim.limit_files(-1)

    async def _slow(self) -> None:
        """Clients that begin to speak and do not go on; the others must not notice."""
        opened = []
        for _ in range(20):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection(HOST, self._victim.port)
                head = f"POST /v1/requests HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 999999\r\n"
                writer.write(f"{head}Content-Type: application/json\r\n\r\n{{".encode())
                opened.append(writer)
        asyncio.get_running_loop().call_later(10.0, lambda: [each.close() for each in opened])


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def rows(store: Path, statement: str) -> list[tuple[object, ...]]:
    """Read the store itself, past the service."""
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as db:
        return db.execute(statement).fetchall()
