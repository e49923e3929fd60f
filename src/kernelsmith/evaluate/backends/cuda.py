"""The CUDA backend: kernels in CUDA C++, built by the judge, judged on an NVIDIA GPU."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.kernels.toolkit import ARCH, DEFAULT_ARCH, Toolkit, find_toolkit

if TYPE_CHECKING:
    from kernelsmith.evaluate.sandbox.process import Zygote

NO_GPU = (
    "no NVIDIA GPU is here (no driver answers), so candidates are built for {arch} and not run; "
    "set KERNELSMITH_CUDA_ARCH to build for another one"
)


def CudaBackend() -> Backend:
    """Open the GPU; where there is none, only the compilers.

    Raises:
        BackendUnavailable: There is no compiler for CUDA either.
    """
    toolkit = found_toolkit("cuda")
    if has_gpu():
        opened: Backend = import_module("kernelsmith.evaluate.nvcc.backend").CudaCppBackend(toolkit)
        return opened
    arch = os.environ.get(ARCH, DEFAULT_ARCH)

    def open_builder(zygote: "Zygote", cache: Path) -> CudaBuilder:
        return CudaBuilder(zygote, cache=cache, arch=arch, toolkit=toolkit)

    return compile_only("cuda", NO_GPU.format(arch=arch), open_builder, toolkit)


def found_toolkit(name: str) -> Toolkit:
    """The compilers for CUDA, or a line that says what is missing."""
    toolkit = find_toolkit()
    if toolkit.missing(fast=True) and toolkit.missing(fast=False):
        raise BackendUnavailable(
            f"backend {name!r} needs a compiler for CUDA: {toolkit.missing(fast=True)}; "
            f"{toolkit.missing(fast=False)}"
        )
    return toolkit


def compile_only(name: str, missing: str, open_builder: object, toolkit: Toolkit) -> Backend:
    """A backend of that name that builds and goes no further."""
    module = import_module("kernelsmith.evaluate.nvcc.compile_only")
    opened: Backend = module.CompileOnlyBackend(
        name, missing=missing, open_builder=open_builder, tools=tools(toolkit)
    )
    return opened


def tools(toolkit: Toolkit) -> tuple[tuple[str, str], ...]:
    """Versions of the compilers, by name."""
    nvcc, nvrtc = toolkit.nvcc_version(), toolkit.nvrtc_version()
    return (*((("nvcc", nvcc),) if nvcc else ()), *((("nvrtc", nvrtc),) if nvrtc else ()))
