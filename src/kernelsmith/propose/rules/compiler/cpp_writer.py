"""A kernel's tree as C++17: lanes within a row, OpenMP over rows or blocks."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd

from kernelsmith.propose.rules.compiler import cpp_math as prelude
from kernelsmith.propose.rules.compiler.cpp_borders import (
    between,
    borders,
    calls_of,
    dispatched,
    in_parts,
)
from kernelsmith.propose.rules.compiler.cpp_columns import Columns, by_columns
from kernelsmith.propose.rules.compiler.cpp_lines import bare, head_of, masked, padded
from kernelsmith.propose.rules.compiler.cpp_nests import (
    chain_of,
    collapsed,
    is_innermost,
    terms,
    work,
)
from kernelsmith.propose.rules.compiler.cpp_owners import Owned, apart, owned
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
    loads,
    names,
    read,
    stored,
    stride,
    texts_of,
    used,
    walk,
)
from kernelsmith.propose.rules.graph import NotRecognised

SCHEDULES = {"static": "static", "dynamic": "dynamic, 4", "guided": "guided"}
"""What OpenMP is told; rows that are taken one by one cost more than they share."""
_PARTS = 64
"""Into how many parts a sum over everything is cut, whatever the number of threads."""
STACK = 1 << 16
"""Bytes of a thread's own memory that may lie on its stack."""
_CHAIN = 4096
"""Terms that one lane may add up in float32."""
_PLACES = 32
"""Elements from which on the place of the largest is looked for block by block."""
_LOADS = 4
"""Loads for each element of a nest from which on it is worth as many elements more."""
_SCATTERED = 4
"""As many elements side by side take the time of one that is written where a number says."""
_LARGE = 64
"""Statements of a flat loop from which on its blocks are the shorter, the more it does."""
_SHORT = 4
"""Loops up to this length are left to the compiler."""


