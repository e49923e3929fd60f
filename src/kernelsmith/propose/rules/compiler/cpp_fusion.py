"""Loops of one length that go over the same elements become one loop.

The compiler fuses up to some number of operations, and then begins anew: a loop over time that it
has unrolled is a dozen loops over the state, each of which writes what the next one reads. In one
loop that stays in registers, and threads are woken once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.compiler.cpp_columns import by_columns
from kernelsmith.propose.rules.compiler.cpp_nests import collapsed, is_innermost
from kernelsmith.propose.rules.compiler.cpp_pools import pooled
from kernelsmith.propose.rules.compiler.cpp_tiles import tiled
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Check,
    Function,
    Gather,
    Let,
    Local,
    Loop,
    Masked,
    Statement,
    Store,
    defined,
    index_terms,
    loads,
    names,
    read,
    renamed,
    rewritten,
    stored,
    texts_of,
    used,
    walk,
)

Body = tuple[Statement, ...]
_MOST = 2500
"""Statements of a loop up to which others join it: the C++ compiler's time grows with them."""
_FAR = 400
"""Statements that a loop is moved past at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Access:
    """An element that a statement touches, and how far the loops around it go."""

    pointer: str
    index: str
    writes: bool
    extents: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Linear:
    """An index as a sum: a number for each variable, and one more."""

    by: Mapping[str, int]
    begin: int


def fused(function: Function, *, unsure: frozenset[str] = frozenset()) -> Function:
    """The same kernel with fewer loops.

    Args:
        function: As parsed; the same tensor under one pointer only.
        unsure: Pointers that may point to the memory of others: loops that write there stay.
    """
    return replace(function, body=_Fusion(function.kinds, unsure).of(function.body, {}))


class _Fusion:
    def __init__(self, kinds: Mapping[str, str], unsure: frozenset[str]) -> None:
        self._kinds = kinds
        self._unsure = unsure

    def of(self, body: Body, around: Mapping[str, int]) -> Body:
        """Statements with their loops joined, and so inside of each."""
        found: list[Statement] = []
        for each in body:
            if not isinstance(each, Loop) or not self._join(found, each, around):
                found.append(each)
        return tuple(
            self._inside(each, around) if isinstance(each, Loop) else each for each in found
        )

    def _inside(self, loop: Loop, around: Mapping[str, int]) -> Loop:
        return replace(loop, body=self.of(loop.body, {**around, loop.variable: loop.extent}))

    def _join(self, found: list[Statement], loop: Loop, around: Mapping[str, int]) -> bool:
        """Put a loop into an earlier one, if that changes nothing."""
        for position in range(len(found) - 1, max(-1, len(found) - 1 - _FAR), -1):
            each = found[position]
            if isinstance(each, Local | Check) or stored((each,)) & self._unsure:
                return False
            if not isinstance(each, Loop) or each.extent != loop.extent:
                continue
            before, behind = _parted(each, found[position + 1 :])
            if not all(_pass(one, loop) for one in behind):
                continue
            whole = self._joined(each, loop, around)
            if whole is not None:
                found[position:] = [*before, whole, *behind]
                return True
        return False

    def _joined(self, first: Loop, loop: Loop, around: Mapping[str, int]) -> Loop | None:
        """Both as one loop; none where what one does in a step, the other touches in another."""
        second = _beside(loop, first)
        if second is None or not self._fits(first, second, top=not around):
            return None
        if not _apart(first, second, around):
            return None
        whole = replace(first, body=first.body + second.body)
        if is_innermost(whole):
            return whole
        inside, both = self._inside(whole, around), (first, second)
        if any(map(by_columns, both)) and by_columns(inside) is None:
            return None
        # Threads must have as many rows to share as before.
        if not around and collapsed(inside)[0] < max(collapsed(each)[0] for each in both):
            return None
        return inside

    def _fits(self, first: Loop, second: Loop, *, top: bool) -> bool:
        """Whether two loops are of a kind that may be joined, and worth it."""
        both = (first, second)
        if is_innermost(first) != is_innermost(second) or sum(map(_size, both)) > _MOST:
            return False
        if not _touched((first,)) & _touched((second,)):
            return False
        for each in walk(both):
            match each:
                case Check() | Local():
                    return False
                case Store(adds=adds, pointer=pointer) if adds or pointer in self._unsure:
                    return False
                case Gather(at=at) if at:
                    return False
        if all(pooled(each) is not None for each in both):
            return False
        if top and any(tiled(each, self._unsure, self._kinds) is not None for each in both):
            return False
        if top and _gathers_outside(first) != _gathers_outside(second):
            return False  # one is shared by threads as rows are, the other as a sum is
        return not _made((first,)) & used(second.body)


def _parted(loop: Loop, between: Body | list[Statement]) -> tuple[list[Statement], list[Statement]]:
    """What lies behind a loop: declarations that may go before it, and all else."""
    late = _made((loop,))
    written = stored((loop,))
    before: list[Statement] = []
    behind: list[Statement] = []
    for each in between:
        if isinstance(each, Accumulator):
            before.append(each)
        elif (
            isinstance(each, Let) and not names(each.value) & late
            and not {pointer for pointer, _ in loads(each.value)} & written
        ):  # fmt: skip
            before.append(each)
        else:
            behind.append(each)
            late |= _made((each,))
            written |= stored((each,))
    return before, behind


def _pass(each: Statement, loop: Loop) -> bool:
    """Whether a loop may come before this statement instead of behind it."""
    if _made((each,)) & used((loop,)):
        return False
    return not (stored((each,)) & _touched((loop,)) or stored((loop,)) & _touched((each,)))


def _made(body: Body) -> set[str]:
    """Values that statements leave behind."""
    over = {each.variable for each in walk(body) if isinstance(each, Loop)}
    return (defined(body) | _gathered(body)) - over


def _gathered(body: Body) -> set[str]:
    return {each.name for each in walk(body) if isinstance(each, Gather)}


def _gathers_outside(loop: Loop) -> bool:
    made = {each.name for each in walk(loop.body) if isinstance(each, Accumulator)}
    return bool(_gathered((loop,)) - made)


def _size(loop: Loop) -> int:
    return sum(1 for _ in walk(loop.body))


def _beside(loop: Loop, first: Loop) -> Loop | None:
    """A loop over the variable of another, under names that this one does not have."""
    inner = {each.variable for each in walk(loop.body) if isinstance(each, Loop)}
    if first.variable in inner:
        return None
    same = (defined(first.body) & defined(loop.body)) - inner
    by = {name: f"{name}_" for name in same} | {loop.variable: first.variable}
    body = (rewritten(each, lambda text: renamed(text, by)) for each in loop.body)
    return replace(loop, variable=first.variable, body=tuple(_called(each, by) for each in body))


def _called(statement: Statement, by: Mapping[str, str]) -> Statement:
    """Other names of what is made, where all that reads them has them already."""
    match statement:
        case Let(name=name) | Accumulator(name=name) | Gather(name=name):
            return replace(statement, name=by.get(name, name))
        case Masked(name=name, body=body):
            inside = tuple(_called(each, by) for each in body)
            return replace(statement, name=by.get(name, name), body=inside)
        case Loop(body=body):
            return replace(statement, body=tuple(_called(each, by) for each in body))
    return statement


def _apart(first: Loop, second: Loop, around: Mapping[str, int]) -> bool:
    """Whether no element that one writes is touched by the other in another step."""
    ones, others = _accesses(first), _accesses(second)
    by_pointer: dict[str, list[_Access]] = {}
    for each in ones:
        by_pointer.setdefault(each.pointer, []).append(each)
    return all(
        _meet_in_step(a, b, first.variable, first.extent, around)
        for b in dict.fromkeys(others) for a in dict.fromkeys(by_pointer.get(b.pointer, ()))
        if a.writes or b.writes
    )  # fmt: skip


def _accesses(loop: Loop) -> list[_Access]:
    """Every element that a step of a loop touches, by its index as written."""
    found: list[_Access] = []

    def collect(body: Body, extents: tuple[tuple[str, int], ...]) -> None:
        for each in body:
            found.extend(
                _Access(pointer=pointer, index=index, writes=False, extents=extents)
                for text in texts_of(each) for pointer, index in loads(text)
            )  # fmt: skip
            if isinstance(each, Store):
                found.append(
                    _Access(pointer=each.pointer, index=each.index, writes=True, extents=extents)
                )
            elif isinstance(each, Loop):
                collect(each.body, (*extents, (each.variable, each.extent)))
            elif isinstance(each, Masked):
                collect(each.body, extents)

    collect(loop.body, ())
    return found


def _meet_in_step(
    a: _Access, b: _Access, variable: str, extent: int, around: Mapping[str, int]
) -> bool:
    """Whether two accesses never touch the same element in different steps of the loop."""
    one, two = _linear(a.index), _linear(b.index)
    if one is None or two is None:
        return False
    known = [{**around, **dict(each.extents), variable: extent} for each in (a, b)]
    if set(one.by) - set(known[0]) or set(two.by) - set(known[1]):
        return False
    outer = set(around) - {variable}
    if any(one.by.get(name, 0) != two.by.get(name, 0) for name in outer):
        return False
    inner = [
        _span(each, [name for name in each.by if name not in outer and name != variable], sizes)
        for each, sizes in zip((one, two), known, strict=True)
    ]
    step = one.by.get(variable, 0)
    if step == two.by.get(variable, 0) and step:
        # Elements are the same where step * (i - j) makes up for what lies inside: only i = j may.
        low, high = inner[0][0] - inner[1][1], inner[0][1] - inner[1][0]
        if -abs(step) < low and high < abs(step):
            return True
    whole = [
        _span(each, [name for name in each.by if name not in outer], sizes)
        for each, sizes in zip((one, two), known, strict=True)
    ]
    return whole[0][1] < whole[1][0] or whole[1][1] < whole[0][0]


def _span(index: _Linear, over: list[str], extents: Mapping[str, int]) -> tuple[int, int]:
    """The smallest and the largest that an index becomes with these variables."""
    reach = [index.by[name] * (extents[name] - 1) for name in over]
    return (
        index.begin + sum(min(0, each) for each in reach),
        index.begin + sum(max(0, each) for each in reach),
    )


def _linear(index: str) -> _Linear | None:
    """An index as a sum of variables, each by a number; none where it is something else."""
    by: dict[str, int] = {}
    begin = 0
    for term in index_terms(index):
        sign = 1
        while term.startswith("(") and term.endswith(")"):
            term = term[1:-1].strip()
        if term.startswith("-"):
            sign, term = -1, term[1:].strip()
        factors = [each.strip() for each in term.split("*")]
        number = sign
        variables = []
        for each in factors:
            if each.isdigit():
                number *= int(each)
            elif each.isidentifier():
                variables.append(each)
            else:
                return None
        if not variables:
            begin += number
        elif len(variables) == 1:
            by[variables[0]] = by.get(variables[0], 0) + number
        else:
            return None
    return _Linear(by=by, begin=begin)


def _touched(body: Body) -> set[str]:
    """Pointers that statements read or write through."""
    return stored(body) | read(body)
