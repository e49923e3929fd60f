"""Memory that is written where numbers say: every thread owns a range of one loop.

Threads that add to the same element would need atomics, and the result would depend on their order;
of two that write it, either could be last. Where steps of one loop never meet in an element, each
thread takes a range of that loop and goes over all others in order: no atomics, and the same result
on any number of threads.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Check,
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
    stored,
    stride,
    texts_of,
    walk,
)

WITHIN = re.compile(r"\(0 <= (\w+)\) && \(\1 < (\d+)\)")
_LINE = 16
"""Floats of a cache line: two threads that write one would wait for each other."""
OWNERS = 4
"""Into how many ranges of rows memory is cut."""
WIDE = 128
"""Elements of a row from which on every owner may look at every number: of shorter rows, in any
order, guessing wrong which are its own costs more (gcn_aggregate, rows of 16: 105 and 250 us)."""
_NARROW = 32
"""How long a loop must be for threads to share it."""
_PARTS = {16: 4096, 8: 2048, 4: 1024, 2: _NARROW}
"""Into how many parts a loop is cut, by its length: what is around it is done for every part, and
short pieces of rows are read slowly (graph_readout, one thread: 80 columns 46 us, 160 35 us)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owned:
    """The loop whose steps threads own, or the number that says where a row goes."""

    variable: str
    extent: int
    check: str = ""
    """Of a number: what is asked of it before it is used."""
    width: int
    """How many steps one part has."""

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.extent // self.width)

    def around(self, body: list[str]) -> list[str]:
        """The loop over parts, around what each part does between ``from`` and ``to``."""
        return [
            f"for (int64_t part = 0; part < {self.parts}; ++part) {{",
            f"  const int64_t from = part * {self.width};",
            f"  const int64_t to = std::min<int64_t>({self.extent}, from + {self.width});",
            *body, "}",
        ]  # fmt: skip


def owned(loop: Loop, shared: frozenset[str]) -> Owned | None:
    """The outermost loop whose steps never meet, of a nest that adds or scatters; else none."""
    body = (loop,)
    made = {each.name for each in walk(body) if isinstance(each, Let)}
    meet = [each for each in walk(body) if isinstance(each, Store)
            and (each.adds or names(each.index) & made)]  # fmt: skip
    if not meet or stored(body) & (shared | loaded(body)):
        return None
    if any(isinstance(each, Accumulator | Gather | Local | Masked) for each in walk(body)):
        return None
    extents = _extents(body)
    for name, extent in extents.items():
        if name != loop.variable and (by_number := _numbered(body, extents)) is not None:
            return by_number
        if extent >= _NARROW and _never_meet(body, name, extents):
            width = cut(extent, line=_lies_along(body, name))
            return Owned(variable=name, extent=extent, width=width)
    return None


def _numbered(body: tuple[Statement, ...], extents: Mapping[str, int]) -> Owned | None:
    """The number by which whole rows are added or written: threads own ranges of it.

    Each reads all numbers and only its own rows, those from end to end: from memory that no cache
    holds, parts of rows came at half the speed (graph_readout, 107 and 47 us).
    """
    values = {each.name: each.value for each in walk(body) if isinstance(each, Let)}
    for each in walk(body):
        if not isinstance(each, Loop) or not any(isinstance(one, Loop) for one in each.body):
            continue
        for check in each.body:
            match = WITHIN.fullmatch(check.condition) if isinstance(check, Check) else None
            if match is None or not isinstance(check, Check) or int(match[2]) < 2 * OWNERS:
                continue
            for name in (match[1], values.get(match[1], match[1])):
                steps = [stride(one.index, name) or 0 for one in walk(body)
                         if isinstance(one, Store)]  # fmt: skip
                bounded = {**extents, name: int(match[2])}
                if min(steps) >= WIDE and _never_meet(body, name, bounded, number=True):
                    return Owned(variable=name, extent=int(match[2]), check=check.condition,
                                 width=-(-int(match[2]) // OWNERS))  # fmt: skip
    return None


def cut(extent: int, *, line: bool) -> int:
    """How long parts of a loop are, so that threads share it; ``line``: by lines of the cache."""
    parts = next((n for n, long in _PARTS.items() if extent >= long), 1)
    each = _LINE if line else 1
    return -(-extent // (parts * each)) * each


def apart(store: Store, loop: Loop) -> bool:
    """Whether steps of an innermost loop add to elements of their own, and read no others."""
    step = stride(store.index, loop.variable)
    inside = names(store.index) & defined(loop.body)
    alone = [one for one in walk(loop.body) if isinstance(one, Store)
             and one.pointer == store.pointer] == [store]  # fmt: skip
    return bool(step) and not inside and alone and store.pointer not in loaded(loop.body)


def loaded(body: tuple[Statement, ...]) -> set[str]:
    """Pointers that are read; adding to an element does not count."""
    texts = (text for each in walk(body) for text in texts_of(each))
    return {pointer for text in texts for pointer, _ in loads(text)}


def _extents(body: tuple[Statement, ...]) -> dict[str, int]:
    """Loops by variable, outermost first; a name with two lengths is none."""
    found: dict[str, int] = {}
    for each in walk(body):
        if isinstance(each, Loop):
            known = found.setdefault(each.variable, each.extent)
            found[each.variable] = each.extent if known == each.extent else 0
    return found


def _lies_along(body: tuple[Statement, ...], name: str) -> bool:
    """Whether elements that are written lie side by side along a loop."""
    return any(isinstance(each, Store) and stride(each.index, name) == 1 for each in walk(body))


def _never_meet(
    body: tuple[Statement, ...], name: str, extents: Mapping[str, int], *, number: bool = False
) -> bool:
    """Whether different steps of a loop write different elements, wherever they write.

    An index is ``whole * (step * length) + step * variable + rest``, ``rest`` below ``step``: then
    the element tells the variable.
    """
    steps = set()
    loops = {each: n for each, n in extents.items() if not number or each != name}
    for store, around, bounds in _stores(body, frozenset(), loops):
        step = stride(store.index, name)
        if not step or not (name in bounds if number else name in around):
            return False
        steps.add((store.pointer, step))
        rest = 0
        for term in index_terms(store.index):
            match = re.fullmatch(r"(?:(\d+) ?\* ?)?([A-Za-z_]\w*)|(\d+)", term)
            if match is None:
                return False
            if match[3] is not None:
                rest += int(match[3]) % (step * extents[name])
            elif match[2] != name and (by := int(match[1] or 1)) % (step * extents[name]):
                if match[2] not in bounds:
                    return False
                rest += by * (bounds[match[2]] - 1)
        if rest >= step:
            return False
    return len(steps) == len({pointer for pointer, _ in steps})


def _stores(
    body: tuple[Statement, ...], around: frozenset[str], bounds: Mapping[str, int]
) -> Iterator[tuple[Store, frozenset[str], Mapping[str, int]]]:
    """What is written, the loops around it, and below what numbers lie that were checked."""
    known = dict(bounds)
    names_of = {each.name: each.value for each in body if isinstance(each, Let)}
    for each in body:
        if isinstance(each, Store):
            yield each, around, known
        elif isinstance(each, Loop):
            yield from _stores(each.body, around | {each.variable}, known)
        elif isinstance(each, Check) and (match := WITHIN.fullmatch(each.condition.strip())):
            known[match[1]] = int(match[2])
            known[names_of.get(match[1], match[1])] = int(match[2])
