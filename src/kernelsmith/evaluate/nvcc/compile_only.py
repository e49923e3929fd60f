"""Without a GPU: candidates are built, and told what their compiler says; nothing is judged."""

from collections.abc import Callable
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Kernel, Verdict
from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backends.cpu import CpuBackend, version_of
from kernelsmith.evaluate.builder import Builder
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lane import Lane
from kernelsmith.evaluate.nvcc.cute import missing_cute
from kernelsmith.evaluate.nvcc.lane import compiled, with_notes
from kernelsmith.evaluate.nvcc.report import table
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.values import Setup


class CompileOnlyLane(Lane):
    """Loads a candidate, which builds its kernels, and goes no further."""

    missing = ""
    """What it would take to go on."""

    @property
    def compiled(self) -> tuple[Kernel, ...]:
        """What the compiler said of its kernels."""
        return compiled(self._artifacts)

    @property
    def output(self) -> str:
        """Tail of what it printed, and what the compilers had to say."""
        return with_notes(super().output, self._artifacts)

    def load(self, source: str, entry: str, setup: Setup, *, function: bool) -> None:
        """Build.

        Raises:
            ProgramFailed: It does not build, or does not load.
            BackendUnavailable: It builds; there is nothing here to run it on.
        """
        if missing := missing_cute(source):
            raise ProgramFailed(Verdict.BUILD_FAILED, missing)
        super().load(source, entry, setup, function=function)
        if not self._artifacts:
            said = "builds nothing when it is loaded (build kernels at module level)"
        else:
            said = f"builds ({table(self.compiled) or 'no kernels reported'})".replace("\n", "; ")
        raise BackendUnavailable(f"the candidate {said}; {self.missing}")


class CompileOnlyBackend(CpuBackend):
    """A compiler without its device."""

    timed = False
    runs = False
    """Whether candidates can be judged at all."""
    _preload = (*CpuBackend._preload, "kernelsmith.evaluate.worker.nvrtc")

    def __init__(
        self, name: str, *, missing: str, open_builder: Callable[[Zygote, Path], Builder],
        tools: tuple[tuple[str, str], ...], cache: Path | None = None,
    ) -> None:  # fmt: skip
        super().__init__(cache=cache)
        self.name, self._missing, self._tools = name, missing, tools
        self._open_builder = open_builder

    def device(self) -> Device:
        """Say that there is none."""
        return Device(
            kind="none",
            name=f"nothing runs here: {self._missing}",
            versions=(("torch", version_of("torch")), *self._tools),
            sandbox=self._sandbox,
        )

    def lane(self, name: str, *, timeout_s: float, oracle: object = None) -> Lane:
        """Open an empty program that can only be built."""
        del oracle
        builder = self.builder
        child = self.zygote.spawn(entry=self._program, limits=self._limits)
        lane = CompileOnlyLane(child, builder, threads=self.cores, timeout_s=timeout_s, name=name)
        lane.missing = f"judging it needs more: {self._missing}"
        self._lanes.add(lane)
        return lane

    @property
    def builder(self) -> Builder:
        """The compiler, behind its own sandbox and cache."""
        zygote = self.zygote
        if self._builder is None:
            self._builder = self._open_builder(zygote, self._cache)
        return self._builder
