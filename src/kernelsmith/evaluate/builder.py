"""Turning a candidate's C++ into shared objects, in a sandbox, with a cache nobody else writes."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from kernelsmith.domain.evaluation import Kernel
from kernelsmith.errors import BackendUnavailable, EvaluationLost
from kernelsmith.evaluate.processor import instructions
from kernelsmith.evaluate.sandbox.errors import ChildBroken, ChildDied, ChildTimedOut
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Child, Zygote
from kernelsmith.kernels.building import DEFAULT_FLAGS, DEVICE_KINDS, BuildRequest

_LIMITS = Limits(memory_bytes=8 << 30, scratch_bytes=1 << 30, threads=256)
ALL_HEADERS = "#include <torch/extension.h>\n"
FEW_HEADERS = """\
#pragma once
#include <torch/types.h>
#include <torch/utils.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/utils/pybind.h>
"""
"""What functions on tensors need of ``torch/extension.h``. The rest of it, modules, optimisers and
data loaders, costs as much again: whoever includes it instantiates its templates, precompiled or
not, even in an empty file."""
PLAIN_HEADERS = """\
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
#include <immintrin.h>
"""
"""What vectorised C++ includes: reading the last of them takes half a second of every build."""
_INCLUDES_VECTORS = re.compile(r"^[ \t]*#[ \t]*include[ \t]*<immintrin\.h>", re.MULTILINE)
_BEFORE_LAST_INCLUDE = re.compile(r"\A.*^[ \t]*#[ \t]*include\b", re.DOTALL | re.MULTILINE)
_CHANGES_HEADERS = re.compile(r"^[ \t]*#[ \t]*(?:define|undef|pragma)\b", re.MULTILINE)
_FEW, _ALL, _PLAIN = "torch_few.h", "torch_all.h", "plain.h"
_HEADERS = {_FEW: FEW_HEADERS, _ALL: ALL_HEADERS, _PLAIN: PLAIN_HEADERS}
NEEDS_ALL = re.compile(
    r"not a member of .(?:torch|at|c10|py|pybind11)\b|has not been declared|incomplete type"
    r"|default argument given|redefinition of|No such file"
)
"""What a compiler says where few headers (or, with kernels, one file for all) were not enough."""


class BuildFailed(Exception):
    """A candidate's source does not build; the text is what its author should read."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One shared object (or cubin) in a sealed memory file that the judge made."""

    fd: int
    kernels: tuple[Kernel, ...] = ()
    """What the compiler said of the kernels in it, where it has some."""
    notes: str = ""
    """What else the compiler said."""

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: what tells this file from another of the same name."""
        status = os.fstat(self.fd)
        return status.st_dev, status.st_ino


class Builder:
    """Compiles for candidates. Its cache is written by the judge only, never by a candidate."""

    def __init__(self, zygote: Zygote, *, cache: Path, timeout_s: float = 120.0) -> None:
        self._zygote, self._cache, self._timeout_s = zygote, cache, timeout_s

    @cached_property
    def compiler(self) -> str:
        """Path of the C++ compiler in use."""
        wanted = os.environ.get("CXX")
        found = shutil.which(wanted) if wanted else shutil.which("g++") or shutil.which("clang++")
        if found is None:
            raise BackendUnavailable(
                f"no C++ compiler {wanted or 'g++ or clang++'} on this machine; install g++ "
                "(Debian: apt-get install g++) or set CXX"
            )
        return found  # not resolved: some are wrappers that look at their own name

    @cached_property
    def version(self) -> str:
        """The compiler's own first line, part of every cache key."""
        done = subprocess.run([self.compiler, "--version"], capture_output=True, text=True)
        return done.stdout.splitlines()[0] if done.stdout else "unknown"

    @cached_property
    def _toolchain(self) -> list[Path]:
        """Where the compiler keeps its parts; not every one lives under ``/usr``."""
        asked = [f"-print-prog-name={name}" for name in ("cc1plus", "as", "ld")]
        asked += [f"-print-file-name={n}" for n in ("include", "libgomp.spec", "libstdc++.so")]
        named = (Path(self.compiler), Path(self.compiler).resolve())
        # The folder above bin/ is the toolchain's own, unless it is the system's.
        found = {path.parent for path in named} | {path.parent.parent for path in named}
        for question in asked:
            done = subprocess.run([self.compiler, question], capture_output=True, text=True)
            path = Path(done.stdout.strip())
            if path.is_absolute() and path.exists():
                found |= {each if each.is_dir() else each.parent for each in (path, path.resolve())}
        return sorted({Path(os.path.normpath(path)) for path in found} - {Path("/")})

    def build(self, request: BuildRequest) -> Artifact:
        """Return the shared object for ``request``, from the cache where it was built before.

        Raises:
            BuildFailed: The compiler refused it, or took too long.
        """
        if request.kind in DEVICE_KINDS:
            raise BuildFailed(
                f"this backend builds C++; {request.kind} needs the cuda or maca backend"
            )
        if request.kind == "cpp":
            return self._plain(request)
        few, more = (self._header_place(request.flags, name) for name in (_FEW, _ALL))
        if not self._stored(request, _extending(request, more)).exists():
            try:
                return self._extension(request, few)
            except BuildFailed as error:
                if not NEEDS_ALL.search(str(error)):
                    raise
        return self._extension(request, more)

    def _plain(self, request: BuildRequest) -> Artifact:
        if not self._may_precompile(request):
            return self._built(request, [], [])
        header = self._header_place(request.flags, _PLAIN)
        return self._headed(request, header, ["-include", str(header)])

    def _may_precompile(self, request: BuildRequest) -> bool:
        """Whether headers read ahead of the source are the same as those read where it says so."""
        source = request.source
        before = _BEFORE_LAST_INCLUDE.match(source)
        return (
            before is not None
            and _INCLUDES_VECTORS.search(source) is not None
            and _CHANGES_HEADERS.search(before[0]) is None
            and not request.flags  # a header for each set of flags would fill the disk
            and _is_gnu(self.version)
        )

    def _extension(self, request: BuildRequest, header: Path) -> Artifact:
        return self._headed(request, header, _extending(request, header))

    def _headed(self, request: BuildRequest, header: Path, more: list[str]) -> Artifact:
        """Build behind a header that is precompiled first, unless all is there already."""
        if not self._stored(request, more).exists():
            self._precompile(header, request.flags)
        return self._built(request, more, [header.parent])

    def _built(self, request: BuildRequest, more: list[str], readable: list[Path]) -> Artifact:
        stored = self._stored(request, more)
        if stored.exists():
            return sealed(stored.read_bytes())
        content = self._run(
            {
                "files": {"kernel.cpp": request.source},
                "command": self._command(request, more),
                "outputs": ["kernel.so"],
            },
            readable,
        )["kernel.so"]
        store(stored, content)
        return sealed(content)

    def _stored(self, request: BuildRequest, more: list[str]) -> Path:
        """Where a build is kept: under the hash of all that decides what comes out."""
        text = f"{request.key} {self.version} {instructions()} {self._command(request, more)}"
        return self._cache / "builds" / f"{hashlib.sha256(text.encode()).hexdigest()}.so"

    def _command(self, request: BuildRequest, more: list[str]) -> list[str]:
        libraries = [] if request.kind == "cpp" else _torch_libraries()
        return [
            self.compiler, *DEFAULT_FLAGS, *request.flags, *more, "-fPIC", "-shared", "kernel.cpp",
            "-o", "kernel.so", *libraries,
        ]  # fmt: skip

    def _header_place(self, flags: Sequence[str], name: str) -> Path:
        """Where headers lie precompiled, for one compiler and set of flags."""
        identity = (
            f"{self._precompiling(flags, name)} {self.version} {instructions()} {_HEADERS[name]}"
        )
        folder = hashlib.sha256(identity.encode()).hexdigest()[:32]
        return self._cache / "headers" / folder / name

    def _precompiling(self, flags: Sequence[str], name: str) -> list[str]:
        torch = [] if name == _PLAIN else _torch_flags()
        return [self.compiler, *DEFAULT_FLAGS, *flags, *torch, "-fPIC"]

    def _precompile(self, header: Path, flags: Sequence[str]) -> None:
        """Do once what would take every build of an extension a minute."""
        made = header.with_name(f"{header.name}.gch")
        if made.exists():
            return
        text = _HEADERS[header.name]
        command = self._precompiling(flags, header.name)
        command += ["-x", "c++-header", header.name, "-o", "pre.gch"]
        message: dict[str, object] = {
            "files": {header.name: text}, "command": command, "outputs": ["pre.gch"]
        }  # fmt: skip
        built = self._run(message, [])
        store(header, text.encode())
        if text == FEW_HEADERS:  # whoever includes torch's own finds no more than this
            store(header.parent / "torch" / "extension.h", text.encode())
        store(made, built["pre.gch"])

    def _run(
        self, message: dict[str, object], readable: Sequence[Path], *, worker: str = "compiling"
    ) -> dict[str, bytes]:
        """Files by name; the compiler's words are under ``log``."""
        child = self._zygote.spawn(
            entry=f"kernelsmith.evaluate.worker.{worker}:serve",
            profile=Profile.BUILD,
            limits=_LIMITS,
            readable=[*readable, *self._toolchain],
        )
        try:
            return self._compile(child, message)
        finally:
            child.kill()

    def _compile(self, child: Child, message: dict[str, object]) -> dict[str, bytes]:
        try:
            reply: dict[str, Any] = child.call(message, timeout_s=self._timeout_s)
        except ChildTimedOut as error:
            raise BuildFailed(f"the compiler took more than {self._timeout_s:.0f} s") from error
        except (ChildDied, ChildBroken) as error:
            raise EvaluationLost(f"the compiler's process ended: {error}") from error
        if reply["status"] != 0:
            raise BuildFailed(reply["stderr"].strip() or f"the compiler exited {reply['status']}")
        made = {
            name: bytes(child.read(address, size))
            for name, (address, size) in reply["outputs"].items()
        }
        return {**made, "log": reply["stderr"].encode(errors="replace")}


