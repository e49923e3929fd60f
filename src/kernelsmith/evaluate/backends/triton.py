"""The Triton backend: a GPU that the judge can time on where there is one, else the interpreter."""

import ctypes
import os
import platform
from importlib import import_module, util
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.cpu import CpuBackend, version_of
from kernelsmith.evaluate.maca.metax import look
from kernelsmith.evaluate.processor import processor
from kernelsmith.evaluate.torch_build import (
    Maker,
    TorchBuild,
    installed_torch,
    torch_build,
    triton_version,
)
from kernelsmith.evaluate.untested import AMD, HUAWEI, METAX

CHOICE = "KERNELSMITH_TRITON"
"""The variable that forces ``gpu`` or ``interpreter``; without it this machine decides."""
_UNTIMED = {Maker.AMD: AMD, Maker.HUAWEI: HUAWEI, Maker.METAX: METAX}
"""Builds of torch that reach no NVIDIA GPU, and what to say of their own hardware."""
_CONTROL = Path("/dev/nvidiactl")
_DRIVER = "libcuda.so.1"


def TritonBackend() -> Backend:
    """Open the GPU, or the interpreter where there is none that the judge can time on.

    Raises:
        BackendUnavailable: Triton is not installed, or torch is for other hardware than is here.
        UsageError: ``KERNELSMITH_TRITON`` names neither.
    """
    if util.find_spec("triton") is None:
        raise BackendUnavailable(
            "backend 'triton' needs Triton, which is not installed; "
            "try: pip install 'kernelsmith[triton]'"
        )
    facts = installed_torch()
    build = torch_build(facts)
    nvidia = has_gpu()
    if build.maker is Maker.METAX and os.environ.get(CHOICE) != "interpreter":
        found = look()
        if found.missing() is None:
            module = import_module("kernelsmith.evaluate.maca.backend")
            metax: Backend = module.TritonOnMetaX(found)
            return metax
    if not nvidia:
        return InterpreterBackend(build)
    if build.maker in _UNTIMED:
        raise BackendUnavailable(
            f"backend 'triton' cannot time here: torch {facts.version} is built for {build}, which "
            f"the judge knows nothing of; to check kernels without timing: {CHOICE}=interpreter"
        )
    opened: Backend = import_module("kernelsmith.evaluate.cuda.backend").CudaBackend()
    return opened


def has_gpu() -> bool:
    """Whether an NVIDIA driver answers here, or the user says so; torch is not asked."""
    chosen = os.environ.get(CHOICE)
    if chosen not in (None, "gpu", "interpreter"):
        raise UsageError(f"{CHOICE} is gpu or interpreter; got {chosen!r}")
    if chosen is not None:
        return chosen == "gpu"
    return _CONTROL.exists() and _loads(_DRIVER)


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


class InterpreterBackend(CpuBackend):
    """Judges whether Triton kernels are right, on any machine; how fast they are it cannot say."""

    name = "triton"
    timed = False
    _preload = (*CpuBackend._preload, "triton", "kernelsmith.evaluate.worker.interpreted")
    _program = "kernelsmith.evaluate.worker.interpreted:serve"

    def __init__(self, build: TorchBuild | None = None, *, cache: Path | None = None) -> None:
        super().__init__(cache=cache)
        self.build = build or torch_build(installed_torch())

    def device(self) -> Device:
        """Name the processor, and say whose hardware torch is for where nothing runs on that."""
        build = self.build
        aside = f"; torch is built for {build}" if build.maker in _UNTIMED else ""
        state = _UNTIMED.get(build.maker)
        return Device(
            kind="cpu",
            name=f"{processor()} (Triton interpreter{aside})",
            cores=self.cores,
            versions=(
                ("triton", triton_version()),
                ("torch", version_of("torch")),
                *(((build.stack, build.version),) if build.version else ()),
                ("python", platform.python_version()),
                ("kernel", platform.release()),
                *((("state", state),) if state else ()),
            ),
            sandbox=self._sandbox,
        )

    def _environment(self) -> dict[str, str]:
        interpreted = {"TRITON_INTERPRET": "1"}
        # Errors inside a kernel come with the kernel's line, not only with that of its launch.
        interpreted["TRITON_FRONT_END_DEBUGGING"] = "1"
        return {**super()._environment(), **interpreted}
