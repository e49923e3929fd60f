"""``grid_sample`` as torch computes it, not as its compiler does.

Neighbours outside of an image count for nothing. The compiler reads the image's first element in
their place, with a weight of 0: an infinity or NaN there would reach every such pixel.
"""

import re
from dataclasses import replace

from kernelsmith.propose.rules.compiler.cpp_tree import (
    Function,
    Let,
    Loop,
    Statement,
    loads,
    names,
)

_PRODUCT = re.compile(r"(t\d+) \* (t\d+)")
_CHOICE = re.compile(r"(t\d+) \? (t\d+) : (t\d+)")


def sampled(function: Function) -> Function:
    """The same kernel, where a neighbour outside adds 0 whatever was read in its place."""
    return replace(function, body=_body(function.body))


def _body(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    values = {each.name: each.value for each in body if isinstance(each, Let)}
    found: list[Statement] = []
    for each in body:
        if isinstance(each, Loop):
            found.append(replace(each, body=_body(each.body)))
        elif isinstance(each, Let):
            found.append(replace(each, value=_summand(each.value, values)))
        else:
            found.append(each)
    return tuple(found)


def _summand(text: str, values: dict[str, str]) -> str:
    """A neighbour times its weight; the same where neither index nor weight is a choice."""
    product = _PRODUCT.fullmatch(text)
    if product is None:
        return text
    read = loads(values.get(product[1], ""))
    weight = _CHOICE.fullmatch(values.get(product[2], ""))
    if len(read) != 1 or weight is None or values.get(weight[3]) != "0.0f":
        return text
    if not _chosen_by(weight[1], names(read[0][1]), values):
        return text
    return f"{weight[1]} ? ({product[1]} * {weight[2]}) : {weight[3]}"


def _chosen_by(condition: str, index: set[str], values: dict[str, str]) -> bool:
    """Whether an index is one thing where a condition holds and 0 elsewhere."""
    seen: set[str] = set()
    while index - seen:
        name = (index - seen).pop()
        seen.add(name)
        value = values.get(name, "")
        choice = _CHOICE.fullmatch(value)
        if choice is not None and choice[1] == condition and values.get(choice[3]) == "int64_t(0)":
            return True
        index |= {each for each in names(value) if each in values}
    return False
