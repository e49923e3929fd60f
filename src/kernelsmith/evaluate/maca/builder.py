"""Building MACA candidates: with MetaX's compiler, or with NVIDIA's and our shim."""

import hashlib
import re
from functools import cached_property
from pathlib import Path

from kernelsmith.domain.evaluation import Kernel
from kernelsmith.evaluate.builder import Artifact, Builder, BuildFailed, sealed, store
from kernelsmith.evaluate.guards.maca import lint
from kernelsmith.evaluate.maca.emulation import INCLUDE, SHARED_BYTES, emulated
from kernelsmith.evaluate.nvcc.builder import CudaBuilder
from kernelsmith.evaluate.nvcc.report import warnings
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels import commands
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.toolkit import Maca

_OWN_SHARED = 16 * 65 * 8
"""What the emulation of waves takes of a block's shared memory."""


class EmulatedBuilder(CudaBuilder):
    """MACA C++ by nvcc, with headers of ours."""

    kinds = ("maca",)
    name = "maca-emulated"

    def build(self, request: BuildRequest) -> Artifact:
        """Return a shared object that does on an NVIDIA GPU what it would do on MetaX's.

        Raises:
            BuildFailed: It does not compile, or is beyond what can be imitated.
        """
        made = super().build(request)
        if request.kind != "maca":
            return made
        for kernel in made.kernels:
            if (kernel.shared_bytes or 0) - _OWN_SHARED > SHARED_BYTES:
                raise BuildFailed(
                    f"{kernel.name} takes {kernel.shared_bytes} bytes of shared memory; a block "
                    f"on a MetaX GPU has {SHARED_BYTES}"
                )
        return _with_notes(made, request)

    def _missing(self, request: BuildRequest) -> str | None:
        return self.toolkit.missing(fast=False)

    @cached_property
    def _identity(self) -> str:
        shim = hashlib.sha256()
        for path in sorted(INCLUDE.rglob("*.h")):
            shim.update(path.read_bytes())
        return f"{super()._identity} {shim.hexdigest()}"

    def _made(self, request: BuildRequest) -> dict[str, bytes]:
        assert self.toolkit.nvcc is not None
        flags = [flag for flag in request.flags if not flag.startswith(("-mllvm", "-maxmreg"))]
        command = commands.nvcc_library(
            self.toolkit.nvcc, arch=self.arch, flags=flags, include=[INCLUDE],
            # A lane's number above 31 would be cut off without a word: warning 69 is an error.
            extra=("--diag-error", "69"),
        )  # fmt: skip
        files = {"kernel.cu": emulated(request.source), commands.HOOK: commands.HOOK_SOURCE}
        return self._compiled(files, command, [INCLUDE])


class MacaBuilder(Builder):
    """MACA C++ by mxcc, and CUDA C++ by cu-bridge."""

    def __init__(self, zygote: Zygote, *, cache: Path, sdk: Maca, timeout_s: float = 300.0) -> None:
        super().__init__(zygote, cache=cache, timeout_s=timeout_s)
        self._sdk = sdk

    def build(self, request: BuildRequest) -> Artifact:
        """Return a shared object for a MetaX GPU.

        Raises:
            BuildFailed: The compiler refused it, or is not here.
        """
        if request.kind in ("cpp", "extension"):
            return super().build(request)
        command, file = self.command(request)
        key = hashlib.sha256(f"{request.key} {command}".encode()).hexdigest()
        stored = self._cache / "builds" / f"{key}.maca"
        if not stored.exists():
            made = self._run(
                {"files": {file: request.source}, "command": command, "outputs": ["built"]},
                self._sdk.folders,
            )
            store(stored, made["built"])
            store(stored.with_suffix(".log"), made["log"])
        log = stored.with_suffix(".log").read_text(errors="replace")
        made = sealed(stored.read_bytes(), _written(request.source), warnings(log)[-4000:])
        return _with_notes(made, request)

    def command(self, request: BuildRequest) -> tuple[list[str], str]:
        """The compiler's command line for a request, and the name of its source."""
        if request.kind == "maca":
            if missing := self._sdk.missing():
                raise BuildFailed(missing)
            return commands.mxcc_library(self._sdk, flags=request.flags), "kernel.maca"
        if request.kind == "cuda":
            if self._sdk.cucc is None:
                raise BuildFailed("CUDA sources need cu-bridge's cucc, which is not here")
            return commands.cucc_library(self._sdk, flags=request.flags), "kernel.cu"
        raise BuildFailed(
            f"the maca backend does not build {request.kind} sources; use maca() or cuda_library()"
        )


def _written(source: str) -> tuple[Kernel, ...]:
    """The kernels that a source defines, by name; mxcc's report of them is left in the notes."""
    found = re.findall(r"__global__[^;{(]*(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(", source)
    names = dict.fromkeys(name for name in found if name != "__launch_bounds__")
    return tuple(Kernel(name=name, own=True, launches=1) for name in names)


def _with_notes(made: Artifact, request: BuildRequest) -> Artifact:
    """Add what the lint found that only costs time."""
    said = [f"maca-lint: line {each.line + 1}: {each}" for each in lint(request.source)]
    notes = "\n".join([*([made.notes] if made.notes else []), *said])
    return Artifact(made.fd, made.kernels, notes)
