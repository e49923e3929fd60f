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
        known = self.__dict__.get("_signatures", {})  # absent while one is being copied
        signature = known.get(name)
        if signature is None:
            raise AttributeError(
                f'no extern "C" function {name!r}; the source defines {", ".join(known) or "none"}'
            )
        if signature.unknown:
            raise TypeError(
                f"{name} cannot be called from Python: no C type known for "
                f"{signature.unknown[0]!r}; use pointers and plain numbers"
            )
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
    unknown: tuple[str, ...] = ()
    """Parameters, as written, that cannot be passed from Python; calling is then an error."""


_INTEGERS = {
    "bool": ctypes.c_bool, "char": ctypes.c_int8, "signed char": ctypes.c_int8,
    "unsigned char": ctypes.c_uint8, "short": ctypes.c_int16, "unsigned short": ctypes.c_uint16,
    "int": ctypes.c_int32, "signed": ctypes.c_int32, "unsigned": ctypes.c_uint32,
    "long": ctypes.c_int64, "unsigned long": ctypes.c_uint64, "long long": ctypes.c_int64,
    "unsigned long long": ctypes.c_uint64,
}  # fmt: skip
_TYPES: dict[tuple[str, ...], type] = {
    ("float",): ctypes.c_float, ("double",): ctypes.c_double, ("size_t",): ctypes.c_size_t,
    ("ptrdiff_t",): ctypes.c_ssize_t, ("ssize_t",): ctypes.c_ssize_t,
    ("intptr_t",): ctypes.c_ssize_t, ("uintptr_t",): ctypes.c_size_t,
    **{(f"{u}int{bits}_t",): getattr(ctypes, f"c_{u}int{bits}")
       for u in ("", "u") for bits in (8, 16, 32, 64)},
    **{tuple(sorted(name.split())): kind for name, kind in _INTEGERS.items()},
    **{tuple(sorted([*name.split(), "int"])): kind for name, kind in _INTEGERS.items()
       if not {"bool", "char", "int"} & set(name.split())},
}  # fmt: skip
"""By the words of the type, sorted: ``long unsigned int`` is ``unsigned long``."""

_COMMENT_OR_TEXT = re.compile(
    r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL
)
_LINKAGE = re.compile(r'extern\s*"C"\s*')
_ALIAS = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.*extern\s*"C".*)$', re.MULTILINE)
_QUALIFIER = re.compile(
    r"\b(?:const|volatile|register|restrict|__restrict(?:__)?|inline|extern|constexpr)\b|\bstd::"
)
_ATTRIBUTE = re.compile(r"\b(?:__attribute__|__declspec|alignas|noexcept)\b|\[\[.*?\]\]")


def signatures(source: str) -> dict[str, Signature]:
    """Read the signatures of all ``extern "C"`` functions in ``source``; it is never refused."""
    text = _COMMENT_OR_TEXT.sub(_without_text, source.replace("\\\n", " "))
    aliases = _ALIAS.findall(text)
    text = re.sub(r"^[ \t]*#.*$", "", text, flags=re.MULTILINE)
    for name, body in aliases:
        text = re.sub(rf"\b{name}\b", body.replace("\\", " "), text)
    found = {}
    for match in _LINKAGE.finditer(text):
        rest = text[match.end() :]
        for head in _heads(rest[1:]) if rest.startswith("{") else _heads(rest)[:1]:
            if parsed := _parsed(head):
                found[parsed[0]] = parsed[1]
    return found


def _without_text(match: re.Match[str]) -> str:
    """Blank comments and literals: braces in them mean nothing."""
    text = match.group()
    if text == '"C"':
        return text
    return '""' if text.startswith('"') else " "


def _heads(text: str) -> list[str]:
    """What stands before each outermost ``{ ... }`` or ``;`` until the enclosing block ends."""
    heads, braces, parentheses, start = [], 0, 0, 0
    for position, character in enumerate(text):
        if character in "()":
            parentheses += 1 if character == "(" else -1
        elif character in "{;" and braces == 0 and parentheses == 0:
            heads.append(text[start:position])
        if character == "{":
            braces += 1
        elif character == "}":
            braces -= 1
            if braces < 0:
                break
        if braces == 0 and parentheses == 0 and character in "};":
            start = position + 1
    return heads


def _parsed(head: str) -> tuple[str, Signature] | None:
    """Name and signature of the function that a head declares; none where it is something else."""
    while match := _ATTRIBUTE.search(head):
        end = match.end()
        if following := re.match(r"\s*\(", head[end:]):
            end = _closing(head, end + following.end() - 1) + 1
        head = f"{head[: match.start()]} {head[end:]}"
    match = re.match(r"\s*(?P<result>[\w\s:*&<>]*?[\s*&])(?P<name>\w+)\s*\(", head)
    if match is None or re.match(r"\s*(?:static|typedef|using)\b", head):
        return None
    parameters = _split(head[match.end() : _closing(head, match.end() - 1)])
    types = [_type(each) for each in parameters]
    unknown = [each.strip() for each, kind in zip(parameters, types, strict=True) if kind is None]
    result = None
    if _QUALIFIER.sub(" ", match["result"]).split() != ["void"]:
        result = _type(match["result"])
        if result is None:
            unknown.append(match["result"].strip())
    known = tuple(kind for kind in types if kind is not None)
    return match["name"], Signature(result, known, tuple(unknown))


def _closing(text: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _split(parameters: str) -> list[str]:
    """Cut at the commas that separate parameters, not at those inside of one."""
    parts, depth = [""], 0
    for character in parameters:
        depth += {"(": 1, "<": 1, "{": 1, ")": -1, ">": -1, "}": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part for part in parts if part.strip() not in ("", "void")]


def _type(parameter: str) -> type | None:
    declared = parameter.split("=")[0]
    if re.search(r"[*&\[]", declared):
        return ctypes.c_void_p
    words = _QUALIFIER.sub(" ", declared).split()
    for length in (len(words), len(words) - 1):  # with and without a name behind it
        if kind := _TYPES.get(tuple(sorted(words[:length]))):
            return kind
    return None


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
