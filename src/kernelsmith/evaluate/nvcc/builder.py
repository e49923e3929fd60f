"""Turning a candidate's CUDA into cubins and shared objects, in a sandbox, with a cache of ours."""

import dataclasses
import hashlib
import json
import logging
import re
import shlex
import sysconfig
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from kernelsmith.domain.evaluation import Kernel
from kernelsmith.evaluate.builder import (
    ALL_HEADERS,
    FEW_HEADERS,
    NEEDS_ALL,
    Artifact,
    Builder,
    BuildFailed,
    sealed,
    store,
)
from kernelsmith.evaluate.nvcc.report import built_kernels, warnings
from kernelsmith.evaluate.nvcc.split import Unsplittable, split
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels import commands
from kernelsmith.kernels.building import BuildRequest
from kernelsmith.kernels.commands import HOOK, HOOK_SOURCE
from kernelsmith.kernels.toolkit import Toolkit, find_toolkit

_CUDA_TEXT = "#include <ATen/cuda/CUDAContext.h>\n#include <cuda_runtime.h>\n"
_EXTENSION_HEADER = re.compile(r"#(\s*)include(\s*)<torch/extension\.h>")
_MORE_HEADERS = re.compile(r"\b(?:torch|at|c10|py|pybind11)\b")
logger = logging.getLogger(__name__)


