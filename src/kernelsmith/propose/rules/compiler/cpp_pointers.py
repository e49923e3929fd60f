"""One pointer for each tensor that a kernel touches, wherever in it the compiler's begin."""

import re
from collections.abc import Mapping
from dataclasses import replace

from kernelsmith.propose.rules.compiler.cpp_tree import (
    Function,
    Loop,
    Masked,
    Statement,
    Store,
    closing,
    index_terms,
    rewritten,
)

Place = tuple[str, int]
"""A tensor, and how many elements into it."""
_POINTER = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)\[")


def one_pointer_each(
    function: Function, memory: Mapping[str, Place]
) -> tuple[Function, dict[str, Place]]:
    """The same with one pointer for all places in a tensor that hold elements of one type.

    Then equal elements have equal texts, and nothing else is the same memory.
    """
    first: dict[tuple[str, str], tuple[str, int]] = {}
    for name, kind in function.parameters:
        tensor, offset = memory[name]
        if (tensor, kind) not in first or offset < first[tensor, kind][1]:
            first[tensor, kind] = (name, offset)
    by: dict[str, Place] = {}
    for name, kind in function.parameters:
        tensor, offset = memory[name]
        base, begin = first[tensor, kind]
        if base != name:
            by[name] = (base, offset - begin)
    if not by:
        return function, dict(memory)
    body = tuple(_moved(each, by) for each in function.body)
    parameters = tuple(each for each in function.parameters if each[0] not in by)
    return (
        Function(parameters=parameters, body=body),
        {name: memory[name] for name, _ in parameters},
    )


def _moved(statement: Statement, by: Mapping[str, Place]) -> Statement:
    """Loads and stores by other pointers, inside as well."""
    match statement:
        case Loop(body=body):
            return replace(statement, body=tuple(_moved(each, by) for each in body))
        case Masked(body=body):
            inside = tuple(_moved(each, by) for each in body)
            outside = rewritten(replace(statement, body=()), lambda text: shifted(text, by))
            assert isinstance(outside, Masked)
            return replace(outside, body=inside)
        case Store(pointer=pointer, index=index, value=value) if pointer in by:
            base, offset = by[pointer]
            return replace(
                statement, pointer=base, index=plus(shifted(index, by), offset),
                value=shifted(value, by),
            )  # fmt: skip
    return rewritten(statement, lambda text: shifted(text, by))


def shifted(text: str, by: Mapping[str, Place]) -> str:
    """An expression whose loads go by other pointers."""
    made, position = "", 0
    while (match := _POINTER.search(text, position)) is not None:
        end = closing(text, match.end() - 1)
        name, index = match[1], shifted(text[match.end() : end], by)
        if name in by:
            name, index = by[name][0], plus(index, by[name][1])
        made += f"{text[position : match.start()]}{name}[{index}]"
        position = end + 1
    return made + text[position:]


def plus(index: str, offset: int) -> str:
    """An index some elements further on; what is a number in it stands first."""
    rest = []
    for term in index_terms(index):
        bare = term.removeprefix("(").removesuffix(")") if term.startswith("(-") else term
        if re.fullmatch(r"-?\d+", bare):
            offset += int(bare)
        else:
            rest.append(term)
    number = [str(offset) if offset > 0 else f"({offset})"] if offset or not rest else []
    return " + ".join([*number, *rest]) if number != ["(0)"] else " + ".join(rest) or "0"
