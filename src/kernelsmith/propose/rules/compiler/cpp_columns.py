"""Reductions over an outer dimension: lanes go along the inner one, which lies side by side."""

import re
from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.cpp_math import OPERATORS
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Gather,
    Let,
    Loop,
    Masked,
    Statement,
    Store,
    expressions,
    inner,
    loads,
    names,
    renamed,
    rewritten,
    stride,
    texts_of,
    walk,
)

_LONG = 512
"""Terms from which on one chain of float32 additions errs too much."""


def by_columns(loop: Loop) -> tuple[Loop, ...] | None:
    """The loops around and including the one whose steps are to run side by side."""
    chain = [loop]
    while len(chain[-1].body) == 1 and isinstance(chain[-1].body[0], Loop):
        chain.append(chain[-1].body[0])
    last = chain[-1]
    if not any(isinstance(each, Loop) for each in last.body) or last.extent < 8:
        return None
    reduces = [
        each for each in last.body if isinstance(each, Loop)
        and any(isinstance(one, Gather) for one in walk(each.body))
    ]  # fmt: skip
    if not reduces or not all(_side_by_side(each, last.variable) for each in reduces):
        return None
    made = {each.name for each in walk(last.body) if isinstance(each, Accumulator)}
    for each in walk(last.body):
        if isinstance(each, Gather) and each.name not in made:
            return None
        if not isinstance(each, Let | Store | Loop | Accumulator | Gather | Masked):
            return None
        if isinstance(each, Accumulator) and each.fold not in OPERATORS:
            return None
        if isinstance(each, Store) and (each.adds or not stride(each.index, last.variable)):
            return None
    return tuple(chain)


def _side_by_side(loop: Loop, variable: str) -> bool:
    """Whether memory lies along another variable than the loop's own."""
    along, across = 0, 0
    for each in walk(loop.body):
        for text in expressions(each):
            for _, index in loads(text):
                if loop.variable in names(index):
                    along += stride(index, loop.variable) == 1
                    across += stride(index, variable) == 1
    return across > along


