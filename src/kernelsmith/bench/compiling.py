"""Backends on which one side of a comparison may start torch's compiler, loaded before it forks.

Loading the compiler takes seconds (4 to 5 where an H200 was), and every side of every pair is a
fresh process: so that side is forked from a process of its own that has it loaded. The other side
comes from where candidates always come from, and has nothing of it. Where that process cannot start
(a thread may be left behind by what it loaded, and then nothing is forked), each process of that
side loads the compiler for itself: seconds more, and the same result.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Protocol

from kernelsmith.errors import EvaluationLost, SmithError
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.lane import Settled, remember
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lane import Lane
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.values import Setup

_COMPILER = "kernelsmith.propose.rules.compiler.loading"
_ENVIRONMENT = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}
"""Read when the compiler is loaded; its pool of processes would be forked along."""
_LIMITS = Limits(memory_bytes=12 << 30, scratch_bytes=1 << 30, threads=256, open_files=1024)
_WORKER = "kernelsmith.bench.parts.compiled_program"
_INDUCTOR, _GRAPHS = "inductor/", "/fxgraph/"
logger = logging.getLogger(__name__)


class Compiling(Backend, Protocol):
    """A backend that knows which side compiles."""

    compiles: str
    """``candidate`` or ``baseline``."""

    def load(self) -> None:
        """Start the process that has the compiler loaded; else whoever needs it first does."""
        ...

    def seed(self, source: str, files: Mapping[str, str]) -> None:
        """Let the next processes of a source begin with files that were compiled elsewhere.

        Args:
            source: Whose.
            files: In base64, by name in the folder that Triton compiles to; what is Inductor's is
                in ``inductor`` there.
        """
        ...

    def compiled_anew(self, source: str) -> bool | None:
        """Whether a process compiled although it began with such files; nothing: none has said."""
        ...


class CompilingCpu(CpuBackend):
    """A processor on which one side may start a compiler."""

    compiles = "candidate"

    def __init__(self) -> None:
        super().__init__()
        serving = (*self._preload, _WORKER)
        self._spare = _Parent(serving, self._environment)
        self._compilers = _Compilers(serving, self._environment, spare=lambda: self._spare.zygote)
        self._files: dict[str, dict[str, str]] = {}
        """What was compiled, by source."""
        self._seeds: dict[str, dict[str, str]] = {}
        """What was compiled elsewhere, by source."""

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

    def load(self) -> None:
        """Start the process that has the compiler loaded."""
        _ = self._compilers.zygote

    def seed(self, source: str, files: Mapping[str, str]) -> None:
        """Keep what is Inductor's, as if an earlier process had compiled it."""
        here = {key: text for key, text in files.items() if key.startswith(_INDUCTOR)}
        here = {key.removeprefix(_INDUCTOR): text for key, text in here.items()}
        self._files[source] = self._seeds[source] = here

    def compiled_anew(self, source: str) -> bool | None:
        """Whether there are graphs that were not among the files."""
        seeds, found = self._seeds.get(source), self._files.get(source)
        if seeds is None or found is None or found is seeds:
            return None
        return not _graphs(found) <= _graphs(seeds)

    def close(self) -> None:
        """End every process."""
        self._compilers.close()
        self._spare.close()
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
        self._compilers = _Compilers(self._preload, self._environment, spare=lambda: self.zygote)
        self._seeds: dict[str, set[str]] = {}
        """Graphs that were compiled elsewhere, by source."""

    def load(self) -> None:
        """Start the process that has the compiler loaded."""
        _ = self._compilers.zygote

    def seed(self, source: str, files: Mapping[str, str]) -> None:
        """Keep them, as if an earlier process had compiled them."""
        self._seeds[source] = _graphs(files)
        remember(self._settled, source, Settled(files=dict(files), seeded=True))

    def compiled_anew(self, source: str) -> bool | None:
        """Whether there are graphs that were not among the files."""
        seeds, known = self._seeds.get(source), self._settled.get(source)
        if seeds is None or known is None or known.seeded:
            return None
        return not _graphs(known.files) <= seeds

    def close(self) -> None:
        """End every process."""
        self._compilers.close()
        super().close()

    def _parent(self, name: str) -> Zygote:
        return self._compilers.zygote if name == self.compiles else self.zygote


def _graphs(files: Iterable[str]) -> set[str]:
    """The names of what Inductor keeps for each graph that it compiled."""
    return {name for name in files if _GRAPHS in f"/{name}"}


class _Parent:
    """A process that others are forked from, started when first needed or after its end."""

    def __init__(self, preload: tuple[str, ...], environment: Callable[[], dict[str, str]]) -> None:
        self._preload, self._environment = preload, environment
        self._zygote: Zygote | None = None

    @property
    def zygote(self) -> Zygote:
        """The process.

        Raises:
            EvaluationLost: It does not start.
        """
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


class _Compilers:
    """The process that has the compiler loaded; where it cannot start, one that has not."""

    def __init__(
        self, preload: tuple[str, ...], environment: Callable[[], dict[str, str]], *,
        spare: Callable[[], Zygote],
    ) -> None:  # fmt: skip
        self._loaded = _Parent((*preload, _COMPILER), environment)
        self._spare = spare
        self._fails = False
        """Whether it was seen that it cannot start: trying takes seconds, and is done once."""

    @property
    def zygote(self) -> Zygote:
        """Whom the compiling side is forked from."""
        if not self._fails:
            try:
                return self._loaded.zygote
            except EvaluationLost as error:
                self._fails = True
                logger.warning(
                    "the compiler cannot be loaded ahead, so every process loads it: %s", error
                )
        return self._spare()

    def close(self) -> None:
        """End the process and all that come from it."""
        self._loaded.close()
