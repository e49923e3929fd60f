"""Building kernels on this machine, for a candidate that runs outside the judge."""

import os
import tempfile
from pathlib import Path

from kernelsmith.kernels import commands, nvrtc
from kernelsmith.kernels.building import BuildError, BuildRequest, local_file, run_compiler
from kernelsmith.kernels.toolkit import ARCH, DEFAULT_ARCH, Toolkit, find_maca, find_toolkit


def built_here(request: BuildRequest) -> str:
    """Compile kernels with what this machine has; returns a path that can be loaded."""
    if request.kind == "maca":
        sdk = find_maca()
        if missing := sdk.missing():
            raise BuildError(missing)
        command = commands.mxcc_library(sdk, flags=request.flags)
        return run_compiler(request, command, suffix=".maca")
    toolkit = find_toolkit()
    if missing := toolkit.missing(fast=request.kind == "cubin"):
        raise BuildError(missing)
    if request.kind == "cubin":
        return _cubin(request, toolkit)
    if request.kind == "cuda_extension":
        raise BuildError("outside the judge torch itself builds extensions: use load_inline")
    assert toolkit.nvcc is not None
    with tempfile.TemporaryDirectory() as folder:
        hook = Path(folder, commands.HOOK)
        hook.write_text(commands.HOOK_SOURCE)
        command = commands.nvcc_library(toolkit.nvcc, arch=device_arch(), flags=request.flags)
        command = [str(hook) if each == commands.HOOK else each for each in command]
        return run_compiler(request, command, suffix=".cu")


def _cubin(request: BuildRequest, toolkit: Toolkit) -> str:
    target = local_file(request).with_suffix(f".{device_arch()}.cubin")
    if not target.exists():
        assert toolkit.nvrtc is not None
        try:
            made = nvrtc.compiled(
                nvrtc.load(toolkit.nvrtc), request.source, arch=device_arch(),
                flags=request.flags, include=toolkit.includes,
            )  # fmt: skip
        except nvrtc.NvrtcError as error:
            raise BuildError(str(error)) from error
        target.write_bytes(made.cubin)
    return str(target)


def device_arch() -> str:
    """The architecture of the device at hand, with the instructions that only it has."""
    if given := os.environ.get(ARCH):
        return given
    import torch

    if not torch.cuda.is_available():
        return DEFAULT_ARCH
    return arch_of(*torch.cuda.get_device_capability())


def arch_of(major: int, minor: int) -> str:
    """Such as ``sm_90a``: from Hopper on, some instructions exist on one architecture only."""
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"