class CudaBuilder(Builder):
    """Compiles for CUDA candidates; plain C++ as its parent does."""

    kinds: tuple[str, ...] = ("cubin", "cuda", "cuda_extension")
    name = "cuda"

    def __init__(
        self, zygote: Zygote, *, cache: Path, arch: str, toolkit: Toolkit | None = None,
        timeout_s: float = 300.0,
    ) -> None:  # fmt: skip
        super().__init__(zygote, cache=cache, timeout_s=timeout_s)
        self.arch = arch
        self.toolkit = toolkit or find_toolkit()

    def build(self, request: BuildRequest) -> Artifact:
        """Return what ``request`` asks for, from the cache where it was built before.

        Raises:
            BuildFailed: The compiler refused it, or took too long.
        """
        if request.kind in ("cpp", "extension"):
            return super().build(request)
        if request.kind not in self.kinds:
            raise BuildFailed(f"the {self.name} backend does not build {request.kind} sources")
        if missing := self._missing(request):
            raise BuildFailed(missing)
        key = hashlib.sha256(f"{request.key} {self._identity}".encode()).hexdigest()
        stored = self._cache / "builds" / f"{key}.device"
        about = stored.with_suffix(".json")
        if not (stored.exists() and about.exists()):
            made = self._made(request)
            kernels = built_kernels(_text(made, "log"), _text(made, "kernel.ptx"))
            store(stored, made["built"])
            said = {
                "kernels": [dataclasses.asdict(each) for each in kernels],
                "notes": warnings(_text(made, "log"))[-4000:],
            }
            store(about, json.dumps(said).encode())
        known = json.loads(about.read_text())
        return sealed(stored.read_bytes(), _kernels(known["kernels"]), known["notes"])

    def _missing(self, request: BuildRequest) -> str | None:
        return self.toolkit.missing(fast=request.kind == "cubin")

    @cached_property
    def _identity(self) -> str:
        """All that decides what comes out, beside the source."""
        versions = f"{self.toolkit.nvcc_version()} {self.toolkit.nvrtc_version()} {self.version}"
        return f"{self.arch} {versions} {HOOK_SOURCE} {_HOST} {FEW_HEADERS}"

    def _made(self, request: BuildRequest) -> dict[str, bytes]:
        if request.kind == "cubin":
            return self._cubin(request)
        if request.kind == "cuda":
            return self._library(request)
        return self._cuda_extension(request)

    def _cubin(self, request: BuildRequest) -> dict[str, bytes]:
        message: dict[str, object] = {
            "source": request.source, "arch": self.arch, "flags": list(request.flags),
            "include": [str(path) for path in self.toolkit.includes],
            "nvrtc": str(self.toolkit.nvrtc),
        }  # fmt: skip
        return self._run(message, self.toolkit.folders, worker="nvrtc")

    def _library(self, request: BuildRequest) -> dict[str, bytes]:
        assert self.toolkit.nvcc is not None
        command = commands.nvcc_library(self.toolkit.nvcc, arch=self.arch, flags=request.flags)
        files = {"kernel.cu": request.source, HOOK: HOOK_SOURCE}
        return self._compiled(files, command)

    def _compiled(
        self, files: dict[str, str], command: Sequence[str], more: Sequence[Path] = ()
    ) -> dict[str, bytes]:
        outputs = ["built", "kernel.ptx", "device.ptx"]
        message: dict[str, object] = {"files": files, "command": list(command), "outputs": outputs}
        made = self._run(message, [*self.toolkit.folders, *more])
        return {**made, "kernel.ptx": made.get("kernel.ptx") or made.get("device.ptx") or b""}

    def _cuda_extension(self, request: BuildRequest) -> dict[str, bytes]:
        """As quickly as it can be done: kernels apart, else with few headers, else as torch does.

        The candidate's own mistakes show in each way; the last way's words are the ones to read.
        """
        few = True
        try:
            parts = split(request.device_source)
        except Unsplittable as why:
            logger.debug("not split: %s", why)
        else:
            try:
                return self._jobs(request, host=parts.host, device=parts.device, few=True)
            except BuildFailed as error:
                logger.debug("not built in parts: %s", error)
                few = not NEEDS_ALL.search(str(error))
            if not few:
                try:
                    return self._jobs(request, host=parts.host, device=parts.device, few=False)
                except BuildFailed as error:
                    logger.debug("not built in parts with all headers: %s", error)
        whole = f"#include <torch/types.h>\n#include <cuda_runtime.h>\n{request.device_source}"
        fewer = _EXTENSION_HEADER.sub(r"#\1include\2<torch/types.h>", whole)
        try:
            return self._jobs(request, host=None, device=fewer, few=few)
        except BuildFailed as error:
            needs_all = few and bool(NEEDS_ALL.search(str(error)))
            if not needs_all and (fewer == whole or not _MORE_HEADERS.search(str(error))):
                raise
        return self._jobs(request, host=None, device=whole, few=few and not needs_all)

    def _jobs(
        self, request: BuildRequest, *, host: str | None, device: str, few: bool
    ) -> dict[str, bytes]:
        """Compile all parts side by side, then link them.

        With few headers the host's parts are one file: most of the time goes into the headers.
        """
        assert self.toolkit.nvcc is not None
        flags = [flag for flag in request.flags if not _OWN_HOST.match(flag)]
        header = self._few_or_all(flags, few=few)
        base = [self.compiler, *_HOST, *flags, "-include", str(header), f"-I{header.parent}"]
        base += [*self._torch_flags, f"-DTORCH_EXTENSION_NAME={request.name}", "-fPIC", "-c"]
        nvcc = commands.nvcc_object(
            self.toolkit.nvcc, arch=self.arch, flags=request.device_flags,
            include=() if host is not None else [*self._torch_flags, "-DTORCH_EXTENSION_NAME=x"],
        )  # fmt: skip
        sources = {"main": request.source}
        if host is not None:
            sources = {"all": f"{host}\n{request.source}"} if few else {"host": host, **sources}
        files = {f"{name}.cpp": text for name, text in sources.items()}
        files |= {"device.cu": device, HOOK: HOOK_SOURCE}
        jobs = [[*base, f"{name}.cpp", "-o", f"{name}.o"] for name in sources]
        libraries = [flag for flag in request.device_flags if flag.startswith("-l")]
        link = [str(self.toolkit.nvcc), "-shared", "-cudart", "static", *commands.WRAP]
        link += [*(f"{name}.o" for name in sources), "device.o", HOOK, "-Xcompiler", "-fPIC"]
        link += [*self._libraries, *libraries, "-o", "built"]
        script = _side_by_side([*jobs, nvcc], link)
        return self._compiled(files, ["sh", "-c", script], [header.parent])

    @cached_property
    def _torch_flags(self) -> list[str]:
        packages = Path(sysconfig.get_path("purelib")) / "torch" / "include"
        paths = [packages, packages / "torch" / "csrc" / "api" / "include"]
        paths += [Path(sysconfig.get_path("include")), *self.toolkit.includes]
        paths += self.toolkit.headers
        return [
            *(f"-I{path}" for path in paths),
            "-D_GLIBCXX_USE_CXX11_ABI=1", "-DTORCH_API_INCLUDE_EXTENSION_H",
        ]  # fmt: skip

    @cached_property
    def _libraries(self) -> list[str]:
        """What an extension calls; loaded already where it runs, so no path to them is recorded."""
        packages = Path(sysconfig.get_path("purelib"))
        folders = [packages / "torch" / "lib", *sorted(packages.glob("nvidia/*/lib"))]
        names = ["c10", "torch_cpu", "torch_python", "torch"]
        if (packages / "torch/lib/libc10_cuda.so").exists():
            names += ["c10_cuda", "torch_cuda"]
        return [*(f"-L{folder}" for folder in folders), *(f"-l{name}" for name in names)]

    def _few_or_all(self, flags: Sequence[str], *, few: bool) -> Path:
        """Torch's headers with those of CUDA, precompiled once per compiler and flags.

        Where they are few, a ``torch/extension.h`` with no more in it lies beside them.
        """
        text = FEW_HEADERS if few else ALL_HEADERS
        try:
            header = self._precompiled(flags, text + _CUDA_TEXT)
        except BuildFailed as error:  # no fault of a candidate's: some toolkits lack cuSPARSE's
            logger.debug("without ATen/cuda: %s", error)
            header = self._precompiled(flags, text + "#include <cuda_runtime.h>\n")
        if few and not (beside := header.parent / "torch" / "extension.h").exists():
            store(beside, text.encode())
        return header

    def _precompiled(self, flags: Sequence[str], text: str) -> Path:
        command = [self.compiler, *_HOST, *flags, *self._torch_flags, "-fPIC"]
        identity = f"{command} {self.version} {text}".encode()
        folder = self._cache / "headers" / hashlib.sha256(identity).hexdigest()[:32]
        header, refused = folder / "torch_all.h", folder / "refused"
        if refused.exists():
            raise BuildFailed(refused.read_text())
        if not (folder / "torch_all.h.gch").exists():
            try:
                made = self._run(
                    {
                        "files": {"torch_all.h": text},
                        "command": [*command, "-x", "c++-header", "torch_all.h", "-o", "pre.gch"],
                        "outputs": ["pre.gch"],
                    },
                    self.toolkit.folders,
                )
            except BuildFailed as error:
                store(refused, str(error).encode())
                raise
            store(header, text.encode())
            store(folder / "torch_all.h.gch", made["pre.gch"])
        return header


_HOST = ("-O1", "-std=c++17")
"""For the host's part of an extension, which launches kernels and little else. Torch builds it with
no ``-O`` at all."""
_OWN_HOST = re.compile(r"-(?:O|g$|W)")
"""Flags that are ours to choose there: each set of flags needs headers of its own, half a gigabyte
and half a minute."""


def _side_by_side(jobs: Sequence[Sequence[str]], link: Sequence[str]) -> str:
    """A script that starts all jobs, waits for each, says all they said, and links."""
    lines = ["failed=0"]
    for number, job in enumerate(jobs):
        lines.append(f"{shlex.join(job)} 2>{number}.err >&2 & job{number}=$!")
    for number in range(len(jobs)):
        lines.append(f"wait $job{number} || failed=1; cat {number}.err >&2")
    lines.append(f'[ "$failed" = 0 ] || exit 1; {shlex.join(link)}')
    return "\n".join(lines)


def _text(made: dict[str, bytes], name: str) -> str:
    return made.get(name, b"").decode(errors="replace")


def _kernels(known: Sequence[dict[str, object]]) -> tuple[Kernel, ...]:
    return tuple(
        Kernel(**{**each, "grid": (), "block": ()})  # type: ignore[arg-type]
        for each in known
    )
