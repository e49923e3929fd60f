"""The judge on a MetaX GPU, where torch calls it ``cuda``. It never ran on one here: untested.

The judge of NVIDIA GPUs asks the driver for what torch does not offer: sharing memory between
processes, and what a graph holds. cu-bridge has a driver of the same interface, so the same code
asks that one. What it lacks shows as an error that names the call.
"""

import os
import platform
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Kernel
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.nvml import ComputeMode, Gpu, Snapshot
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.maca.builder import MacaBuilder
from kernelsmith.evaluate.maca.metax import MetaX
from kernelsmith.evaluate.nvcc.backend import CudaCppBackend
from kernelsmith.evaluate.nvcc.lane import CudaLane
from kernelsmith.evaluate.nvcc.report import demangled
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.torch_build import triton_version
from kernelsmith.evaluate.untested import METAX
from kernelsmith.evaluate.worker.cuda.driver import LIBRARY


class MetaXGpu(Gpu):
    """The device as far as it is known; there is no NVML to ask."""

    def __init__(self, name: str) -> None:
        self.index, self.name = 0, name
        self.uuid = f"metax-{os.environ.get('MACA_VISIBLE_DEVICES', '0').split(',')[0]}"
        self.driver_version = "unknown"
        self.max_sm_mhz = self.max_memory_mhz = self.bus_bits = None

    @property
    def capability(self) -> tuple[int, int] | None:
        """Torch says (8, 0), which is not what the compiler builds for."""
        return None

    def compute_mode(self) -> ComputeMode | None:
        """Nobody says."""
        return None

    def pids(self) -> frozenset[int] | None:
        """Nobody says."""
        return None

    def snapshot(self) -> Snapshot:
        """Nothing is known of clocks and temperatures: ``mx-smi`` is too slow to ask each time."""
        return Snapshot(
            sm_mhz=None, memory_mhz=None, celsius=None, watts=None, reasons=frozenset(), pids=None
        )


class MacaLane(CudaLane):
    """A program on a MetaX GPU. Whose a kernel is, is told by its name alone: a weaker proof."""

    def kernels(self, slots: Sequence[int], launches: int) -> list[tuple[Kernel, float]]:
        """What it launches, with microseconds per call."""
        known = {each.name for each in self.compiled}
        found = super(CudaLane, self).kernels(slots, launches)
        return [
            (replace(said, own=bool(set(re.findall(r"\w+", demangled(said.name))) & known)), us)
            for said, us in found
        ]


class MetaXBackend(CudaBackend):
    """What holds for every kind of source on the first MetaX GPU."""

    _found: MetaX
    _rehearses = False

    @cached_property
    def gpu(self) -> Gpu:
        """The device in use."""
        return MetaXGpu(self._found.device)

    def device(self) -> Device:
        """Name the device and every version that a timing depends on, and say what is untested."""
        return Device(
            kind="maca",
            name=self.gpu.name,
            versions=(
                ("torch", self._found.torch_version),
                ("maca", self._found.torch),
                *self._tools(),
                ("mxcc", str(self._found.sdk.mxcc)),
                ("python", platform.python_version()),
                ("kernel", platform.release()),
                ("state", METAX),
            ),
            sandbox=self._sandbox,
        )

    def _device_files(self) -> list[Path]:
        return list(self._found.devices)

    def _folders(self) -> list[Path]:
        return [*super()._folders(), *self._found.sdk.folders]

    def _environment(self) -> dict[str, str]:
        chosen = {"MACA_CACHE_PATH": "/tmp/maca", **super()._environment()}
        for name in ("MACA_PATH", "CUCC_PATH", "CUDA_PATH", "MACA_VISIBLE_DEVICES"):
            if value := os.environ.get(name):
                chosen[name] = value
        bridge = self._found.sdk.bridge
        if bridge is not None and (bridge / "lib" / "libcuda.so").exists():
            chosen[LIBRARY] = str(bridge / "lib" / "libcuda.so")
        return chosen


class OnMetaX(MetaXBackend, CudaCppBackend):
    """MACA C++ on the first MetaX GPU."""

    name = "maca"

    def __init__(self, found: MetaX, *, cache: Path | None = None) -> None:
        super().__init__(cache=cache)
        self._found = found
        self._maca_builders: dict[int, MacaBuilder] = {}

    def lane(self, name: str, *, timeout_s: float, oracle: DeviceOracle | None = None) -> CudaLane:
        """Open an empty program in a process of its own."""
        assert oracle is not None
        zygote = self.zygote
        if zygote.pid not in self._maca_builders:
            self._maca_builders = {zygote.pid: self._open_maca(zygote)}
        return MacaLane(
            self._spawn("program"), oracle, threads=1, timeout_s=timeout_s, name=name,
            template=None, settled=self._settled, builder=self._maca_builders[zygote.pid],
        )  # fmt: skip

    def _open_maca(self, zygote: Zygote) -> MacaBuilder:
        return MacaBuilder(zygote, cache=self._cache, sdk=self._found.sdk)

    def _tools(self) -> tuple[tuple[str, str], ...]:
        return ()


class TritonOnMetaX(MetaXBackend):
    """Triton kernels on the first MetaX GPU, by MetaX's build of Triton."""

    def __init__(self, found: MetaX, *, cache: Path | None = None) -> None:
        super().__init__(cache=cache)
        self._found = found

    def _tools(self) -> tuple[tuple[str, str], ...]:
        return (("triton", triton_version()),)
