"""What a candidate imports: C++ given as text, returned as functions that take tensors.

    from kernelsmith.kernels import cpp

    lib = cpp('extern "C" void relu(const float* x, float* y, int64_t n) { ... }')
    lib.relu(x, y, x.numel())

Under the judge the compiler runs in another sandbox; anywhere else it runs here, once per source.
"""

import ctypes
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

PRELUDE = """#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#line 1 "kernel.cpp"
"""


class BuildError(RuntimeError):
    """The compiler refused the source; the text is the compiler's."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """Source and flags of one shared object."""

    kind: str
    """``cpp`` for a plain C ABI, ``extension`` for a torch extension (pybind11)."""
    source: str
    flags: tuple[str, ...] = ()
    name: str = "kernel"

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
        flags = body.get("flags")
        kind, source, name = body.get("kind"), body.get("source"), body.get("name")
        if kind not in ("cpp", "extension") or not isinstance(flags, list | tuple):
            raise BuildError("not a build request")
        if not isinstance(source, str) or not isinstance(name, str):
            raise BuildError("not a build request")
        if not re.fullmatch(r"[A-Za-z_]\w{0,99}", name):
            raise BuildError(f"{name!r} is no name for an extension")
        for flag in flags:
            _check_flag(flag)
        return cls(kind=str(kind), source=source, flags=tuple(flags), name=name)


def _check_flag(flag: object) -> None:
    if not isinstance(flag, str) or not ALLOWED_FLAG.fullmatch(flag):
        raise BuildError(f"compiler flag {flag!r} is not allowed here")
    if _FORBIDDEN_FLAG.fullmatch(flag):
        raise BuildError(f"compiler flag {flag!r} is not allowed here")


class Library:
    """Functions of one shared object; tensors are passed as pointers to their first element."""

    def __init__(self, path: str, signatures: Mapping[str, "Signature"]) -> None:
        self._library = ctypes.CDLL(path)
        self._signatures = signatures

    def __getattr__(self, name: str) -> Callable[..., object]:
        signature = self._signatures.get(name)
        if signature is None:
            known = ", ".join(self._signatures) or "none"
            raise AttributeError(f'no extern "C" function {name!r}; the source defines {known}')
        function = getattr(self._library, name)
        function.argtypes, function.restype = signature.arguments, signature.result
        count = len(signature.arguments)

        def call(*arguments: object) -> object:
            if len(arguments) != count:
                raise TypeError(f"{name} takes {count} arguments; got {len(arguments)}")
            return function(*[a.data_ptr() if hasattr(a, "data_ptr") else a for a in arguments])

        setattr(self, name, call)
        return call


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The C types of one function."""

    result: type | None
    arguments: tuple[type, ...]


_TYPES: dict[str, type] = {
    "int": ctypes.c_int32, "int32_t": ctypes.c_int32, "unsigned": ctypes.c_uint32,
    "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "long": ctypes.c_int64,
    "longlong": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "size_t": ctypes.c_size_t,
    "ptrdiff_t": ctypes.c_int64, "float": ctypes.c_float, "double": ctypes.c_double,
    "bool": ctypes.c_bool, "int8_t": ctypes.c_int8, "uint8_t": ctypes.c_uint8,
    "int16_t": ctypes.c_int16, "uint16_t": ctypes.c_uint16, "char": ctypes.c_char,
    "unsignedint": ctypes.c_uint32, "longint": ctypes.c_int64,
}  # fmt: skip

_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FUNCTION = re.compile(r"([\w\s\*:]+?[\s\*])(\w+)\s*\(([^()]*)\)\s*(?:noexcept\s*)?$")


