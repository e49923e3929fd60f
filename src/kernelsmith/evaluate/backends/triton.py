"""The Triton backend: an NVIDIA GPU where this machine has one, else Triton's interpreter."""

import ctypes
import os
import platform
from importlib import import_module, metadata, util
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.cpu import CpuBackend, processor

CHOICE = "KERNELSMITH_TRITON"
"""The variable that forces ``gpu`` or ``interpreter``; without it this machine decides."""
_CONTROL = Path("/dev/nvidiactl")
_DRIVER = "libcuda.so.1"


def TritonBackend() -> Backend:
    """Open the GPU, or the interpreter where there is none.

    Raises:
        BackendUnavailable: Triton is not installed.
        UsageError: ``KERNELSMITH_TRITON`` names neither.
    """
    if util.find_spec("triton") is None:
        raise BackendUnavailable(
            "backend 'triton' needs Triton, which is not installed; "
            "try: pip install 'kernelsmith[triton]'"
        )
    if not has_gpu():
        return InterpreterBackend()
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

    def device(self) -> Device:
        """Name the processor, and say that nothing here is a GPU."""
        return Device(
            kind="cpu",
            name=f"{processor()} (Triton interpreter)",
            cores=self.cores,
            versions=(
                ("triton", metadata.version("triton")),
                ("torch", metadata.version("torch")),
                ("python", platform.python_version()),
                ("kernel", platform.release()),
            ),
            sandbox=self._sandbox,
        )

    def _environment(self) -> dict[str, str]:
        interpreted = {"TRITON_INTERPRET": "1"}
        # Errors inside a kernel come with the kernel's line, not only with that of its launch.
        interpreted["TRITON_FRONT_END_DEBUGGING"] = "1"
        return {**super()._environment(), **interpreted}
