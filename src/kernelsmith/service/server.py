"""A server from start to end: socket, store, fleet, HTTP; and a clean stop."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from kernelsmith.errors import UsageError
from kernelsmith.service.app import Service, make_app
from kernelsmith.service.door import Door, is_loopback
from kernelsmith.service.fleet import Care, Fleet
from kernelsmith.service.limits import Limits
from kernelsmith.service.metrics import Metrics
from kernelsmith.service.process import Patience, Post, Worker, WorkerProcess
from kernelsmith.service.queue import Queue, Rules
from kernelsmith.service.store import lock
from kernelsmith.service.tokens import read_tokens

logger = logging.getLogger(__name__)
PORT = 8471
_PRUNE_S = 600.0
_CLOSING_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfig:
    """Everything that a server can be told."""

    folder: Path
    """Where the queue is kept."""
    posts: Sequence[Post]
    host: str = "127.0.0.1"
    port: int = PORT
    token_file: Path | None = None
    limits: Limits = field(default_factory=Limits)
    rules: Rules = field(default_factory=Rules)
    care: Care = field(default_factory=Care)
    patience: Patience = field(default_factory=Patience)
    grace_s: float = 30.0
    """How long evaluations under way may take when the server is stopped."""
    most_bytes: int | None = None
    """How large the queue may grow on disk."""

    def __post_init__(self) -> None:
        if not self.posts:
            raise UsageError("nothing to judge with: no backend was named")
        if self.token_file is None and not is_loopback(self.host):
            raise UsageError(
                f"{self.host!r} can be reached from other machines, and without tokens anybody "
                "could run code here; name a --token-file, or serve on 127.0.0.1"
            )


async def serve(
    config: ServerConfig,
    *,
    ready: Callable[[str], None],
    hire: Callable[[Post], Worker] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    Args:
        config: What to serve, and how.
        ready: Called with the address when requests are accepted.
        hire: Makes workers; processes on this machine if not given.

    Raises:
        UsageError: The address or the folder is taken, or the token file is wrong.
    """
    tokens = None if config.token_file is None else read_tokens(config.token_file)
    with _bound(config.host, config.port) as sock, _folder(config.folder) as folder:
        metrics = Metrics()
        queue = Queue(
            folder / "queue.sqlite", limits=config.limits, rules=config.rules, metrics=metrics,
            most_bytes=config.most_bytes,
        )  # fmt: skip
        fleet = Fleet(
            config.posts, queue=queue, care=config.care, metrics=metrics,
            hire=hire or (lambda post: WorkerProcess(post, config.patience)),
        )  # fmt: skip
        door = Door(tokens, config.limits, time.monotonic)
        app = make_app(
            Service(queue=queue, fleet=fleet, door=door, limits=config.limits, metrics=metrics)
        )
        server = _Server(
            uvicorn.Config(
                app, log_level="warning", access_log=False, server_header=False, lifespan="off",
                timeout_graceful_shutdown=int(_CLOSING_S), timeout_keep_alive=75,
            )
        )  # fmt: skip

        def stop() -> None:
            server.should_exit = True
            queue.bell.end()

        loop = asyncio.get_running_loop()
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(each, stop)
        fleet.start()
        pruning = asyncio.create_task(_prune(queue))
        host, port = sock.getsockname()[:2]
        ready(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        try:
            await server.serve(sockets=[sock])
        finally:
            pruning.cancel()
            await fleet.stop(config.grace_s)
            await queue.close()


class _Server(uvicorn.Server):
    """Leaves signals to us: more than HTTP has to be stopped."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def _prune(queue: Queue) -> None:
    while True:
        await asyncio.sleep(_PRUNE_S)
        if gone := await queue.prune():
            logger.info("%d answers are forgotten", gone)


@contextlib.contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, address = found[0]
        # Named in full: without its protocol asyncio leaves answers to Nagle, 40 ms each.
        sock = socket.socket(family, kind, protocol)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(2048)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot serve on {host}:{port}: {error}") from error
    with sock:
        yield sock


@contextlib.contextmanager
def _folder(folder: Path) -> Iterator[Path]:
    """Take the folder for this process, readable by nobody else."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    held = lock(folder)
    try:
        yield folder
    finally:
        os.close(held)
