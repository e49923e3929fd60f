"""CUDA C++ on an NVIDIA device: the judge of Triton kernels, with a compiler of its own."""

from functools import cached_property
from pathlib import Path

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.cuda import tools
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.evaluate.nvcc.lane import CudaLane
from kernelsmith.evaluate.nvcc.sanitizer import Examined, examined, find_sanitizer
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.local import arch_of
from kernelsmith.kernels.toolkit import DEFAULT_ARCH, Toolkit, find_toolkit

_WORKER = "kernelsmith.evaluate.worker"


class CudaCppBackend(CudaBackend):
    """Kernels are compiled outside the candidate's process, which can start no other."""

    name = "cuda"
    _preload: tuple[str, ...] = (
        "torch",
        f"{_WORKER}.cuda.program",
        f"{_WORKER}.cuda.reference",
        f"{_WORKER}.compiling",
        f"{_WORKER}.nvrtc",
    )
    _libraries: tuple[str, ...] = ("torch",)
    _profile = Profile.RUN
    _rehearses = False

    def __init__(self, toolkit: Toolkit | None = None, *, cache: Path | None = None) -> None:
        super().__init__(cache=cache)
        self._toolkit = toolkit or find_toolkit()
        self._builders: dict[int, CudaBuilder] = {}

    @cached_property
    def arch(self) -> str:
        """What to build for: the device at hand."""
        capability = self.gpu.capability
        return arch_of(*capability) if capability is not None else DEFAULT_ARCH

    @property
    def builder(self) -> CudaBuilder:
        """The compiler, behind its own sandbox and cache."""
        zygote = self.zygote
        if zygote.pid not in self._builders:
            self._builders = {zygote.pid: self._open_builder(zygote)}
        return self._builders[zygote.pid]

    def lane(self, name: str, *, timeout_s: float, oracle: DeviceOracle | None = None) -> CudaLane:
        """Open an empty program in a process of its own."""
        assert oracle is not None
        return CudaLane(
            self._spawn("program"), oracle, threads=1, timeout_s=timeout_s, name=name,
            template=None, settled=self._settled, builder=self.builder,
        )  # fmt: skip

    def examined(self, task: Task, candidate: Candidate) -> list[Examined]:
        """What compute-sanitizer says of a pass; nothing where it is not installed."""
        tool = find_sanitizer(self._toolkit)
        if tool is None:
            return []
        with self.exclusive():
            return examined(
                self.zygote, tool, task, candidate.source, devices=self._device_files(),
                readable=self._watched_folders(),
            )  # fmt: skip

    def _watched_folders(self) -> list[Path]:
        return [*super()._watched_folders(), *self._toolkit.folders]

    def _open_builder(self, zygote: Zygote) -> CudaBuilder:
        return CudaBuilder(zygote, cache=self._cache, arch=self.arch, toolkit=self._toolkit)

    def _tools(self) -> tuple[tuple[str, str], ...]:
        return tools(self._toolkit)
