"""Reductions over bins that lie side by side: a line of all bins first, then each bin by itself.

A bin of a few elements fills no vector, and the next bin begins where it ends. So lines are
gathered whole, and only the line that this leaves is gathered bin by bin.
"""

from dataclasses import dataclass

from kernelsmith.propose.rules.compiler.cpp_math import OPERATORS
from kernelsmith.propose.rules.compiler.cpp_nests import chain_of
from kernelsmith.propose.rules.compiler.cpp_tree import (
    Accumulator,
    Gather,
    Let,
    Loop,
    Statement,
    Store,
    expressions,
    index_terms,
    loads,
    names,
    renamed,
    rewritten,
    stored,
    stride,
)

_WIDEST = 32
"""Elements of a bin's line from which on the bin fills vectors by itself."""
_LONGEST = 1024
"""Elements of a whole line that are kept."""
_CHAIN = 512
"""Terms from which on one chain of float32 additions errs too much."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """A loop over bins, taken apart."""

    bins: Loop
    total: Accumulator
    lines: tuple[Loop, ...]
    """Loops over the lines of a bin."""
    width: int
    """Elements of a bin's line."""
    body: tuple[Let, ...]
    value: str
    """What is gathered of an element ``at``."""
    rest: tuple[Statement, ...]
    """What is done with each bin's result."""

    def text(self, lanes: int, rest: list[str]) -> list[str]:
        """The loop; ``rest`` is what is done with each bin's result, as lines."""
        name, kind = self.total.name, self.total.kind
        _, start, two = OPERATORS[self.total.fold]
        start = start.replace("T", kind)
        long = self.bins.extent * self.width
        count = next(n for n in (lanes, 32, 16, 8, 4, 2, 1) if n <= long)
        lines = [f"{kind} {name}_line[{long}];",
                 f"for ({kind}& each : {name}_line) each = {start};"]  # fmt: skip
        pad = ""
        for each in self.lines:
            other = each.variable
            lines.append(f"{pad}for (int64_t {other} = 0; {other} < {each.extent}; ++{other}) {{")
            pad += "  "
        lines.append(f"{pad}sweep<{count}>(0, {long}, [=, &{name}_line](int64_t at, int) {{")
        lines += [f"{pad}  const {each.kind} {each.name} = {each.value};" for each in self.body]
        lines.append(f"{pad}  const {kind} {name}_value = {self.value};")
        both = renamed(two, {"a": f"{name}_line[at]", "b": f"{name}_value"})
        lines += [f"{pad}  {name}_line[at] = {both};", f"{pad}}});"]
        while pad:
            pad = pad[2:]
            lines.append(f"{pad}}}")
        one = self.bins.variable
        both = renamed(two, {"a": name, "b": f"{name}_line[{self.width} * {one} + i]"})
        return [
            *lines, f"for (int64_t {one} = 0; {one} < {self.bins.extent}; ++{one}) {{",
            f"  {kind} {name} = {start};",
            f"  for (int64_t i = 0; i < {self.width}; ++i) {name} = {both};",
            *(f"  {line}" for line in rest), "}",
        ]  # fmt: skip


def pooled(loop: Loop) -> Pools | None:
    """A loop over bins that lie side by side, of several lines each; else none."""
    total, nest, *rest = (*loop.body, None, None)[: max(2, len(loop.body))]
    if not isinstance(total, Accumulator) or not isinstance(nest, Loop):
        return None
    *lines, last = chain_of(nest)
    gather = last.body[-1] if last.body else None
    if not lines or not isinstance(gather, Gather) or gather.name != total.name or gather.at:
        return None
    body = last.body[:-1]
    lets = tuple(each for each in body if isinstance(each, Let))
    after = tuple(each for each in rest if isinstance(each, Let | Store))
    plain = len(lets) == len(body) and all(each.kind != "auto" for each in lets)
    if not plain or len(after) != len(rest):
        return None
    long, terms = loop.extent * last.extent, 1
    for each in lines:
        terms *= each.extent
    if total.fold not in OPERATORS or total.exact or terms > _CHAIN:
        return None
    if last.extent > _WIDEST or not 8 <= long <= _LONGEST:
        return None
    made = [_along(each, loop.variable, last) for each in lets]
    value = _along(gather, loop.variable, last)
    texts = [text for each in (*made, value) for text in expressions(each)]
    if any(names(text) & {loop.variable, last.variable} for text in texts):
        return None
    if stored(after) & {pointer for text in texts for pointer, _ in loads(text)}:
        return None
    assert isinstance(value, Gather)
    return Pools(
        bins=loop, total=total, lines=tuple(lines), width=last.extent,
        body=tuple(each for each in made if isinstance(each, Let)), value=value.value,
        rest=after,
    )  # fmt: skip


def _along(each: Statement, bins: str, last: Loop) -> Statement:
    """Elements by their place in the whole line, where bins lie side by side."""

    def placed(text: str) -> str:
        for pointer, index in loads(text):
            if stride(index, last.variable) == 1 and stride(index, bins) == last.extent:
                others = [term for term in index_terms(index)
                          if not names(term) & {bins, last.variable}]  # fmt: skip
                text = text.replace(
                    f"{pointer}[{index}]", f"{pointer}[{' + '.join(['at', *others])}]"
                )
        return text

    return rewritten(each, placed)
