"""The precisions that a kernel computes in, read from its PTX.

What comes out is evidence for a label; what is right is decided by the outputs alone. Three things
that PTX from Triton shows make this less simple than a search for ``f16``:

- A float32 product split into bfloat16 planes (``bf16x3``, ``bf16x6``) has the conversions and the
  products of a bfloat16 kernel. It differs in that what rounding took away is computed and rounded
  again: ``cvt.rn.bf16.f32 h, x``, ``cvt.f32.bf16 r, h``, ``sub.f32 y, x, r``, ``cvt.rn.bf16.f32``
  of ``y``. Those chains are counted: ``bf16x3`` is two planes, ``bf16x6`` three.
- A TF32 product need not round anything beforehand: its own type may be the only trace.
- ``tcgen05.mma`` names a kind and leaves float16 or bfloat16 to a descriptor.
"""

import re
from collections import Counter

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_OPCODE = re.compile(
    r"(?<![\w.%$])((?:mma|wmma|wgmma|tcgen05|cvt|dp4a|dp2a|atom|red|multimem|"
    r"add|sub|mul|fma|mad|div|sqrt|rsqrt|rcp|ex2|lg2|sin|cos|tanh|min|max|abs|neg)"
    r"(?:\.\w+(?:::\w+)*)+)"
)
_FORMATS = {
    "f16": "float16", "f16x2": "float16", "bf16": "bfloat16", "bf16x2": "bfloat16",
    "tf32": "tf32", "f32": "float32", "f32x2": "float32", "f64": "float64",
    "e4m3": "float8", "e5m2": "float8", "e4m3x2": "float8", "e5m2x2": "float8",
    "e4m3x4": "float8", "e5m2x4": "float8", "e3m2": "float6", "e2m3": "float6",
    "e3m2x2": "float6", "e2m3x2": "float6", "e2m1": "float4", "e2m1x2": "float4",
    "s8": "int8", "u8": "int8", "s4": "int4", "u4": "int4", "b1": "int1",
    "s16": "int", "u16": "int", "s32": "int", "u32": "int", "s64": "int", "u64": "int",
}  # fmt: skip
_KINDS = {
    "kind::f16": "float16 or bfloat16", "kind::tf32": "tf32", "kind::i8": "int8",
    "kind::f8f6f4": "float8", "kind::mxf8f6f4": "float8", "kind::mxf4": "float4",
    "kind::mxf4nvf4": "float4",
}  # fmt: skip
_NARROW = ("float16", "bfloat16", "float8", "float6", "float4")
_HALVES = ("float16", "bfloat16")
_STEP = re.compile(
    r"(?<![\w.%$])(cvt\.[\w.]+|sub\.[\w.]*f32(?:x2)?|mov\.b(?:32|64))\s+"
    r"(%\w+|\{[^}]*\}),\s*([^;]+);"
)
_REGISTER = re.compile(r"%\w+")
FULL_PLANES = 3
"""bfloat16 planes that hold all 24 bits of a float32."""


def precisions(ptx: str) -> frozenset[str]:
    """Name every precision that the kernels in a PTX file compute in.

    - a product on tensor cores by its operands: ``float16``, ``bfloat16``, ``float16 or bfloat16``
      (where the instruction does not say which), ``tf32``, ``float8``, ``float64``, ``int8``, ...;
    - scalar arithmetic: ``float32``, ``float64``, ``float16 arithmetic``, ``bfloat16 arithmetic``;
    - rounding of wider values, whatever becomes of them: ``to float16``, ``to tf32``, ...;
    - ``bfloat16 in 3 planes``: every value rounded to bfloat16 has its remainder rounded again,
      twice. Two planes, and float16, in the same way.
    """
    text = _COMMENT.sub("", ptx)
    found = {named for opcode in set(_OPCODE.findall(text)) if (named := _meaning(opcode))}
    if found & {f"to {each}" for each in _HALVES}:
        found |= _planes(text)
    return frozenset(found)


