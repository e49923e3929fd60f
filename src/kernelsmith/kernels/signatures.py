"""Signatures of ``extern "C"`` functions, read from C++ without a compiler."""

import ctypes
import dataclasses
import re


@dataclasses.dataclass(frozen=True, slots=True)
class Signature:
    """The C types of one function."""

    result: type | None
    arguments: tuple[type, ...]
    unknown: tuple[str, ...] = ()
    """Parameters, as written, that cannot be passed from Python; calling is then an error."""
    takes_stream: bool = False
    """Whether the last parameter is a stream of the device: callers may leave it out."""


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
_ATTRIBUTE = re.compile(
    r"\b(?:__attribute__|__declspec|alignas|noexcept|__global__|__host__|__launch_bounds__)\b"
    r"|\[\[.*?\]\]"
)
_STREAM = re.compile(r"\b(?:cudaStream_t|mcStream_t|CUstream|at::cuda::CUDAStream)\b(?!\s*[*&])")


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
    stream = bool(parameters) and _STREAM.search(parameters[-1]) is not None
    return match["name"], Signature(result, known, tuple(unknown), stream)


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
    if _STREAM.search(declared):
        return ctypes.c_void_p
    if re.search(r"[*&\[]", declared):
        return ctypes.c_void_p
    words = _QUALIFIER.sub(" ", declared).split()
    for length in (len(words), len(words) - 1):  # with and without a name behind it
        if kind := _TYPES.get(tuple(sorted(words[:length]))):
            return kind
    return None
