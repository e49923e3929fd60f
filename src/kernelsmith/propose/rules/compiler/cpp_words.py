"""Expressions of the compiler's C++ in plain words: no names of torch, types where known."""

import re
from collections.abc import Mapping

from kernelsmith.propose.rules.compiler.cpp_tree import called, closing, loads, names, wrapped
from kernelsmith.propose.rules.graph import NotRecognised

KINDS = {
    "float": "float", "double": "double", "bool": "bool", "at::BFloat16": "bf16",
    "c10::BFloat16": "bf16", "at::Half": "f16", "c10::Half": "f16", "int64_t": "int64_t",
    "int32_t": "int32_t", "int16_t": "int16_t", "int8_t": "int8_t", "uint8_t": "uint8_t",
    "long": "int64_t", "int": "int32_t", "unsigned char": "uint8_t",
}  # fmt: skip
"""The compiler's names of element types, and ours."""
PLAIN = set(KINDS.values())

OWN = {
    "std::exp": "exp", "std::log": "log", "std::log1p": "log1p", "std::tanh": "tanh",
    "std::erf": "erf", "std::expm1": "expm1", "std::sin": "sin", "std::cos": "cos",
    "std::pow": "pow",
}  # fmt: skip
"""Functions that the prelude may replace by polynomials, or by the C library's vector forms."""
STANDARD = {
    f"std::{name}"
    for name in ("tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "asinh",
                 "acosh", "atanh", "log2", "log10", "exp2", "floor", "ceil", "trunc",
                 "nearbyint", "fmod", "abs", "sqrt", "max", "min", "isnan", "isinf", "signbit",
                 "copysign", "hypot", "lgamma", "erfc", "round")
}  # fmt: skip
HELPERS = {
    "max_propagate_nan": "larger", "min_propagate_nan": "smaller", "mod": "remainder_of",
    "floor_divide_integral": "floor_div", "c10::div_floor_integer": "floor_div",
    "div_floor_integer": "floor_div", "c10::div_mod": "floor_mod", "div_mod": "floor_mod",
    "c10::div_floor_floating": "floor_div", "exponent_of": "exponent_of",
    "mantissa_of": "mantissa_of", "shifted": "shifted",
}  # fmt: skip
"""The compiler's helpers, and what the prelude calls them."""
FROM_FLOATS = {
    f"{kind}_of": f"{kind}_t" for kind in ("int8", "uint8", "int16", "int32", "int64")
}  # fmt: skip
"""What makes whole numbers of floats, and their types."""
_WHOLE = re.compile(r"(?<![\w:])(u?int\d+)_t\(")
_CAST = re.compile(
    r"(?:static_cast|c10::convert)<\s*([\w:]+)\s*>\(|(?<![\w:])((?:at|c10)::(?:BFloat16|Half))\("
)
_FLOATS = ("float", "double", "bf16", "f16")
_LIMITS = {
    "infinity": "INFINITY", "quiet_NaN": "NAN", ("max", "int64_t"): "INT64_MAX",
    ("min", "int64_t"): "INT64_MIN", ("lowest", "int64_t"): "INT64_MIN",
    ("max", "int32_t"): "INT32_MAX", ("min", "int32_t"): "INT32_MIN",
}  # fmt: skip
_LIMIT = re.compile(r"std::numeric_limits<(\w+)>::(\w+)\(\)")
_NUMBER = re.compile(r"-?\d+(\.\d*)?(e[-+]?\d+)?")


def element(kind: str) -> str:
    """Our name of a type that the compiler wrote."""
    found = KINDS.get(kind.replace("const", "").replace("*", "").strip())
    if found is None:
        raise NotRecognised(f"rules do not know the C++ type {kind.strip()!r} of the compiler")
    return found


def plain(text: str) -> str:
    """An expression without the compiler's casts and helpers."""
    text = _LIMIT.sub(_limit, text.strip())
    text = re.sub(r"\b(\d+)LL?\b", r"\1", text)
    if re.fullmatch(r"-?\d+", text):
        return f"int64_t({text})"
    while match := _CAST.search(text):
        end = closing(text, match.end() - 1)
        inside = text[match.end() : end].strip()
        text = text[: match.start()] + _cast(match[1] or match[2], inside) + text[end + 1 :]
    for name in sorted(called(text), key=len, reverse=True):
        text = re.sub(rf"(?<![\w:]){re.escape(name)}\(", f"{_function(name)}(", text)
    return re.sub(r"\b(\d+)\*(?=\w)", r"\1 * ", re.sub(r"\(\((-\d+)\)\*", r"(\1 * ", text))


