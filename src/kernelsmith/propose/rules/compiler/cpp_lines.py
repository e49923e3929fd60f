"""Lines of C++: loops' heads, masked values, expressions without brackets that say nothing."""

import re

from kernelsmith.propose.rules.compiler.cpp_tree import Let, Loop, Masked, closing


def padded(lines: list[str]) -> list[str]:
    """Lines one step further in; what the preprocessor reads stays where it is."""
    return [line if line.startswith("#") else f"  {line}" for line in lines]


def head_of(loop: Loop, begin: str = "0", end: str = "") -> str:
    """The head of a counted loop."""
    name = loop.variable
    return f"for (int64_t {name} = {begin}; {name} < {end or loop.extent}; ++{name})"


def masked(each: Masked, inside: list[str]) -> list[str]:
    """A value that is computed where a condition holds; ``inside`` is what makes it."""
    condition, value = bare(each.condition), bare(each.value)
    if len(each.body) == 1 and isinstance(each.body[0], Let) and each.body[0].name == each.value:
        value, inside = bare(each.body[0].value), []
    if not inside:
        return [f"const {each.kind} {each.name} = {condition} ? {value} : {each.other};"]
    return [
        f"{each.kind} {each.name} = {each.other};", f"if ({condition}) {{",
        *padded(inside), f"  {each.name} = {value};", "}",
    ]  # fmt: skip


def bare(text: str) -> str:
    """An expression without brackets that say nothing."""
    text = text.strip()
    while text.startswith("(") and closing(text, 0) == len(text) - 1:
        text = text[1:-1]
    position = 0
    while (match := re.compile(r"\w\(\(").search(text, position)) is not None:
        outer, inside = match.end() - 2, match.end() - 1
        if closing(text, inside) == closing(text, outer) - 1:
            end = closing(text, outer)
            text = text[: outer + 1] + text[inside + 1 : end - 1] + text[end:]
        position = match.end() - 1
    return text
