"""What stands before the kernels of a compiler seed: as much of the prelude as they call."""

import re
from collections.abc import Mapping

from kernelsmith.propose.rules.compiler import cpp_math as prelude
from kernelsmith.propose.rules.compiler.cpp_borders import in_order
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Function,
    Local,
    texts_of,
    walk,
)
from kernelsmith.propose.rules.compiler.cpp_writer import STACK

_ALWAYS = """\
// In a large body g++ would call what is small, and what calls is not written in vectors.
#define ALWAYS __attribute__((always_inline))
"""


def preamble(functions: list[Function], parameters: Mapping[str, str]) -> str:
    """All that the kernels call."""
    statements = [each for function in functions for each in walk(function.body)]
    texts = [text for each in statements for text in texts_of(each)]
    joined = "\n".join(texts)
    folds: set[str] = {each.fold for each in statements if isinstance(each, Accumulator)}
    kinds = {kind for function in functions for _, kind in function.parameters}
    wanted = set(re.findall(r"fn::(\w+)\(", joined))
    parts = []
    if any(isinstance(each, Local) and each.size * 8 > STACK for each in statements):
        parts.append("#include <memory>\n")
    if kinds & {"bf16", "f16"}:
        parts.append(prelude.HALVES)
    if re.search(r"\b(larger|smaller)\(", joined) or folds & {"max", "min"}:
        parts.append(prelude.SIMPLE)
    if re.search(r"\b(floor_div|floor_mod|remainder_of)\(", joined):
        parts.append(prelude.WHOLE)
    if re.search(r"\b(exponent_of|mantissa_of)\(", joined):
        parts.append(prelude.FREXP)
    if re.search(r"\bu?int\d+_of\(", joined):
        parts.append(prelude.FROM_FLOATS)
    if re.search(r"\bshifted\(", joined):
        parts.append(prelude.SHIFT)
    parts.append(prelude.functions(wanted, polynomial=parameters.get("math", "poly") == "poly"))
    places = bool(folds & {"argmax", "argmin"})
    parts.append(prelude.operators(folds & set(prelude.OPERATORS)))
    if places:
        if not folds & {"max", "min"}:
            parts.append(prelude.LIMITS)
        parts.append(prelude.PLACE)
    if folds - {"argmax", "argmin"}:
        parts.append(prelude.LANES)
    parts.append(prelude.SWEEP)
    if not all(in_order(function.body) for function in functions):
        parts.append(prelude.PARTS)
    if parameters.get("stores") == "stream":
        parts.append(prelude.STREAM)
    return _ALWAYS + re.sub(
        r"inline (?:__attribute__\(\(always_inline\)\)\s)?", "inline ALWAYS ", "".join(parts)
    )
