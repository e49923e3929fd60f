"""What is asked of a compiler, and who is asked: the judge's, or the one on this machine."""

import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

DEFAULT_FLAGS = ("-O3", "-march=native", "-std=c++17", "-fopenmp")

ALLOWED_FLAG = re.compile(
    r"-O[0-3s]|-Ofast|-g|-std=(c|gnu)\+\+\d\w|-f[a-z0-9-]+(=[\w-]+)?|-m[a-z0-9-]+(=[\w.+-]+)?"
    r"|-D\w+(=[\w.+-]*)?|-W[a-z][\w-]*(=\d+)?|-lm|-fopenmp"
)
_FORBIDDEN_FLAG = re.compile(r"-fplugin.*|-fdump.*|-fprofile.*|-specs.*|-fuse.*|-wrapper.*|-Wp.*")
DEVICE_FLAG = re.compile(
    r"-D\w+(=[\w.+-]*)?|-std=c\+\+(14|17|20)|--?use[_-]fast[_-]math|--?maxrregcount=\d{1,3}"
    r"|--?(ftz|fmad|prec-div|prec-sqrt)=(true|false)|--?(restrict|lineinfo|generate-line-info)"
    r"|--?extra-device-vectorization|-O[0-3]|-w|--?expt-(relaxed-constexpr|extended-lambda)"
    r"|--?extended-lambda|-lcublas|-lcublasLt|-lcurand|-lcusparse|-lcusolver|-lcudart|-lcuda|-lm"
    r"|-(maxmregcount|mllvm)=[\w.=-]+"
)
"""What the compilers of kernels may be told; for which device is the judge's to say."""
KINDS = ("cpp", "extension", "cubin", "cuda", "cuda_extension", "maca")
DEVICE_KINDS = ("cubin", "cuda", "cuda_extension", "maca")


class BuildError(RuntimeError):
    """The compiler refused the source; the text is the compiler's."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Source and flags of one shared object."""

    kind: str
    """``cpp`` for a plain C ABI, ``extension`` for a torch extension (pybind11); ``cubin`` for CUDA
    kernels alone, ``cuda`` and ``maca`` for kernels with ``extern "C"`` functions that launch them,
    ``cuda_extension`` for a torch extension with kernels."""
    source: str
    flags: tuple[str, ...] = ()
    name: str = "kernel"
    device_source: str = ""
    """The CUDA part of a torch extension."""
    device_flags: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Hash of all that decides what the compiler makes of it."""
        return hashlib.sha256(json.dumps(dataclasses.astuple(self)).encode()).hexdigest()

    def to_json(self) -> dict[str, object]:
        """As plain JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, object]) -> "BuildRequest":
        """Read what ``to_json`` wrote; it may come from a hostile process.

        Raises:
            BuildError: It is not of that form, or a flag is not on the list.
        """
        kind, name = body.get("kind"), body.get("name")
        texts = body.get("source"), body.get("device_source", "")
        flags, device_flags = body.get("flags"), body.get("device_flags", ())
        if kind not in KINDS or not all(isinstance(each, str) for each in (*texts, name)):
            raise BuildError("not a build request")
        if not isinstance(flags, list | tuple) or not isinstance(device_flags, list | tuple):
            raise BuildError("not a build request")
        if not re.fullmatch(r"[A-Za-z_]\w{0,99}", str(name)):
            raise BuildError(f"{name!r} is no name for an extension")
        for flag in flags:
            _check_flag(flag, device=kind in ("cubin", "cuda", "maca"))
        for flag in device_flags:
            _check_flag(flag, device=True)
        return cls(
            kind=str(kind), source=str(texts[0]), flags=tuple(flags), name=str(name),
            device_source=str(texts[1]), device_flags=tuple(device_flags),
        )  # fmt: skip


def _check_flag(flag: object, *, device: bool = False) -> None:
    allowed = DEVICE_FLAG if device else ALLOWED_FLAG
    if not isinstance(flag, str) or not allowed.fullmatch(flag) or _FORBIDDEN_FLAG.fullmatch(flag):
        raise BuildError(f"compiler flag {flag!r} is not allowed here")


def _locally(request: BuildRequest) -> str:
    """Compile on this machine, for a candidate that runs outside the judge."""
    if request.kind in DEVICE_KINDS:
        from kernelsmith.kernels.local import built_here

        return built_here(request)
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise BuildError("no C++ compiler found; install g++ or clang++, or set CXX")
    command = [compiler, *DEFAULT_FLAGS, *request.flags, "-fPIC", "-shared"]
    return run_compiler(request, [*command, "kernel.cpp", "-o", "built"], suffix=".cpp")


def local_file(request: BuildRequest) -> Path:
    """Where what was built on this machine is kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kernelsmith"
    folder = cache / ("cpp" if request.kind == "cpp" else "device")
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{request.key}.so"


def run_compiler(request: BuildRequest, command: Sequence[str], *, suffix: str) -> str:
    """Run a command that turns ``kernel`` with ``suffix`` into ``built``, once per request."""
    target = local_file(request)
    if not target.exists():
        with tempfile.TemporaryDirectory(dir=target.parent) as work:
            Path(work, f"kernel{suffix}").write_text(request.source)
            done = subprocess.run(command, capture_output=True, text=True, cwd=work)
            if done.returncode:
                raise BuildError(done.stderr or done.stdout)
            Path(work, "built").replace(target)
    return str(target)


_compile: Callable[[BuildRequest], str] = _locally


def compile_with(compiler: Callable[[BuildRequest], str]) -> None:
    """Replace the local compiler; the judge's worker does, where no process can be started."""
    global _compile
    _compile = compiler


def built(request: BuildRequest) -> str:
    """Have it compiled, by whoever compiles here; returns a path that can be loaded."""
    return _compile(request)


on_load: Callable[[object], None] | None = None
"""Told of everything with kernels that was loaded; the judge's worker listens."""
