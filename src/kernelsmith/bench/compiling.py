"""Backends on which one side of a comparison may start torch's compiler, loaded before it forks.

Loading the compiler takes seconds (4 to 5 where an H200 was), and every side of every pair is a
fresh process: so that side is forked from a process of its own that has it loaded. The other side
comes from where candidates always come from, and has nothing of it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from kernelsmith.errors import SmithError
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lane import Lane
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.values import Setup

_COMPILER = ("torch._dynamo", "torch._inductor.compile_fx")
_ENVIRONMENT = {"TORCHINDUCTOR_COMPILE_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Read when the compiler is loaded; its pool of processes would be forked along. And it asks
whether there is a device, for which CUDA would be initialised, with a thread, before the fork."""
_LIMITS = Limits(memory_bytes=12 << 30, scratch_bytes=1 << 30, threads=256, open_files=1024)
_WORKER = "kernelsmith.bench.parts.compiled_program"


class Compiling(Backend, Protocol):
    """A backend that knows which side compiles."""

    compiles: str
    """``candidate`` or ``baseline``."""


class CompilingCpu(CpuBackend):
    """A processor on which one side may start a compiler."""

    compiles = "candidate"

    def __init__(self) -> None:
        super().__init__()
        self._compilers = _Compilers((*self._preload, *_COMPILER, _WORKER), self._environment)
        self._files: dict[str, dict[str, str]] = {}
        """What was compiled, by source."""

    def lane(self, name: str, *, timeout_s: float, oracle: object = None) -> Lane:
        """Open an empty program; one of the side that compiles sees the compiler."""
        if name != self.compiles:
            return super().lane(name, timeout_s=timeout_s, oracle=oracle)
        builder = self.builder
        child = self._compilers.zygote.spawn(
            entry=f"{_WORKER}:serve", profile=Profile.BUILD, limits=_LIMITS,
            readable=builder._toolchain,
        )  # fmt: skip
        lane = _CompilingLane(child, builder, threads=self.cores, timeout_s=timeout_s, name=name)
        lane.files = self._files
        self._lanes.add(lane)
        return lane

    def close(self) -> None:
        """End every process."""
        self._compilers.close()
        super().close()


class _CompilingLane(Lane):
    """Begins with what earlier processes of its source compiled."""

    files: dict[str, dict[str, str]]
    _source = ""

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Run the source with the files of earlier ones at hand."""
        self._source = source
        known: dict[str, object] = dict(self.files.get(source, {}))
        self._load(source, entry, setup, function=function, more={"cache": known})

    def settle(self) -> None:
        """Keep what was compiled for the next process."""
        super().settle()
        found = self._ask({"do": "compiled"}).get("cache")
        if isinstance(found, dict) and found:
            self.files[self._source] = {str(key): str(text) for key, text in found.items()}

    def close(self) -> None:
        """End it; a baseline is never asked to settle, so it does so now."""
        if self.is_open and self._source and self._source not in self.files:
            with suppress(ProgramFailed, SmithError):
                self.settle()
        super().close()


class CompilingCuda(CudaBackend):
    """A device on which one side may start a compiler."""

    compiles = "candidate"

    def __init__(self) -> None:
        super().__init__()
        self._compilers = _Compilers((*self._preload, *_COMPILER), self._environment)

    def close(self) -> None:
        """End every process."""
        self._compilers.close()
        super().close()

    def _parent(self, name: str) -> Zygote:
        return self._compilers.zygote if name == self.compiles else self.zygote


class _Compilers:
    """The process that has the compiler loaded, started when first needed or after its end."""

    def __init__(self, preload: tuple[str, ...], environment: Callable[[], dict[str, str]]) -> None:
        self._preload, self._environment = preload, environment
        self._zygote: Zygote | None = None

    @property
    def zygote(self) -> Zygote:
        """Whom the compiling side is forked from."""
        if self._zygote is None or not self._zygote.alive:
            self.close()
            environment = {**self._environment(), **_ENVIRONMENT}
            self._zygote = Zygote(preload=self._preload, environment=environment)
        return self._zygote

    def close(self) -> None:
        """End it and all that come from it."""
        if self._zygote is not None:
            self._zygote.close()
            self._zygote = None
