"""What Python calls in front of a kernel: it takes each tensor once, and works out the rest.

The kernel behind it keeps a parameter for each place, since a C++ compiler believes that memory
is apart of parameters only.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.call import Named, Operand, Viewed
from kernelsmith.propose.rules.compiler.cpp_scratch import SCRATCH
from kernelsmith.propose.rules.graph import NotRecognised

_HEAD = re.compile(r'extern "C" (?P<result>\w+) (?P<name>\w+)\((?P<parameters>[^()]*)\) \{')
_WIDTH = 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """How the pointers of a kernel follow from what is passed."""

    given: tuple[str, ...]
    """By the name of the first pointer into each tensor, or ``scratch``."""
    places: tuple[tuple[str, int], ...]
    """For each pointer of the kernel: which of these, and how far into it. Elements; bytes of
    ``scratch``."""


def entered(
    parameters: Sequence[tuple[str, str]], operands: Sequence[Operand]
) -> tuple[Entry | None, tuple[Operand, ...]]:
    """What to pass to a kernel, and how its pointers follow; no entry where it is the same.

    Args:
        parameters: Name and element type of each of its pointers.
        operands: What each of them points to.
    """
    first: dict[tuple[str, str], str] = {}
    places: list[tuple[str, int]] = []
    for (name, kind), operand in zip(parameters, operands, strict=True):
        if not isinstance(operand, Named | Viewed):
            raise NotRecognised("the compiler passes a number to a kernel")
        if operand.name == SCRATCH:
            given = first.setdefault((SCRATCH, "uint8_t"), SCRATCH)
        else:
            given = first.setdefault((operand.name, kind), name)
        places.append((given, operand.offset if isinstance(operand, Viewed) else 0))
    passed = tuple(Named(name=tensor) for tensor, _ in first)
    if places == [(name, 0) for name, _ in parameters]:
        return None, passed
    return Entry(given=tuple(first.values()), places=tuple(places)), passed


def declared(text: str) -> tuple[tuple[str, str], ...]:
    """Name and element type of each pointer in a list of parameters."""
    found = []
    for each in text.split(","):
        kind, _, name = each.replace("__restrict", "").replace("const ", "").partition("*")
        found.append((name.strip(), kind.strip()))
    return tuple(found)


def with_entry(text: str, entry: Entry) -> str:
    """The kernel under another name, and behind it the function that Python calls."""
    head = _HEAD.search(text)
    assert head is not None, text[:200]
    result, name, parameters = head["result"], head["name"], head["parameters"].split(",")
    types = [each.partition("*")[0].strip() for each in parameters]
    begins = [
        _begin(kind, given, offset)
        for kind, (given, offset) in zip(types, entry.places, strict=True)
    ]
    takes = [f"{_type(given, types, entry)}* {given}" for given in entry.given]
    body = f"{text[: head.start()]}static {result} {name}_body({text[head.start('parameters') :]}"
    back = "" if result == "void" else "return "
    return "\n".join([
        body,
        *_lines(f'extern "C" {result} {name}(', takes, ") {", pad="    "),
        *_lines(f"  {back}{name}_body(", begins, ");", pad="      "),
        "}",
    ])  # fmt: skip


def _begin(kind: str, given: str, offset: int) -> str:
    """A pointer, from what is passed."""
    begin = f"{given} + {offset}" if offset else given
    return f"reinterpret_cast<{kind}*>({begin})" if given == SCRATCH else begin


def _type(given: str, types: Sequence[str], entry: Entry) -> str:
    """What is passed points to constants where nothing writes there."""
    if given == SCRATCH:
        return "uint8_t"
    own = [kind for kind, (of, _) in zip(types, entry.places, strict=True) if of == given]
    written = [each for each in own if not each.startswith("const ")]
    return (written or own)[0]


def _lines(begin: str, items: Sequence[str], end: str, *, pad: str) -> list[str]:
    """A list in lines that are not too long."""
    lines = [begin]
    for position, each in enumerate(items):
        item = each + (", " if position < len(items) - 1 else end)
        if len(lines[-1]) + len(item) > _WIDTH:
            lines.append(pad)
        lines[-1] += item
    return [each.rstrip() for each in lines]