def _limit(match: re.Match[str]) -> str:
    found = _LIMITS.get(match[2]) or _LIMITS.get((match[2], match[1]))
    if found is None:
        raise NotRecognised(f"rules do not know `{match[0]}` of the compiler's C++")
    return str(found)


def _cast(kind: str, inside: str) -> str:
    if kind.startswith("decltype"):
        return inside
    name = element(kind)
    return literal(inside, name) if _NUMBER.fullmatch(inside) else f"{name}({inside})"


def literal(text: str, kind: str) -> str:
    """A number of a given type."""
    if kind in ("float", "double"):
        text = text if "." in text or "e" in text else f"{text}.0"
        return f"{text}f" if kind == "float" else text
    if kind == "bool":
        return "false" if float(text) == 0 else "true"
    return f"{kind}({text})"


def _function(name: str) -> str:
    if name in OWN:
        return f"fn::{OWN[name]}"
    if name in HELPERS:
        return HELPERS[name]
    if name in STANDARD or name in PLAIN or name == "decltype" or name.startswith("fn::"):
        return name
    if name in HELPERS.values() or name in FROM_FLOATS:
        return name
    raise NotRecognised(f"rules do not know `{name}` of the compiler's C++")


def index(text: str) -> str:
    """A position in memory, without the cast around it."""
    text = text.strip()
    match = re.match(r"static_cast<int64_t>\(", text)
    if match and closing(text, match.end() - 1) == len(text) - 1:
        text = text[match.end() : -1]
    text = re.sub(r"\b(\d+)LL?\b", r"\1", text)
    return text if re.fullmatch(r"\d+", text) else plain(text)


def indexed(text: str) -> str:
    """The same for every element that an expression reads."""
    for pointer, inside in loads(text):
        text = text.replace(f"{pointer}[{inside}]", f"{pointer}[{index(inside)}]")
    return text


def inferred(text: str, kinds: Mapping[str, str]) -> str:
    """The type of an expression over names whose types are known; ``auto`` where it is open."""
    head = re.match(r"([\w:]+)([(\[])", text)
    if head and closing(text, head.end() - 1) == len(text) - 1:
        if head[2] == "[":
            return kinds.get(head[1], "auto")
        if head[1] in PLAIN:
            return head[1]
        if head[1] in ("std::isnan", "std::isinf", "std::signbit"):
            return "bool"
        if head[1] == "exponent_of":
            return "int32_t"
        if head[1] in FROM_FLOATS:
            return FROM_FLOATS[head[1]]
    flat = _without_loads(text)
    if "?" in flat:
        first, _, last = flat.partition("?")[2].rpartition(":")
        found = {inferred(each.strip(), kinds) for each in (first, last)}
        return found.pop() if len(found) == 1 else "auto"
    if re.search(r"==|!=|<|>|&&|\|\||^!", flat):
        return "bool"
    if flat in ("true", "false"):
        return "bool"
    found = {kinds.get(each, "auto") for each in names(flat)}
    found |= {kinds.get(pointer, "auto") for pointer, _ in loads(text)}
    if re.search(r"\d\.?\d*(e[-+]?\d+)?f\b|INFINITY|NAN", flat):
        found.add("float")
    found |= {each for each in called(flat) if each in PLAIN}
    return found.pop() if len(found) == 1 else "auto"


def _without_loads(text: str) -> str:
    """Elements of memory replaced by nothing: their indices say nothing about types."""
    for pointer, inside in loads(text):
        text = text.replace(f"{pointer}[{inside}]", "()")
    return text


def settled(text: str, kinds: Mapping[str, str]) -> str:
    """The same without casts to what it is already, and with ``decltype`` spelled out.

    What makes whole numbers of floats has a name of its own.
    """
    while match := re.search(r"decltype\((\w+)\)\(", text):
        kind = kinds.get(match[1], "auto")
        if kind == "auto":
            break
        end = closing(text, match.end() - 1)
        inside = text[match.end() : end]
        made = literal(inside, kind) if _NUMBER.fullmatch(inside) else f"{kind}({inside})"
        text = text[: match.start()] + made + text[end + 1 :]
    for match in reversed(list(_WHOLE.finditer(text))):
        inside = text[match.end() : closing(text, match.end() - 1)]
        if inferred(inside, kinds) in _FLOATS:
            text = f"{text[: match.start()]}{match[1]}_of({text[match.end() :]}"
    match = re.match(r"(\w+)\(", text)
    if match and match[1] in ("float", "double", "int64_t"):
        end = closing(text, match.end() - 1)
        inside = text[match.end() : end]
        if end == len(text) - 1 and inferred(inside, kinds) == match[1]:
            return inside
        if inferred(inside, kinds) == match[1]:
            return wrapped(inside) + text[end + 1 :]
    return text
