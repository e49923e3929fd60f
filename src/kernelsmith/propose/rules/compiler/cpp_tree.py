"""A kernel of the compiler's scalar C++ as a tree of loops, and what its expressions name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kernelsmith.propose.rules.graph import NotRecognised

Fold = Literal["sum", "product", "max", "min", "any", "all", "argmax", "argmin"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Let:
    """A value that gets a name."""

    name: str
    value: str
    kind: str = "auto"
    """Its C++ type, where it can be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A value that is written to memory."""

    pointer: str
    index: str
    value: str
    adds: bool = False
    """Whether it is added to what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulator:
    """A value that loops gather; known under its name once they have ended."""

    name: str
    kind: str
    fold: Fold = "sum"
    exact: bool = False
    """Whether the compiler sums it in cascades: so many terms that one chain would err."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gather:
    """One more value for an accumulator."""

    name: str
    value: str
    at: str = ""
    """Its position, for the largest or smallest one's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Local:
    """Memory of one thread."""

    name: str
    kind: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What must hold for the rest to be done: an index within its bounds."""

    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Masked:
    """A value that is computed only where a condition holds."""

    name: str
    condition: str
    body: "tuple[Statement, ...]"
    value: str
    other: str
    kind: str = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """A counted loop from 0 on."""

    variable: str
    extent: int
    body: "tuple[Statement, ...]"


Statement = Let | Store | Accumulator | Gather | Local | Check | Masked | Loop


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One kernel: what it is given and what it does."""

    parameters: tuple[tuple[str, str], ...]
    """Name and type of what it points to, in order."""
    body: tuple[Statement, ...]

    @property
    def kinds(self) -> dict[str, str]:
        """Types by pointer."""
        return dict(self.parameters)


_NAME = re.compile(r"(?<![\w.:])[A-Za-z_]\w*\b(?!\s*\(|::)")
_WORDS = {"INFINITY", "NAN", "true", "false"}
_POINTER = re.compile(r"(?<![\w.:])([A-Za-z_]\w*)\[")
_CALLED = re.compile(r"(?<![\w.])((?:\w+::)*[A-Za-z_]\w*)(?=\()")


def names(text: str) -> set[str]:
    """Variables and pointers in an expression."""
    return set(_NAME.findall(text)) - _WORDS


def called(text: str) -> set[str]:
    """Functions and types that an expression calls."""
    return set(_CALLED.findall(text))


def renamed(text: str, by: Mapping[str, str]) -> str:
    """The same with other names, or expressions in place of names."""
    if not by:
        return text
    return _NAME.sub(lambda found: by.get(found.group(), found.group()), text)


def loads(text: str) -> list[tuple[str, str]]:
    """Pointer and index of every element that an expression reads."""
    found = []
    for match in _POINTER.finditer(text):
        end = closing(text, match.end() - 1)
        found.append((match[1], text[match.end() : end]))
    return found


def closing(text: str, opening: int) -> int:
    """Where the bracket at ``opening`` is closed."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position
    raise NotRecognised(f"the compiler's C++ has an open bracket in `{text[:60]}`")


def is_simple(text: str) -> bool:
    """Whether an expression can stand anywhere without brackets around it."""
    if re.fullmatch(r"-?[\w.]+(?:e[-+]?\d+f?)?", text):
        return not text.startswith("-")
    start = re.match(r"[\w:]*[(\[]", text)
    return start is not None and closing(text, start.end() - 1) == len(text) - 1


def wrapped(text: str) -> str:
    """An expression that can stand anywhere."""
    return text if is_simple(text) else f"({text})"


def expressions(statement: Statement) -> Iterator[str]:
    """What a statement itself computes; not what is inside of it."""
    match statement:
        case Let(value=value):
            yield value
        case Store(pointer=pointer, index=index, value=value):
            yield index
            yield value
            yield pointer
        case Gather(value=value, at=at):
            yield value
            yield at
        case Check(condition=condition):
            yield condition
        case Masked(condition=condition, other=other):
            yield condition
            yield other


def texts_of(statement: Statement) -> list[str]:
    """Every expression of a statement; of a masked one, what it ends in too."""
    found = list(expressions(statement))
    return [*found, statement.value] if isinstance(statement, Masked) else found


def inner(statement: Statement) -> tuple[Statement, ...]:
    """The statements inside of one."""
    return statement.body if isinstance(statement, Loop | Masked) else ()


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, outer ones first."""
    for each in body:
        yield each
        yield from walk(inner(each))


def used(body: tuple[Statement, ...]) -> set[str]:
    """All names that statements read, and the pointers that they write through."""
    found: set[str] = set()
    for each in walk(body):
        for text in expressions(each):
            found |= names(text)
        if isinstance(each, Masked):
            found |= names(each.value)
        if isinstance(each, Gather):
            found.add(each.name)
    return found


def defined(body: tuple[Statement, ...]) -> set[str]:
    """All names that statements make."""
    found = {
        each.name for each in walk(body) if isinstance(each, Let | Accumulator | Local | Masked)
    }
    return found | {each.variable for each in walk(body) if isinstance(each, Loop)}


def stored(body: tuple[Statement, ...]) -> set[str]:
    """Pointers that statements write through."""
    return {each.pointer for each in walk(body) if isinstance(each, Store)}


def read(body: tuple[Statement, ...]) -> set[str]:
    """Pointers that statements read through; adding to memory reads it."""
    found = {each.pointer for each in walk(body) if isinstance(each, Store) and each.adds}
    for each in walk(body):
        found |= {pointer for text in texts_of(each) for pointer, _ in loads(text)}
    return found


def rewritten(statement: Statement, change: Callable[[str], str]) -> Statement:
    """The same with every expression changed, inner ones included."""
    match statement:
        case Let():
            return replace(statement, value=change(statement.value))
        case Store():
            return replace(
                statement, index=change(statement.index), value=change(statement.value),
                pointer=change(statement.pointer),
            )  # fmt: skip
        case Gather():
            return replace(statement, value=change(statement.value), at=change(statement.at))
        case Check():
            return replace(statement, condition=change(statement.condition))
        case Masked():
            return replace(
                statement, condition=change(statement.condition), value=change(statement.value),
                other=change(statement.other),
                body=tuple(rewritten(each, change) for each in statement.body),
            )  # fmt: skip
        case Loop():
            return replace(
                statement, body=tuple(rewritten(each, change) for each in statement.body)
            )
    return statement


def stride(index: str, variable: str) -> int | None:
    """By how much an index grows with a variable; ``None``: by no fixed number."""
    total = 0
    for term in index_terms(index):
        if variable not in names(term):
            continue
        match = re.fullmatch(rf"(?:(\d+) ?\* ?)?{variable}", term)
        if match is None:
            return None
        total += int(match[1] or 1)
    return total


def index_terms(index: str) -> list[str]:
    """What is added up in an index, brackets kept together."""
    parts, depth = [""], 0
    for character in index:
        depth += (character in "([{") - (character in ")]}")
        if character == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts]