@dataclass
class Columns:
    """Writes such a nest."""

    lanes: str
    chain: tuple[Loop, ...]

    def lines(self, _: Loop) -> list[str]:
        """The nest, without the pragma before it."""
        *outer, last = self.chain
        lines, pad = [], ""
        for each in outer:
            name = each.variable
            lines.append(f"{pad}for (int64_t {name} = 0; {name} < {each.extent}; ++{name}) {{")
            pad += "  "
        lines.append(f"{pad}for (int64_t from = 0; from < {last.extent}; from += {self.lanes}) {{")
        inside = [f"const int64_t many = std::min<int64_t>({self.lanes}, {last.extent} - from);"]
        inside += self._declared(last.body)
        inside += self._body(last.body, last.variable)
        lines += [f"{pad}  {line}" for line in inside]
        lines.append(f"{pad}}}")
        while pad:
            pad = pad[2:]
            lines.append(f"{pad}}}")
        return lines

    def _declared(self, body: tuple[Statement, ...]) -> list[str]:
        lines = []
        kinds = _crossing(body)
        for name, kind in kinds.items():
            lines.append(f"{kind} {name}[{self.lanes}];")
        for each in walk(body):
            if isinstance(each, Accumulator):
                lines.append(f"{_kind(each, body)} {each.name}[{self.lanes}];")
        return lines

    def _body(self, body: tuple[Statement, ...], variable: str) -> list[str]:
        folds = {
            each.name: each for each in walk(self.chain[-1].body) if isinstance(each, Accumulator)
        }
        crossing = _crossing(self.chain[-1].body)
        lanes = {name: f"{name}[k]" for name in [*crossing, *folds]}
        lines: list[str] = []
        group: list[Statement] = []

        def close() -> None:
            if group:
                lines.append(f"sweep<{self.lanes}>(0, many, [&](int64_t k, int) {{")
                lines.append(f"  const int64_t {variable} = from + k;")
                for each in group:
                    lines.extend(f"  {line}" for line in self._simple(each, lanes, crossing, folds))
                lines.append("});")
                group.clear()

        for each in body:
            if isinstance(each, Loop):
                close()
                name = each.variable
                lines.append(f"for (int64_t {name} = 0; {name} < {each.extent}; ++{name}) {{")
                lines += [f"  {line}" for line in self._body(each.body, variable)]
                lines.append("}")
            else:
                group.append(each)
        close()
        return lines

    def _simple(
        self, each: Statement, lanes: dict[str, str], crossing: dict[str, str],
        folds: dict[str, Accumulator],
    ) -> list[str]:  # fmt: skip
        match each:
            case Accumulator(name=name, fold=fold, kind=kind):
                start = OPERATORS[fold][1].replace("T", kind)
                return [f"{name}[k] = {start};"]
            case Gather(name=name, value=value):
                two = OPERATORS[folds[name].fold][2]
                by = {"a": f"{name}[k]", "b": "value"}
                kind = _kind(folds[name], self.chain[-1].body)
                made = renamed(value, lanes)
                return [f"const {kind} {name}_value = {made};",
                        f"{name}[k] = {renamed(two, by | {'b': f'{name}_value'})};"]  # fmt: skip
            case Let(name=name, value=value, kind=kind):
                to = f"{name}[k]" if name in crossing else f"const {kind} {name}"
                return [f"{to} = {renamed(value, lanes)};"]
            case Store(pointer=pointer, index=index, value=value):
                return [f"{pointer}[{renamed(index, lanes)}] = {renamed(value, lanes)};"]
            case Masked(name=name, kind=kind):
                changed = rewritten(each, lambda text: renamed(text, lanes))
                assert isinstance(changed, Masked)
                inside = [
                    f"  {line}" for one in changed.body
                    for line in self._simple(one, {}, {}, folds)
                ]  # fmt: skip
                to = f"{name}[k]" if name in crossing else name
                declared = f"{to} = " if name in crossing else f"{kind} {name} = "
                return [f"{declared}{changed.other};", f"if ({changed.condition}) {{", *inside,
                        f"  {to} = {changed.value};", "}"]  # fmt: skip
        raise AssertionError(each)


def _kind(accumulator: Accumulator, body: tuple[Statement, ...]) -> str:
    """What a column is gathered in: long sums in float64."""
    terms = max(
        (_terms(each, accumulator.name) for each in body if isinstance(each, Loop)), default=1
    )
    long = accumulator.exact or terms > _LONG
    if accumulator.fold == "sum" and accumulator.kind == "float" and long:
        return "double"
    return accumulator.kind


def _terms(loop: Loop, name: str) -> int:
    inside = [_terms(each, name) for each in loop.body if isinstance(each, Loop)]
    here = any(isinstance(each, Gather) and each.name == name for each in loop.body)
    return loop.extent * max([*inside, 1 if here else 0])


def _crossing(body: tuple[Statement, ...]) -> dict[str, str]:
    """Values that are made between loops and needed elsewhere than there, with their types."""
    groups: list[list[Statement]] = [[]]
    found: dict[str, str] = {}

    def visit(statements: tuple[Statement, ...]) -> None:
        for each in statements:
            if isinstance(each, Loop):
                groups.append([])
                visit(each.body)
                groups.append([])
            else:
                groups[-1].append(each)

    visit(body)
    for number, group in enumerate(groups):
        for each in group:
            if not isinstance(each, Let | Masked):
                continue
            others = [one for i, other in enumerate(groups) if i != number for one in other]
            texts = [text for one in others for part in (one, *walk(inner(one)))
                     for text in texts_of(part)]  # fmt: skip
            if any(re.search(rf"\b{each.name}\b", text) for text in texts):
                found[each.name] = each.kind
    return found