@dataclass(kw_only=True)
class Writer:
    """Writes one kernel; the same tree and parameters give the same text."""

    name: str
    function: Function
    parameters: Mapping[str, str]
    finals: frozenset[str] = frozenset()
    """Pointers that only the caller reads."""
    shared: frozenset[str] = frozenset()
    """Pointers that may point to the same memory as others."""
    _lanes: dict[str, str] = field(default_factory=dict)
    """Where each accumulator is gathered."""
    _lane: str = "k"
    """Which lane an element belongs to."""
    _placing: frozenset[str] = frozenset()
    """Largest elements whose places are looked for block by block."""
    _owned: Owned | None = None
    """The loop of which a thread has a part."""
    _cuts: Mapping[Loop, tuple[int, ...]] = field(default_factory=dict)
    """Where loops are cut, since masks change there."""

    def text(self) -> str:
        """The function, without what it calls."""
        body = self.function.body
        self._cuts = borders(body)
        checks = any(isinstance(each, Check) for each in walk(body))
        lines = [
            f'extern "C" {"int64_t" if checks else "void"} {self.name}({self._arguments()}) {{'
        ]
        lines += ["  int64_t outside = 0;"] if checks else []
        lines += self._top(body)
        lines += ["  return outside;"] if checks else []
        return "\n".join([*lines, "}"])

    def _arguments(self) -> str:
        made = []
        written = stored(self.function.body)
        for name, kind in self.function.parameters:
            const = "" if name in written else "const "
            alone = "" if name in self.shared else "__restrict "
            made.append(f"{const}{kind}* {alone}{name}")
        return ", ".join(made)

    def _top(self, body: tuple[Statement, ...]) -> list[str]:
        """One nest of loops after the other, each on all threads where it is worth it."""
        lines: list[str] = []
        waiting: list[Local] = []
        for position, each in enumerate(body):
            if isinstance(each, Local):
                waiting.append(each)
            elif isinstance(each, Accumulator):
                if self._splits(each, body[position + 1 :]):
                    self._lanes[each.name] = "parts"
                else:
                    lines += padded(self._accumulator(each, body[position + 1 :]))
            elif isinstance(each, Loop):
                lines += padded(self._nest(each, waiting, body[position + 1 :]))
                waiting = [one for one in waiting if one.name in used(body[position + 1 :])]
            elif isinstance(each, Check):
                return lines + padded(self._checked(each, self._inside(body[position + 1 :])))
            else:
                lines += padded(self._statement(each))
        return lines

    def _splits(self, accumulator: Accumulator, rest: tuple[Statement, ...]) -> bool:
        """Whether a sum over everything, or a search, is worth several threads."""
        loop = next((each for each in rest if isinstance(each, Loop)), None)
        gathers = [] if loop is None else [e for e in walk(loop.body) if isinstance(e, Gather)]
        return (
            loop is not None and accumulator.name in {each.name for each in gathers}
            and self._is_heavy(loop) and loop.extent >= _PARTS
            and all(
                self._folds().get(each.name) in prelude.OPERATORS
                or (each.at == loop.variable and is_innermost(loop))
                for each in gathers
            )
        )  # fmt: skip

    def _folds(self) -> dict[str, str]:
        return {
            each.name: each.fold for each in walk(self.function.body)
            if isinstance(each, Accumulator)
        }  # fmt: skip

    def _towards(self, name: str) -> str:
        """What a search asks of every value, by the name of a ``Place``'s function."""
        return "highest" if self._folds()[name] == "argmax" else "lowest"

    def _threaded(self, loop: Loop) -> bool:
        """Whether threads share a loop: it is worth it, and they would share nothing else."""
        made = {each.name for each in walk(loop.body) if isinstance(each, Accumulator)}
        outside = any(
            isinstance(each, Gather) and each.name not in made
            and self._lanes.get(each.name) != "parts"
            for each in walk(loop.body)
        )  # fmt: skip
        return not outside and self._is_heavy(loop)

    def _is_heavy(self, loop: Loop) -> bool:
        adds = any(isinstance(each, Store) and each.adds for each in walk(loop.body))
        return self._is_enough(loop) and not adds

    def _is_enough(self, loop: Loop, *, scattered: bool = False) -> bool:
        """Whether threads are worth waking; what is scattered costs a line of the cache each."""
        reads = sum(len(loads(text)) for each in walk(loop.body) for text in texts_of(each))
        weight = max(1, reads // _LOADS) * (_SCATTERED if scattered else 1)
        enough = weight * work(loop) >= int(self.parameters["serial_below"])
        return enough and self.parameters["threads"] != "1"

    def _pragma(self, collapse: int = 1) -> str:
        clause = f" collapse({collapse})" if collapse > 1 else ""
        return (
            f"#pragma omp parallel for schedule({SCHEDULES[self.parameters['schedule']]}){clause}"
        )

    def _nest(self, loop: Loop, locals_: list[Local], rest: tuple[Statement, ...]) -> list[str]:
        columns = by_columns(loop)
        if columns is not None:
            pragma = [self._pragma()] if self._threaded(loop) else []
            return [*pragma, *Columns(self.parameters["lanes"], columns).lines(loop)]
        parts = [
            each.name for each in walk(loop.body)
            if isinstance(each, Gather) and self._lanes.get(each.name) == "parts"
        ]  # fmt: skip
        if parts:
            return self._parted(loop, locals_, list(dict.fromkeys(parts)), rest)
        part = owned(loop, self.shared) if self._is_enough(loop, scattered=True) else None
        if part is not None and not locals_:
            self._owned = part
            steps = self._loop(loop, rest)
            self._owned = None
            return [self._pragma(), *part.around(padded(steps))]
        tiles = tiled(loop, self.shared, self.function.kinds) if not locals_ else None
        if tiles is not None:
            shares = self._pragma(len(tiles.outer) + 1) if self._is_heavy(loop) else ""
            return tiles.lines(shares, int(self.parameters["lanes"]))
        if not self._threaded(loop):
            return [*self._locals(locals_), *self._loop(loop, rest)]
        if is_innermost(loop):
            return self._blocks(loop)
        depth, inside = collapsed(loop)
        lines = [self._pragma(depth)]
        pad = ""
        for each in chain_of(loop)[:depth]:
            lines.append(f"{pad}{head_of(each)} {{")
            pad += "  "
        made = [*self._locals(locals_), *self._inside(inside)]
        made = dispatched(chain_of(loop)[:depth], self._cuts, made)
        lines += [f"{pad}{line}" for line in made]
        while pad:
            pad = pad[2:]
            lines.append(f"{pad}}}")
        return lines

    def _blocks(self, loop: Loop) -> list[str]:
        """A flat loop, cut into blocks that threads take."""
        block = int(self.parameters["block"]) * 1024
        if (size := sum(1 for _ in walk(loop.body))) > _LARGE:
            lanes = self._count(loop)  # a few elements keep a thread busy
            block = max(1, block * _LARGE // 8 // size // lanes) * lanes
        end = f"std::min<int64_t>({loop.extent}, from + {block})"
        return [
            self._pragma(),
            f"for (int64_t from = 0; from < {loop.extent}; from += {block}) {{",
            *padded(self._loop(loop, (), begin="from", end=end)),
            "}",
        ]

    def _parted(
        self, loop: Loop, locals_: list[Local], parts: list[str], rest: tuple[Statement, ...]
    ) -> list[str]:
        """A sum over everything, or a search: each part by itself, then the parts in order."""
        made = {
            each.name: each for each in walk(self.function.body) if isinstance(each, Accumulator)
        }
        searches = [name for name in parts if made[name].fold not in prelude.OPERATORS]
        parts = [name for name in parts if name not in searches]
        lines = [f"{self._kind(made[name], _PARTS)} {name}_parts;" for name in parts]
        lines += [f"Place<{made[name].kind}> {name}_parts[{_PARTS}];" for name in searches]
        lines.append(self._pragma())
        lines.append(f"for (int64_t part = 0; part < {_PARTS}; ++part) {{")
        inside = self._locals(locals_)
        innermost = loop
        while not is_innermost(innermost):
            innermost = next(each for each in innermost.body if isinstance(each, Loop))
        for name in parts:
            lanes = self._count(innermost)
            self._lanes[name] = f"{name}_lanes"
            inside.append(f"{self._kind(made[name], lanes)} {name}_lanes;")
        for name in searches:
            inside += self._accumulator(made[name], ())
        begin, end = (f"{loop.extent} * {each} / {_PARTS}" for each in ("part", "(part + 1)"))
        inside += self._loop(loop, (), begin=begin, end=end)
        inside += [f"{name}_parts.lane[part] = {name}_lanes.total();" for name in parts]
        inside += [f"{name}_parts[part] = {name};" for name in searches]
        lines += [*padded(inside), "}"]
        for name in parts:
            lines.append(f"const {made[name].kind} {name} = {name}_parts.total();")
            del self._lanes[name]
        for name in searches:
            each = f"{name}_parts[part]"
            lines.append(f"auto {name} = {name}_parts[0];")
            # Who found nothing better than the start has no place of its own, and changes nothing.
            lines.append(f"for (int part = 1; part < {_PARTS}; ++part) {{")
            lines += [f"  {name}.{self._towards(name)}({each}.value, {each}.index);", "}"]
        return lines

    def _locals(self, locals_: list[Local]) -> list[str]:
        lines = []
        for each in locals_:
            if each.size * 8 <= STACK:
                lines.append(f"alignas(64) {each.kind} {each.name}[{each.size}];")
            else:
                hold = f"std::unique_ptr<{each.kind}[]> {each.name}_memory"
                lines.append(f"{hold}(new {each.kind}[{each.size}]);")
                lines.append(f"{each.kind}* {each.name} = {each.name}_memory.get();")
        return lines

    def _inside(self, body: tuple[Statement, ...]) -> list[str]:
        lines: list[str] = []
        for position, each in enumerate(body):
            rest = body[position + 1 :]
            if isinstance(each, Accumulator):
                lines += self._accumulator(each, rest)
            elif isinstance(each, Loop):
                columns = by_columns(each)
                pools = None if self.parameters.get("accumulate") == "double" else pooled(each)
                if pools is not None:
                    lines += pools.text(int(self.parameters["lanes"]), self._inside(pools.rest))
                elif columns is not None:
                    lines += Columns(self.parameters["lanes"], columns).lines(each)
                else:
                    lines += self._loop(each, rest)
            elif isinstance(each, Local):
                lines += self._locals([each])
            elif isinstance(each, Check):
                return lines + self._checked(each, self._inside(rest))
            else:
                lines += self._statement(each)
        return lines

    def _checked(self, check: Check, rest: list[str]) -> list[str]:
        own = self._owned
        if own is not None and own.check == check.condition:
            rest = [f"if (from <= {own.variable} && {own.variable} < to) {{", *padded(rest), "}"]
        inside = [f"  {line}" for line in rest]
        return [
            f"if ({bare(check.condition)}) {{", *inside, "} else {",
            "#pragma omp atomic write", "  outside = 1;", "}",
        ]  # fmt: skip

    def _count(self, loop: Loop) -> int:
        """How many lanes a loop fills."""
        lanes = int(self.parameters["lanes"])
        while lanes > max(1, loop.extent):
            lanes //= 2
        if self._owned is not None and loop.variable == self._owned.variable:
            lanes = gcd(lanes, self._owned.width)
        return lanes

    def _kind(self, accumulator: Accumulator, lanes: int) -> str:
        kind = accumulator.kind
        double = self.parameters.get("accumulate") == "double"
        double |= terms(self.function.body, accumulator.name) > _CHAIN * lanes
        if accumulator.fold == "sum" and kind == "float" and double:
            kind = "double"
        return f"Lanes<{prelude.OPERATORS[accumulator.fold][0]}, {kind}, {lanes}>"

    def _accumulator(self, each: Accumulator, rest: tuple[Statement, ...]) -> list[str]:
        """Where a value is gathered in the loops behind it."""
        if each.fold in ("argmax", "argmin"):
            start = "lowest" if each.fold == "argmax" else "highest"
            self._lanes[each.name] = each.name
            return [f"Place<{each.kind}> {each.name}{{{start}<{each.kind}>()}};"]
        loops = [
            one for one in walk(rest) if isinstance(one, Loop)
            and any(isinstance(g, Gather) and g.name == each.name for g in one.body)
        ]  # fmt: skip
        if len(loops) != 1:
            raise NotRecognised("the compiler gathers one value in several loops")
        loop = loops[0]
        self._lanes[each.name] = f"{each.name}_lanes"
        return [f"{self._kind(each, self._count(loop))} {each.name}_lanes;"]

    def _loop(
        self, loop: Loop, rest: tuple[Statement, ...], *, begin: str = "0", end: str = ""
    ) -> list[str]:
        if not end and self._owned is not None and loop.variable == self._owned.variable:
            begin, end = "from", "to"
        cuts = () if end else self._cuts.get(loop, ())
        end = end or str(loop.extent)
        parts = between(loop, cuts) if cuts else [(begin, end)]
        gathers = [each for each in walk(loop.body) if isinstance(each, Gather)]
        self._lane = "k"
        places = [each.name for each in gathers if each.at]
        if places and is_innermost(loop) and not self._is_serial(loop):
            lines = self._placed(loop, places, begin, end)
        elif not is_innermost(loop) or self._is_serial(loop):
            if is_innermost(loop):
                self._lane = f"{loop.variable} % {self._count(loop)}"
            made = self._inside(loop.body)
            made = made if is_innermost(loop) else dispatched([loop], self._cuts, made)
            lines = [f"{head_of(loop, begin, end)} {{", *padded(made), "}"]
        elif (target := self._streamed(loop)) is not None:
            *before, last = loop.body
            assert isinstance(last, Store)
            inside = [*self._inside(tuple(before)), f"return {bare(last.value)};"]
            head = f"{self._taken(inside)}(int64_t {loop.variable})"
            call = f"stream<{self._count(loop)}>({target}, "
            lines = in_parts([f"{call}{a}, {b}, " for a, b in parts], head, inside)
        else:
            lane = "int k" if gathers else "int"
            inside = self._inside(loop.body)
            head = f"{self._taken(inside)}(int64_t {loop.variable}, {lane})"
            count = self._count(loop)
            calls = [f"sweep<{count}>({a}, {b}, " for a, b in parts]
            if len(parts) > 1 and not gathers:
                again = not stored(loop.body) & self.shared
                calls = calls_of(loop, cuts, count, again=again)
            lines = in_parts(calls, head, inside)
        return lines + self._totals(gathers, rest)

    def _taken(self, inside: list[str]) -> str:
        """What a sweep takes along: copies, since bytes that it writes could be anything else's."""
        own = {each.name for each in walk(self.function.body) if isinstance(each, Local)}
        own |= {*self._lanes.values(), *(f"{each}_block" for each in self._placing), "outside"}
        text = "\n".join(inside)
        named = sorted(each for each in own if re.search(rf"\b{each}\b", text))
        return f"[{', '.join(['=', *(f'&{each}' for each in named)])}]"

    def _placed(self, loop: Loop, places: list[str], begin: str, end: str) -> list[str]:
        """Values side by side; where the largest is, is asked only of blocks that hold a larger."""
        count, name = self._count(loop), loop.variable
        kinds = {each.name: each.kind for each in walk(self.function.body)
                 if isinstance(each, Accumulator)}  # fmt: skip
        head = f"for (int64_t first = {begin}; first < {end}; first += {count}) {{"
        inside = [f"const int64_t last = std::min<int64_t>({end}, first + {count});"]
        inside += [f"{kinds[each]} {each}_block[{count}];" for each in places]
        self._placing = frozenset(places)
        body = self._inside(loop.body)
        head_of_sweep = f"sweep<{count}>(first, last, {self._taken(body)}(int64_t {name}, int k) {{"
        inside += [head_of_sweep, *padded(body), "});"]
        self._placing = frozenset()
        for each in places:
            inside.append(f"{each}.{self._towards(each)}({each}_block, int(last - first), first);")
        return [head, *padded(inside), "}"]

    def _totals(self, gathers: list[Gather], rest: tuple[Statement, ...]) -> list[str]:
        """What was gathered, once nothing more comes."""
        lines = []
        kinds = {
            each.name: each for each in walk(self.function.body) if isinstance(each, Accumulator)
        }  # fmt: skip
        for name in dict.fromkeys(each.name for each in gathers):
            if not self._lanes.get(name, "").endswith("_lanes") or f"{name}_parts" in self._lanes:
                continue
            if any(name in names(text) for one in walk(rest) for text in texts_of(one)):
                kind = kinds[name].kind
                lines.append(f"const {kind} {name} = {kind}({name}_lanes.total());")
        return lines

    def _is_serial(self, loop: Loop) -> bool:
        """Whether elements must be taken one after the other, or are too few to bother."""
        if loop.extent <= _SHORT and not any(isinstance(e, Gather) for e in loop.body):
            return True
        folds = self._folds()
        for each in walk(loop.body):
            if isinstance(each, Check):
                return True
            if isinstance(each, Store) and not stride(each.index, loop.variable):
                return True
            if isinstance(each, Store) and each.adds and not self._adds_apart(each, loop):
                return True
            if isinstance(each, Gather) and folds[each.name] not in prelude.OPERATORS:
                alone = each not in loop.body or each.at != loop.variable
                if alone or loop.extent < _PLACES:
                    return True
        return False

    def _adds_apart(self, store: Store, loop: Loop) -> bool:
        return store.pointer not in self.shared and apart(store, loop)

    def _streamed(self, loop: Loop) -> str | None:
        """Where a loop's one output goes, if it may go past the caches."""
        last = loop.body[-1]
        if self.parameters.get("stores") != "stream" or not isinstance(last, Store):
            return None
        if any(isinstance(each, Store | Gather) for each in walk(loop.body[:-1])):
            return None
        pointer = last.pointer
        fits = self.function.kinds.get(pointer) == "float" and pointer in self.finals
        if not fits or pointer in read(self.function.body) or loop.extent < 256:
            return None
        if stride(last.index, loop.variable) != 1:
            return None
        terms = [term for term in last.index.split(" + ") if term != loop.variable]
        return " + ".join([pointer, *terms])

    def _statement(self, each: Statement) -> list[str]:
        match each:
            case Let(name=name, value=value, kind=kind):
                return [f"const {kind} {name} = {bare(value)};"]
            case Store(pointer=pointer, index=index, value=value, adds=adds):
                return [f"{pointer}[{index}] {'+=' if adds else '='} {bare(value)};"]
            case Gather(name=name, value=value) if name in self._placing:
                return [f"{name}_block[k] = {bare(value)};"]
            case Gather(name=name, value=value, at=at) if at:
                return [f"{name}.{self._towards(name)}({bare(value)}, {at});"]
            case Gather(name=name, value=value):
                return [f"{self._lanes[name]}.add({self._lane}, {bare(value)});"]
            case Masked():
                return masked(each, self._inside(each.body))
        raise AssertionError(each)
