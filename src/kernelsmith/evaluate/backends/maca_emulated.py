"""MACA C++ without MetaX hardware: built with our shim, checked on an NVIDIA GPU, never timed."""

import os
from importlib import import_module
from pathlib import Path

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.cuda import NO_GPU, compile_only
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.maca.builder import EmulatedBuilder
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.toolkit import ARCH, DEFAULT_ARCH, find_toolkit


def EmulatedBackend() -> Backend:
    """Open the GPU that stands in; where there is none, only the compiler.

    Raises:
        BackendUnavailable: nvcc is not here.
    """
    toolkit = find_toolkit()
    if missing := toolkit.missing(fast=False):
        raise BackendUnavailable(f"backend 'maca-emulated' needs nvcc: {missing}")
    if has_gpu():
        opened: Backend = import_module("kernelsmith.evaluate.maca.emulated").OnNvidia(toolkit)
        return opened
    arch = os.environ.get(ARCH, DEFAULT_ARCH)

    def open_builder(zygote: Zygote, cache: Path) -> EmulatedBuilder:
        return EmulatedBuilder(zygote, cache=cache, arch=arch, toolkit=toolkit)

    return compile_only("maca-emulated", NO_GPU.format(arch=arch), open_builder, toolkit)