def below_float32(found: frozenset[str]) -> tuple[str, ...]:
    """Of what ``precisions`` found, name what a float32 task has no use for, in order.

    bfloat16 split into three planes carries a float32 whole and is not named; two planes lose 8 of
    24 bits and are. TF32 is not named: it is a format of its own, to be asked for by its name.
    """
    whole = f"bfloat16 in {FULL_PLANES} planes" in found
    innocent = {"bfloat16", "to bfloat16", "float16 or bfloat16"} if whole else set()
    return tuple(sorted(each for each in found - innocent if _is_narrow(each)))


def _is_narrow(name: str) -> bool:
    if name == f"bfloat16 in {FULL_PLANES} planes":
        return False
    first = name.removeprefix("to ").partition(" ")[0]
    return first in (*_NARROW, "int8", "int4", "int1")


def _meaning(opcode: str) -> str | None:
    """Say what one instruction, spelled out with its modifiers, computes in."""
    name, *modifiers = opcode.split(".")
    formats = [_FORMATS[each] for each in modifiers if each in _FORMATS]
    if name in ("mma", "wmma", "wgmma", "tcgen05"):
        return _product(name, modifiers, formats)
    if name in ("dp4a", "dp2a"):
        return "int8"
    if not formats:
        return None
    if name == "cvt":
        narrows = formats[0] in (*_NARROW, "tf32") and formats[-1] in ("float32", "float64", "int")
        return f"to {formats[0]}" if narrows else None
    if name in ("atom", "red", "multimem") and not {"add", "min", "max"} & set(modifiers):
        return None
    if formats[0] in _HALVES:
        return f"{formats[0]} arithmetic"
    return formats[0] if formats[0] in ("float32", "float64") else None


def _product(name: str, modifiers: list[str], formats: list[str]) -> str | None:
    if name == "tcgen05":
        kinds = [_KINDS.get(each) for each in modifiers if each.startswith("kind::")]
        return kinds[0] if modifiers[0] == "mma" and kinds else None
    if name == "wmma" and (modifiers[0] != "mma" or len(formats) < 2):
        return None
    if name == "wgmma" and modifiers[0] != "mma_async":
        return None
    if len(formats) == 2 and name == "wmma":
        return "float16"  # the oldest form names the sum's types only
    return formats[1] if len(formats) >= 3 else None


def _planes(text: str) -> set[str]:
    """Follow values from rounding to remainder, and find formats in which all are split."""
    removed: dict[str, int] = {}
    """Of a float: how many planes have been taken off it."""
    plane: dict[str, int] = {}
    """Of a rounded value, narrow or widened again: which plane it is."""
    counts: Counter[tuple[str, int]] = Counter()
    for opcode, target, operands in _STEP.findall(text):
        sources = _REGISTER.findall(operands)
        targets = _REGISTER.findall(target)
        for each in targets:  # functions use the same names again
            removed.pop(each, None)
            plane.pop(each, None)
        if not sources:
            continue
        if opcode.startswith("sub"):
            if len(sources) == 2 and plane.get(sources[1]) == removed.get(sources[0], 0) + 1:
                removed[targets[0]] = plane[sources[1]]
            continue
        formats = [_FORMATS[each] for each in opcode.split(".")[1:] if each in _FORMATS]
        if formats and formats[0] in _HALVES and formats[-1] == "float32":
            number = min(removed.get(each, 0) for each in sources) + 1
            counts[formats[0], number] += len(sources)
            plane[targets[0]] = number
        else:  # widened, packed into pairs or taken out of them: still the same values
            for known in (plane, removed):
                if all(each in known for each in sources):
                    known.update(dict.fromkeys(targets, min(known[each] for each in sources)))
    found = set()
    for each in {name for name, _ in counts}:
        number = 1
        while counts[each, number + 1] >= counts[each, 1]:
            number += 1
        if number > 1:
            found.add(f"{each} in {number} planes")
    return found
