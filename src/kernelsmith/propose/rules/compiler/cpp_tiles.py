"""Gathers side by side: where elements lie is worked out once for a block, then read for all.

An index that is looked up or computed is checked before it is used. Behind a question no loop runs
in vectors, so an index that fails is counted and read as 0: the caller raises, and nothing is read
out of range. What the loop around does not change (addresses, weights of neighbours) is kept for a
block of elements and used in every step of that loop.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from kernelsmith.propose.rules.compiler import cpp_words as words
from kernelsmith.propose.rules.compiler.cpp_owners import WITHIN, loaded
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Check,
    Let,
    Loop,
    Statement,
    Store,
    closing,
    expressions,
    index_terms,
    loads,
    names,
    renamed,
    rewritten,
    stored,
    stride,
    wrapped,
)

_BLOCK = 256
"""Elements whose addresses are kept: a few KiB, which the nearest cache holds."""
_REACH = 1 << 31
"""Offsets below this are kept in 32 bits: twice as many go through one instruction."""


_NUMBER = re.compile(r"-?[\d.]+(?:e[-+]?\d+)?f?|\w+\(-?\d+\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tiles:
    """A nest of loops whose innermost one is cut into blocks."""

    outer: tuple[Loop, ...]
    """Loops around the blocks."""
    around: Loop | None
    """The loop that goes over each block again and again."""
    inside: Loop
    """The innermost loop."""
    before: tuple[Let, ...]
    """What is worked out once for a block."""
    failing: tuple[str, ...]
    """Numbers that are 0 where every index is within its bounds."""
    apart: tuple[tuple[str, str, str], ...]
    """Elements that do not lie side by side: read first, under a name, with their type."""
    kept: tuple[tuple[str, str], ...]
    """Values that are kept, with their types."""
    body: tuple[Statement, ...]
    """What is done in every step."""

    def lines(self, pragma: str, lanes: int) -> list[str]:
        """The nest; ``pragma`` lets threads share the blocks, where it is worth it."""
        count = min(lanes, _BLOCK)
        name, extent = self.inside.variable, self.inside.extent
        lines = [pragma] if pragma else []
        for each in self.outer:
            other = each.variable
            lines.append(f"for (int64_t {other} = 0; {other} < {each.extent}; ++{other})")
        lines.append(f"for (int64_t from = 0; from < {extent}; from += {_BLOCK}) {{")
        inside = [f"const int64_t many = std::min<int64_t>({_BLOCK}, {extent} - from);",
                  f"alignas(64) int64_t missing[{_BLOCK}];"]  # fmt: skip
        inside += [f"alignas(64) {kind} {kept}_kept[{_BLOCK}];" for kept, kind in self.kept]
        at = f"  const int64_t {name} = from + k;"
        for load, kind, text in self.apart:
            inside += [f"alignas(64) {kind} {load}[{_BLOCK}];",
                       f"sweep<{count}>(0, many, [=, &{load}](int64_t k, int) {{", at,
                       f"  {load}[k] = {text};", "});"]  # fmt: skip
        names_ = [*(f"{kept}_kept" for kept, _ in self.kept), *(load for load, _, _ in self.apart)]
        arrays = ", ".join(["=", "&missing", *(f"&{each}" for each in names_)])
        inside += [f"sweep<{count}>(0, many, [{arrays}](int64_t k, int) {{", at]
        inside += [f"  const {each.kind} {each.name} = {each.value};" for each in self.before]
        inside += [f"  {kept}_kept[k] = {kept};" for kept, _ in self.kept]
        inside += [f"  missing[k] = {' | '.join(f'({each})' for each in self.failing)};", "});"]
        inside += ["int64_t any = 0;", "#pragma omp simd reduction(| : any)",
                   "for (int64_t k = 0; k < many; ++k) any |= missing[k];", "if (any) {",
                   "#pragma omp atomic write", "  outside = 1;", "}"]  # fmt: skip
        arrays = ", ".join(["=", *(f"&{kept}_kept" for kept, _ in self.kept)])
        step = [f"sweep<{count}>(0, many, [{arrays}](int64_t k, int) {{", at]
        step += [f"  {line}" for each in self.body for line in self._line(each)]
        step.append("});")
        if self.around is not None:
            other = self.around.variable
            head = f"for (int64_t {other} = 0; {other} < {self.around.extent}; ++{other}) {{"
            step = [head, *(f"  {line}" for line in step), "}"]
        lines += [line if line.startswith("#") else f"  {line}" for line in [*inside, *step]]
        return [*lines, "}"]

    def _line(self, each: Statement) -> list[str]:
        by = {name: f"{name}_kept[k]" for name, _ in self.kept}
        made = rewritten(each, lambda text: renamed(text, by))
        match made:
            case Let(name=name, kind=kind, value=value):
                return [f"const {kind} {name} = {value};"]
            case Store(pointer=pointer, index=index, value=value):
                return [f"{pointer}[{index}] = {value};"]
        raise AssertionError(each)


def tiled(loop: Loop, shared: frozenset[str], types: Mapping[str, str]) -> Tiles | None:
    """A nest with checked indices in its innermost loop, cut into blocks; else none.

    Args:
        loop: The nest.
        shared: Pointers that may point to the same memory as others.
        types: Of what pointers point to.
    """
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    *outer, last = chain
    if not all(isinstance(each, Let | Check | Store) for each in last.body):
        return None
    if not any(isinstance(each, Check) for each in last.body):
        return None
    written = stored(last.body)
    if written & (shared | loaded(last.body)) or not _plain_stores(last):
        return None
    extents = {each.variable: each.extent for each in chain}
    safe = _clamped(last.body, extents)
    if safe is None:
        return None
    body, failing, bounds = safe
    around = outer[-1] if outer else None
    if around is not None:
        once = _fixed(body, around.variable)
        if all(names(each) <= once | set(extents) - {around.variable} for each in failing):
            return _split(tuple(outer[:-1]), around, last, body, failing, bounds, types)
    return _split(tuple(outer), None, last, body, failing, bounds, types)


def _plain_stores(loop: Loop) -> bool:
    """Whether every element is written once, in the order of the loops or in any other."""
    made = {each.name for each in loop.body if isinstance(each, Let)}
    return all(
        not each.adds and stride(each.index, loop.variable) == 1 and not names(each.index) & made
        for each in loop.body if isinstance(each, Store)
    )  # fmt: skip


def _clamped(
    body: tuple[Statement, ...], extents: Mapping[str, int]
) -> tuple[tuple[Let | Store, ...], tuple[str, ...], Mapping[str, int]] | None:
    """The same without checks: a number that fails becomes 0 from there on.

    None where an index is neither checked nor made of loops and checked numbers alone: what was
    behind a check would be read whatever it is.
    """
    values = {each.name: each.value for each in body if isinstance(each, Let)}
    by = {name: wrapped(value) for name, value in values.items() if _NUMBER.fullmatch(value)}
    bounds = dict(extents)
    sure = set(extents)
    found: list[Let | Store] = []
    failing: list[str] = []
    for each in body:
        if isinstance(each, Check):
            match = WITHIN.fullmatch(each.condition.strip())
            if match is None or match[1] not in values:
                return None
            name, limit = match[1], int(match[2])
            safe, now = f"{name}_safe", by.get(name, name)
            if safe in sure:
                return None
            # Numbers, not bools: masks of several widths in one expression are not vectorised.
            failing.append(f"{now} ^ {safe}")
            value = f"uint64_t({now}) < uint64_t({limit}) ? {now} : int64_t(0)"
            found.append(Let(name=safe, value=value, kind="int64_t"))
            bounds[safe] = limit
            sure.add(safe)
            by[name] = safe
            by |= {values[name]: safe} if values[name] in values else {}  # another name for it
            continue
        if not isinstance(each, Let | Store) or (isinstance(each, Let) and each.kind == "auto"):
            return None
        if isinstance(each, Let) and each.name in by:
            continue
        changed = rewritten(each, partial(renamed, by=by))
        assert isinstance(changed, Let | Store)
        read = [load for text in expressions(changed) for load in loads(text)]
        if any(not names(index) <= sure for _, index in read):
            return None
        if isinstance(changed, Let) and not read and names(changed.value) <= sure:
            sure.add(changed.name)
        found.append(changed)
    return tuple(found), tuple(failing), bounds


def _fixed(body: tuple[Let | Store, ...], variable: str) -> set[str]:
    """Values that a loop around does not change."""
    moving = {variable}
    for each in body:
        if isinstance(each, Let) and names(each.value) & moving:
            moving.add(each.name)
    return {each.name for each in body if isinstance(each, Let)} - moving


def _split(
    outer: tuple[Loop, ...], around: Loop | None, inside: Loop, body: tuple[Let | Store, ...],
    failing: tuple[str, ...], bounds: Mapping[str, int], types: Mapping[str, str],
) -> Tiles:  # fmt: skip
    """What is worked out once, what is kept of it, and the rest, which reads by what is kept."""
    if around is None:
        once = _needed(body, {name for each in failing for name in names(each)})
    else:
        once = _fixed(body, around.variable)
    before = [each for each in body if isinstance(each, Let) and each.name in once]
    rest: list[Statement] = [each for each in body if each not in before]
    kinds = {each.name: each.kind for each in before}
    places: dict[str, Let] = {}

    def placed(text: str) -> str:
        for pointer, index in loads(text):
            terms = index_terms(index)
            moving = [term for term in terms if names(term) & set(kinds)]
            if not moving:
                continue
            moving += [term for term in terms if inside.variable in names(term)
                       and term not in moving]  # fmt: skip
            where = " + ".join(moving)
            kind = "int32_t" if _reach(moving, bounds) < _REACH else "int64_t"
            made = places.setdefault(
                where, Let(name=f"place{len(places)}", value=f"{kind}({where})", kind=kind)
            )
            left = [made.name, *(term for term in terms if term not in moving)]
            text = text.replace(f"{pointer}[{index}]", f"{pointer}[{' + '.join(left)}]")
        return text

    def lifted(text: str) -> str:
        """Brackets of fixed values (a neighbour's weight) become values of their own."""
        for match in re.finditer(r"(?<!\w)\(", text):
            end = closing(text, match.start())
            inner = text[match.start() + 1 : end]
            kind = words.inferred(inner, kinds)
            if names(inner) and names(inner) <= set(kinds) and kind != "auto" and not loads(inner):
                name = f"part{len(parts)}"
                made = parts.setdefault(inner, Let(name=name, value=inner, kind=kind))
                return lifted(text[: match.start()] + made.name + text[end + 1 :])
        return text

    parts: dict[str, Let] = {}
    rest = [rewritten(rewritten(each, placed), lifted) for each in rest]
    kinds |= {each.name: each.kind for each in parts.values()}
    kinds |= {each.name: each.kind for each in places.values()}
    texts = [text for each in rest for text in expressions(each)]
    used = {name for text in texts for name in names(text)}
    # Conditions are as wide as what they choose: masks are not vectorised across widths.
    kept = tuple((name, "int32_t" if kind == "bool" else kind)
                 for name, kind in kinds.items() if name in used)  # fmt: skip
    first: dict[str, tuple[str, str, str]] = {}

    def read_first(text: str) -> str:
        for pointer, index in loads(text):
            if stride(index, inside.variable) not in (0, 1) and not names(index) & set(kinds):
                load = f"{pointer}[{index}]"
                kind = types[pointer]
                name, _, _ = first.setdefault(load, (f"apart{len(first)}", kind, load))
                text = text.replace(load, f"{name}[k]")
        return text

    flags = {each.name for each in before if each.kind == "bool"}
    made = [replace(each, value=_flat(read_first(each.value), each.kind, flags))
            for each in (*before, *places.values(), *parts.values())]  # fmt: skip
    return Tiles(
        outer=outer, around=around, inside=inside, before=tuple(made), failing=failing,
        apart=tuple(first.values()), kept=kept, body=tuple(rest),
    )  # fmt: skip


def _flat(text: str, kind: str, flags: set[str]) -> str:
    """A condition without short cuts, which are jumps: both sides are cheap and read nothing."""
    if kind != "bool" or loads(text):
        return text
    sides = [re.sub(r"[()!\s]", "", side) for side in re.split(r"&&|\|\|", text)]
    if any(side not in flags and not re.search(r"[<>]|==|!=", side) for side in sides):
        return text
    return text.replace("&&", "&").replace("||", "|")


def _needed(body: tuple[Let | Store, ...], wanted: set[str]) -> set[str]:
    """All that some values are made of."""
    found = set(wanted)
    for each in reversed(body):
        if isinstance(each, Let) and each.name in found:
            found |= names(each.value)
    return found


def _reach(terms: list[str], bounds: Mapping[str, int]) -> int:
    """How large a sum of terms can become; very large where it is not known."""
    total = 0
    for term in terms:
        match = re.fullmatch(r"(?:(\d+) ?\* ?)?([A-Za-z_]\w*)|(\d+)", term)
        if match is None or (match[3] is None and match[2] not in bounds):
            return _REACH
        total += int(match[3]) if match[3] else int(match[1] or 1) * (bounds[match[2]] - 1)
    return total
