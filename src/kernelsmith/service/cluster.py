"""Workers as Ray actors: Ray places them, restarts nothing, and says when a node is gone.

Autoscaling is Ray's: posts beyond what the cluster has now are actors that wait for a node.
"""

import asyncio
from typing import Any, cast

import ray
from ray.exceptions import GetTimeoutError, RayError

from kernelsmith.domain.codec import Json
from kernelsmith.errors import BackendUnavailable, SmithError, UsageError
from kernelsmith.evaluate.hardware import uses_gpu
from kernelsmith.service.process import Patience, Post, WorkerDied
from kernelsmith.service.station import (
    Hello,
    Job,
    Report,
    Station,
    hello_from,
    job_from,
    report_from,
    to_json,
)

_TYPE = "accelerator_type:"


class _Evaluating:
    """Runs on a node, in a process that Ray started for it."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._station: Station | None = None

    def hello(self) -> Json:
        """Open the backend and say who works there, or why nobody can."""
        try:
            self._station = Station(self._backend)
            return {"hello": to_json(self._station.hello())}
        except SmithError as error:
            return {"trouble": str(error)}

    def judge(self, job: Json) -> Json:
        """Judge one job."""
        assert self._station is not None
        return to_json(self._station.judge(job_from(job)))


class Cluster:
    """A connection to a Ray cluster."""

    def __init__(self, address: str, patience: Patience | None = None) -> None:
        """Join a cluster.

        Args:
            address: ``auto`` for the one this machine belongs to, ``HOST:PORT`` of its head, or
                ``ray://HOST:PORT`` from a machine outside of it.
            patience: How long a job may take.

        Raises:
            UsageError: There is none.
        """
        self._patience = patience or Patience()
        if not ray.is_initialized():
            try:
                ray.init(
                    address=address, log_to_driver=False, configure_logging=False,
                    namespace="kernelsmith",
                )  # fmt: skip
            except (ConnectionError, RuntimeError, ValueError) as error:
                said = " ".join(str(error).split())[:300]
                raise UsageError(f"no Ray cluster at {address!r}: {said}") from error
        self._gpu_type: str | None = None

    def backend(self) -> str:
        """What the cluster is for: GPUs where it has any."""
        return "triton" if _resources().get("GPU", 0) >= 1 else "cpu"

    def posts(
        self, backend: str, *, count: int | None = None, gpu_type: str | None = None
    ) -> list[Post]:
        """Places for workers: one per GPU of a type, or one per node where cores are the device.

        Args:
            backend: What is judged.
            count: How many; beyond what is there, Ray's autoscaler is asked for more.
            gpu_type: As Ray names it, such as ``H100``; the only one there is if absent.

        Raises:
            UsageError: The cluster has several types of GPU, or nothing to judge on.
        """
        resources = _resources()
        if uses_gpu(backend):
            types = sorted(each.removeprefix(_TYPE) for each in resources if _TYPE in each)
            if gpu_type is None and len(types) > 1:
                raise UsageError(
                    f"the cluster has {', '.join(types)}, whose timings do not compare; name one"
                )
            self._gpu_type = gpu_type or (types[0] if types else None)
            there = _gpus(self._gpu_type)
        else:
            there = len(_alive())
        number = there if count is None else count
        if number < 1:
            what = f"GPU of type {gpu_type}" if gpu_type else "device"
            raise UsageError(
                f"the cluster has no {what} for {backend!r} now; say how many to ask for"
            )
        return [Post(backend=backend, number=each) for each in range(number)]

    def worker(self, post: Post) -> "RayWorker":
        """Somebody for a post, wherever Ray finds room."""
        options: dict[str, Any] = {
            "num_cpus": 1,
            "max_restarts": 0,  # whoever lost an answer must know
            "scheduling_strategy": "SPREAD",
        }
        if uses_gpu(post.backend):
            options["num_gpus"] = 1
            if self._gpu_type is not None:
                options["accelerator_type"] = self._gpu_type
        return RayWorker(post, options, self._patience)


class RayWorker:
    """One actor, as a worker."""

    def __init__(self, post: Post, options: dict[str, Any], patience: Patience) -> None:
        self._post, self._options, self._patience = post, options, patience
        self._actor: Any = None

    async def start(self) -> Hello:
        """Ask for an actor and wait until Ray has placed it, however long a new node takes."""
        self._actor = ray.remote(_Evaluating).options(**self._options).remote(self._post.backend)
        said = await self._answered(self._actor.hello.remote(), None)
        if not isinstance(said, dict) or "trouble" in said:
            await self.stop()
            raise BackendUnavailable(str(cast(dict[str, Json], said).get("trouble")))
        try:
            return hello_from(said["hello"])
        except ValueError as error:
            await self.stop()
            raise WorkerDied(f"an actor is of another version: {error}") from error

    async def judge(self, job: Job) -> Report:
        """Send a job; a node that is lost takes it along, and whoever asked has to ask again."""
        said = await self._answered(self._actor.judge.remote(to_json(job)), self._patience.job_s)
        try:
            return report_from(said)
        except ValueError as error:
            await self.stop()
            raise WorkerDied(f"an actor's answer cannot be read: {error}") from error

    async def stop(self) -> None:
        """End the actor and its process."""
        actor, self._actor = self._actor, None
        if actor is not None:
            await asyncio.to_thread(ray.kill, actor, no_restart=True)

    async def _answered(self, reference: Any, limit_s: float | None) -> Json:
        try:
            async with asyncio.timeout(limit_s):
                return cast(Json, await asyncio.wrap_future(reference.future()))
        except TimeoutError as error:
            await self.stop()
            raise WorkerDied(f"an actor took more than {limit_s:.0f} s") from error
        except (RayError, GetTimeoutError) as error:
            await self.stop()
            said = " ".join(str(error).split())[:300]
            raise WorkerDied(f"an actor was lost: {said}") from error


def _resources() -> dict[str, float]:
    return cast(dict[str, float], ray.cluster_resources())


def _alive() -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]


def _gpus(gpu_type: str | None) -> int:
    total = 0.0
    for node in _alive():
        has = node["Resources"]
        if gpu_type is None or f"{_TYPE}{gpu_type}" in has:
            total += has.get("GPU", 0)
    return int(total)