def default_cache() -> Path:
    """Where builds are kept between runs."""
    chosen = os.environ.get("KERNELSMITH_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kernelsmith"


def _extending(request: BuildRequest, header: Path) -> list[str]:
    """What a torch extension needs on the command line besides."""
    place = [f"-I{header.parent}"] if header.name == _FEW else []
    name = f"-DTORCH_EXTENSION_NAME={request.name}"
    return ["-include", str(header), *place, *_torch_flags(), name]


def _torch_flags() -> list[str]:
    """Include paths of torch and Python, found without importing torch."""
    packages = Path(sysconfig.get_path("purelib")) / "torch" / "include"
    paths = [packages, packages / "torch" / "csrc" / "api" / "include"]
    paths.append(Path(sysconfig.get_path("include")))
    return [
        *(f"-I{path}" for path in paths),
        "-D_GLIBCXX_USE_CXX11_ABI=1",
        "-DTORCH_API_INCLUDE_EXTENSION_H",
    ]


def _torch_libraries() -> list[str]:
    """What an extension calls; loaded already where it runs, so no path to them is recorded."""
    folder = Path(sysconfig.get_path("purelib")) / "torch" / "lib"
    return [f"-L{folder}", *(f"-l{name}" for name in ("c10", "torch_cpu", "torch_python"))]


def _is_gnu(version: str) -> bool:
    """Whether a compiler takes a ``.gch`` beside the header that is included first."""
    return "g++" in version or "GCC" in version


def store(path: Path, content: bytes) -> None:
    """Keep a file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(path)


def sealed(content: bytes, kernels: tuple[Kernel, ...] = (), notes: str = "") -> Artifact:
    """Put content where nobody can write any more."""
    fd = os.memfd_create("kernel", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return Artifact(fd, kernels, notes)
