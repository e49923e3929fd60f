"""Where candidates are judged when not in this process, chosen by ``--evaluator``."""

import argparse
import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.evaluator import Elsewhere, Evaluator
from kernelsmith.evaluate.settings import Settings

if TYPE_CHECKING:
    from kernelsmith.service.cluster import Cluster
    from kernelsmith.service.crew import Crew
    from kernelsmith.service.process import Post
    from kernelsmith.service.remote import RemoteEvaluator

LOCAL = "local"
_CORES = "cores:"
_UNKNOWN = "no evaluator {!r}; one is local, cores:N, http://HOST:PORT, ray or ray://HOST:PORT"
TOKEN = "KERNELSMITH_TOKEN"
"""The variable that holds the token for a server; it is written nowhere."""


def add_evaluator(parser: argparse.ArgumentParser) -> None:
    """The option of every verb that can judge elsewhere."""
    parser.add_argument(
        "--evaluator", metavar="WHERE",
        help="local, cores:N (as many judges here as have N cores each), http://HOST:PORT of "
        "kernelsmith serve, ray, or ray://HOST:PORT (local)",
    )  # fmt: skip


@cache
def elsewhere(where: str, backend: str) -> Elsewhere | None:
    """Open the place, once for a command; none where it is this process. Closed, it opens again.

    Raises:
        UsageError: There is no such place, or it judges by another version.
    """
    if where == LOCAL:
        return None
    if _is_server(where):
        return _Server(where, backend)
    if is_cluster(where):
        return _Cluster(where, backend)
    if where.startswith(_CORES):
        return _Cores(where, backend)
    raise UsageError(_UNKNOWN.format(where))


def backend_at(where: str) -> str:
    """The backend that a place is for: a GPU's before a processor's."""
    if _is_server(where):
        return asyncio.run(_server_backend(where))
    if is_cluster(where):
        return cluster(where).backend()
    if where.startswith(_CORES):
        return "cpu"
    raise UsageError(_UNKNOWN.format(where))


def _is_server(where: str) -> bool:
    return where.startswith(("http://", "https://"))


def is_cluster(where: str) -> bool:
    """Whether a Ray cluster is meant."""
    return where == "ray" or where.startswith("ray://")


def load_for(path: Path, device: Device) -> Task:
    """Read a task for a device that is not here; a computed ``get_workloads`` runs here."""
    from kernelsmith.evaluate.backend import load_backend
    from kernelsmith.evaluate.tasks import fitting, load_task

    def run_workloads(task: Task) -> object:
        opened = load_backend("cpu")
        oracle = opened.oracle(task)
        try:
            return getattr(oracle, "workloads", None)
        finally:
            oracle.close()
            opened.close()

    return fitting(load_task(path, run_workloads), gpu=device.kind not in ("cpu", "null"))


def cluster(where: str) -> "Cluster":
    """Join a Ray cluster: ``ray`` is the one at hand."""
    try:
        from kernelsmith.service.cluster import Cluster
    except ImportError as error:
        raise _missing(error, "cluster") from error
    return Cluster("auto" if where in ("ray", "auto") else where)


class _Server:
    """A server of ours."""

    def __init__(self, url: str, backend: str) -> None:
        self._url, self._backend = url, backend
        self._opened = [_remote(url, backend, None, fresh=False)]
        self._device = asyncio.run(self._connected())

    @property
    def device(self) -> Device:
        return self._device

    def evaluator(self, settings: Settings, *, fresh: bool = False) -> Evaluator:
        self._opened.append(
            _remote(self._url, self._backend, settings, fresh=fresh, device=self._device.name)
        )
        return self._opened[-1]

    async def close(self) -> None:
        await asyncio.gather(*(each.close() for each in self._opened))

    async def _connected(self) -> Device:
        try:
            return await self._opened[0].connect()
        finally:
            await self._opened[0].close()


class _Cluster:
    """A Ray cluster."""

    def __init__(self, where: str, backend: str) -> None:
        from kernelsmith.service.crew import Crew

        joined = cluster(where)
        self._crew = Crew(joined.posts(backend), joined.worker)
        self._device = asyncio.run(self._crew.connect())

    @property
    def device(self) -> Device:
        return self._device

    def evaluator(self, settings: Settings, *, fresh: bool = False) -> Evaluator:
        del fresh  # nothing is kept
        return self._crew.evaluator(settings)

    async def close(self) -> None:
        await self._crew.close()


class _Cores:
    """Judges on this machine, each with cores of its own: processes, which time all at once."""

    def __init__(self, where: str, backend: str) -> None:
        said = where.removeprefix(_CORES)
        if not said.isdecimal():
            raise UsageError(f"cores:N takes a number, such as cores:2; got {where!r}")
        self._posts = cores_posts(int(said), backend)
        self._device = device_of_post(self._posts[0])
        self._crew: Crew | None = None

    @property
    def device(self) -> Device:
        return self._device

    def evaluator(self, settings: Settings, *, fresh: bool = False) -> Evaluator:
        del fresh  # nothing is kept
        if self._crew is None:  # a process answers in one event loop only: closed, it is over
            self._crew = crew_of(self._posts)
        return self._crew.evaluator(settings)

    async def close(self) -> None:
        if self._crew is not None:
            await self._crew.close()
            self._crew = None


def cores_posts(cores: int, backend: str) -> "list[Post]":
    """One post per so many cores of this machine.

    Raises:
        UsageError: It has fewer, or they are not what the backend times on.
    """
    from kernelsmith.service.posts import posts_for

    if backend != "cpu":
        raise UsageError(f"cores are shared out for the backend cpu; {backend} times on others")
    return posts_for([backend], 1, cores=cores)


def crew_of(posts: "Sequence[Post]") -> "Crew":
    """Processes at some posts of this machine."""
    from kernelsmith.service.crew import Crew
    from kernelsmith.service.process import Patience, WorkerProcess

    return Crew(posts, lambda post: WorkerProcess(post, Patience()))


def device_of_post(post: "Post") -> Device:
    """What is judged on at a post of this machine's cores."""
    from kernelsmith.evaluate.backend import load_backend

    opened = load_backend(post.backend)
    try:
        return replace(opened.device(), cores=len(post.cores))
    finally:
        opened.close()


def _remote(
    url: str, backend: str, settings: Settings | None, *, fresh: bool, device: str | None = None
) -> "RemoteEvaluator":
    try:
        from kernelsmith.service.remote import RemoteEvaluator
    except ImportError as error:
        raise _missing(error, "service") from error
    return RemoteEvaluator(
        url, backend=backend, settings=settings, token=os.environ.get(TOKEN), device=device,
        cache=not fresh,
    )  # fmt: skip


async def _server_backend(url: str) -> str:
    try:
        from kernelsmith.service.remote import backends_of
    except ImportError as error:
        raise _missing(error, "service") from error
    names: Sequence[str] = await backends_of(url, token=os.environ.get(TOKEN))
    return next((name for name in ("triton", "cpu") if name in names), names[0])


def _missing(error: ImportError, extra: str) -> UsageError:
    return UsageError(
        f"this evaluator needs the module {error.name!r}; try: pip install 'kernelsmith[{extra}]'"
    )