def signatures(source: str) -> dict[str, Signature]:
    """Read the signatures of all ``extern "C"`` functions defined in ``source``."""
    text = _COMMENTS.sub(" ", source)
    text = re.sub(r"^\s*#.*(?:\\\n.*)*$", "", text, flags=re.MULTILINE)
    found = {}
    for match in re.finditer(r'extern\s*"C"\s*', text):
        rest = text[match.end() :]
        heads = _heads(rest[1:]) if rest.startswith("{") else _heads(rest)[:1]
        for head in heads:
            if parts := _FUNCTION.search(head.strip()):
                found[parts[2]] = _signature(parts[1], parts[3])
    return found


def _heads(text: str) -> list[str]:
    """What stands before each outermost ``{ ... }`` until the enclosing block ends."""
    heads, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character == "{":
            if depth == 0:
                heads.append(text[start:position])
            depth += 1
        elif character == "}":
            depth -= 1
            if depth < 0:
                break
            start = position + 1
        elif character == ";" and depth == 0:
            start = position + 1
    return heads


def _signature(result: str, arguments: str) -> Signature:
    parts = [part for part in arguments.split(",") if part.strip() not in ("", "void")]
    return Signature(_result(result), tuple(_type(part) for part in parts))


def _result(text: str) -> type | None:
    words = re.sub(r"__attribute__\s*\(\(.*?\)\)|\b(static|inline|extern)\b", " ", text).split()
    joined = "".join(words)
    if joined.endswith("*"):
        return ctypes.c_void_p
    return None if joined == "void" else _TYPES.get(joined, ctypes.c_int64)


def _type(text: str) -> type:
    if "*" in text or "[" in text:
        return ctypes.c_void_p
    words = [w.removeprefix("std::") for w in text.split("=")[0].split() if w != "const"]
    for candidate in ("".join(words), "".join(words[:-1])):
        if candidate in _TYPES:
            return _TYPES[candidate]
    raise BuildError(f"no C type known for the parameter {text.strip()!r}; use a plain one")


def cpp(source: str, *, flags: Sequence[str] = ()) -> Library:
    """Build C++17 (OpenMP on, tuned for this machine) and return its ``extern "C"`` functions.

    Args:
        source: Needs no includes for cmath, cstdint, cstring and algorithm.
        flags: Added after ``DEFAULT_FLAGS``; code generation flags only.
    """
    request = BuildRequest(kind="cpp", source=PRELUDE + source, flags=tuple(flags))
    return Library(_compile(request), signatures(source))


def extension_request(
    name: str,
    sources: Sequence[str],
    *,
    functions: Sequence[str] | Mapping[str, str],
    flags: Sequence[str] = (),
) -> BuildRequest:
    """Compose what torch's ``load_inline`` would compile: sources and their pybind11 bindings."""
    named = functions if isinstance(functions, Mapping) else {f: f for f in functions}
    if isinstance(functions, str):
        named = {functions: functions}
    bindings = "\n".join(
        f'm.def("{each}", torch::wrap_pybind_function({each}), {json.dumps(note)});'
        for each, note in named.items()
    )
    parts = ["#include <torch/extension.h>", *sources]
    if named:
        parts.append(f"PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n{bindings}\n}}")
    return BuildRequest(kind="extension", source="\n".join(parts), flags=tuple(flags), name=name)


def _locally(request: BuildRequest) -> str:
    """Compile on this machine, for a candidate that runs outside the judge."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise BuildError("no C++ compiler found; install g++ or clang++, or set CXX")
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "kernelsmith" / "cpp"
    target = cache / f"{request.key}.so"
    if not target.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            text, built = Path(work, "kernel.cpp"), Path(work, "kernel.so")
            text.write_text(request.source)
            command = [compiler, *DEFAULT_FLAGS, *request.flags, "-fPIC", "-shared"]
            done = subprocess.run(
                [*command, str(text), "-o", str(built)], capture_output=True, text=True
            )
            if done.returncode:
                raise BuildError(done.stderr)
            built.replace(target)
    return str(target)


_compile: Callable[[BuildRequest], str] = _locally


def compile_with(compiler: Callable[[BuildRequest], str]) -> None:
    """Replace the local compiler; the judge's worker does, where no process can be started."""
    global _compile
    _compile = compiler
