"""The CPU backend: C++ through a plain C ABI, judged on the cores of this machine."""

import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from importlib import metadata
from pathlib import Path
from weakref import WeakSet

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.builder import Builder, default_cache
from kernelsmith.evaluate.exclusive import CoreLock
from kernelsmith.evaluate.lane import Lane
from kernelsmith.evaluate.oracle import Oracle
from kernelsmith.evaluate.priority import prompt
from kernelsmith.evaluate.processor import processor
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.process import Zygote


class CpuBackend:
    """Processes forked from a zygote that imported torch and did nothing else."""

    name = "cpu"
    timed = True
    references = 4
    _preload: tuple[str, ...] = (
        "torch",
        "kernelsmith.evaluate.worker.program",
        "kernelsmith.evaluate.worker.reference",
        "kernelsmith.evaluate.worker.compiling",
    )
    _program = "kernelsmith.evaluate.worker.program:serve"

    def __init__(self, *, cache: Path | None = None, memory_bytes: int = 8 << 30) -> None:
        self._cache = cache or default_cache()
        self._limits = Limits(memory_bytes=memory_bytes)
        self._lock = CoreLock(os.sched_getaffinity(0))
        self._lanes: WeakSet[Lane] = WeakSet()
        self._zygote: Zygote | None = None
        self._builder: Builder | None = None

    @property
    def cores(self) -> int:
        """Cores that this process may use; each side uses them all, in turn."""
        return len(os.sched_getaffinity(0))

    @property
    def zygote(self) -> Zygote:
        """The process that others are forked from, started when first needed or after its end."""
        if self._zygote is None or not self._zygote.alive:
            if self._zygote is not None:
                self._zygote.close()
            self._zygote = Zygote(preload=self._preload, environment=self._environment())
            self._builder = None
        return self._zygote

    @property
    def builder(self) -> Builder:
        """The compiler, behind its own sandbox and cache."""
        zygote = self.zygote
        if self._builder is None:
            self._builder = Builder(zygote, cache=self._cache)
        return self._builder

    def device(self) -> Device:
        """Name the processor, and every version that a timing depends on."""
        return Device(
            kind="cpu",
            name=processor(),
            cores=self.cores,
            versions=(
                ("torch", version_of("torch")),
                ("python", platform.python_version()),
                ("compiler", self._compiler),
                ("kernel", platform.release()),
            ),
            sandbox=self._sandbox,
        )

    def oracle(self, task: Task) -> Oracle:
        """Open the reference in a process of its own."""
        child = self.zygote.spawn(
            entry="kernelsmith.evaluate.worker.reference:serve", limits=self._limits
        )
        try:
            return Oracle(child, task, threads=self.cores)
        except BaseException:
            child.kill()
            raise

    def lane(self, name: str, *, timeout_s: float, oracle: object = None) -> Lane:
        """Open an empty program in a process of its own."""
        del oracle  # values pass through the judge
        builder = self.builder
        child = self.zygote.spawn(entry=self._program, limits=self._limits)
        lane = Lane(child, builder, threads=self.cores, timeout_s=timeout_s, name=name)
        self._lanes.add(lane)
        return lane

    def shared(self) -> AbstractContextManager[None]:
        """The cores are the device: builds and checks share them."""
        return self._lock.shared()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Timing owns its cores: judges there wait, and other processes are put last in line."""
        with self._lock.exclusive(), prompt([lane.pid for lane in self._lanes if lane.is_open]):
            yield

    def close(self) -> None:
        """End the zygote and all its children."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None

    @cached_property
    def _compiler(self) -> str:
        return self.builder.version

    @cached_property
    def _sandbox(self) -> str:
        child = self.zygote.spawn(entry=self._program, limits=self._limits)
        try:
            return child.level.describe()
        finally:
            child.kill()

    def _environment(self) -> dict[str, str]:
        """What the zygote's children see. Threads are set per child; the rest keeps runs alike."""
        chosen = {"OMP_DYNAMIC": "FALSE"}
        # Threads that come back from a freeze may share a core for a moment; one that spins there
        # for milliseconds keeps the other from running (samples of 40 ms instead of 3 on 16 idle
        # cores).
        chosen["GOMP_SPINCOUNT"] = "1000"
        return chosen


def version_of(package: str) -> str:
    """The version of a package that candidates are judged with."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError as error:
        raise BackendUnavailable(
            f"the judge needs {package}; try: pip install {package}"
        ) from error
