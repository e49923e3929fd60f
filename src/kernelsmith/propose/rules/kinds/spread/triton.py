"""A grid as Triton: a tile of rows by elements of the last group."""

from collections.abc import Sequence

from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.spread.graph import Grid, Spread, leaf_nodes
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

TILE = """\
rows, inner = {rows}, {inner}
block = min({tile}, triton.next_power_of_2(inner))
many = min({tile} // block, triton.next_power_of_2(rows))
grid = (triton.cdiv(rows, many) * triton.cdiv(inner, block),)"""
"""How a tile is laid out: along the last group first, then over several rows."""


class Offsets:
    """Offsets of leaves in Triton, and the whole numbers that they need from Python.

    ``lanes`` is the group that runs along the tile, ``at`` its positions; ``rows`` are the groups
    whose positions differ from row to row of the tile; all other groups' are single numbers.
    """

    def __init__(self, grid: Grid, *, lanes: int | None, rows: Sequence[int]) -> None:
        self.grid = grid
        self.lanes = lanes
        self.rows = set(rows)
        self.names = grid.names
        self.integers: dict[str, str] = {}
        self._made: set[str] = set()

    def integer(self, text: str) -> str:
        """The name of a whole number that Python gives."""
        return text if text == "1" else self.integers.setdefault(text, f"q{len(self.integers)}")

    def decoded(self, groups: Sequence[int], number: str) -> list[str]:
        """Lines that turn the number of a row into positions ``g0``, ``g1``, ..."""
        lines, rest = [], number
        for i, g in enumerate(reversed(groups)):
            length = self.integer(self.grid.length(g))
            last = i == len(groups) - 1
            lines.append(f"g{g} = {rest if last else f'({rest}) % {length}'}")
            rest = f"({rest}) // {length}"
        return lines

    def forget(self) -> None:
        """Numbers are read anew: another loop, other positions."""
        self._made.clear()

    def load(self, number: int, name: str, *, evict: str = "") -> list[str]:
        """Lines that load a leaf as float32."""
        lines, offset, masks = self.place(number)
        pointer = " + ".join([self.names[self.grid.leaves[number].text], *offset])
        mask = f", mask={' & '.join(masks)}, other=0.0{evict}" if masks else ""
        return [*lines, f"{name} = tl.load({pointer}{mask}).to(tl.float32)"]

    def place(self, number: int) -> tuple[list[str], list[str], list[str]]:
        """Lines that read numbers, summands of the offset, conditions."""
        lines, offset = [], []
        masks = dict.fromkeys(self._masks(number))
        for term in self.grid.terms(number):
            if term.index is None:
                position = "at" if term.group == self.lanes else f"g{term.group}"
                offset.append(self._times(position, term.stride))
                continue
            j = f"j{number}_{term.dim}"
            count = self.integer(self.grid.leaves[number].size(term.dim))
            if j not in self._made:
                self._made.add(j)
                lines += self._number(j, term.index)
                if term.wraps:
                    lines.append(f"{j} = tl.where({j} < 0, {j} + {count}, {j})")
            masks |= dict.fromkeys([f"({j} >= 0)", f"({j} < {count})"])
            offset.append(self._times(j, term.stride))
        return lines, offset, [*masks]

    def _number(self, name: str, index: int) -> list[str]:
        _, offset, masks = self.place(index)
        pointer = " + ".join([self.names[self.grid.leaves[index].text], *offset])
        mask = f", mask={' & '.join(masks)}, other=0" if masks else ""
        return [f"{name} = tl.load({pointer}{mask})"]

    def _masks(self, number: int) -> list[str]:
        made = []
        if any(self.grid.moves(number, g) for g in self.rows):
            made.append("there")
        if self.lanes is not None and self.grid.moves(number, self.lanes):
            made.append("within")
        return made

    def _times(self, what: str, stride: str) -> str:
        return what if stride == "1" else f"{what} * {self.integer(stride)}"


def render_triton(spread: Spread, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    kernel, launch = finished(spread, chosen, names=spread.grid.names, numbers=spread.numbers())
    made = f"out = {spread.grid.like}.new_empty({spread.shape()})"
    return Parts(
        kernel=triton_functions((*spread.before, *spread.nodes)) + kernel,
        fits=spread.grid.fits(DTYPES), setup=spread.grid.setup(),
        launch=(*spread.grid.dense(), made, *launch),
    )  # fmt: skip


def finished(
    spread: Spread, chosen: Parameters, *, names: dict[str, str], numbers: dict[str, str]
) -> tuple[str, list[str]]:
    """The kernel, and the lines that launch it and return ``out``."""
    inner = len(spread.grid.groups) - 1 if spread.across else spread.kept - 1
    outer = list(range(spread.kept if spread.across else spread.kept - 1))
    offsets = Offsets(spread.grid, lanes=inner, rows=outer)
    offsets.names = names
    head = [
        "row = tl.program_id(0).to(tl.int64) // strips * ROWS + tl.arange(0, ROWS)[:, None]",
        "there = row < rows",
        *offsets.decoded(outer, "row"),
    ]
    lanes = [
        "at = (tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)[None, :]).to(tl.int64)",
        "within = at < inner",
    ]
    if not spread.reduction:
        body = [*head, *lanes, *computed(offsets, spread.nodes, spread.output, numbers, chosen),
                "tl.store(out + row * inner + at, value, mask=there & within)"]  # fmt: skip
    elif spread.across:
        body = [*head, *_across(spread, offsets, numbers, chosen)]
    else:
        body = [*head, *lanes, *_down(spread, offsets, numbers, chosen)]
    lengths = [spread.grid.length(g) for g in range(len(spread.grid.groups))]
    whole = [lengths[g] for g in range(spread.kept, len(lengths)) if g != inner]
    sizes = ["rows", "inner", "count", "strips"]
    arguments = [*names.values(), "out", *sizes, *offsets.integers.values(), *numbers]
    passed = [*names.values(), "out", *sizes, *offsets.integers, *numbers.values()]
    kernel = ["@triton.jit",
              f"def spread({', '.join(arguments)}, ROWS: tl.constexpr, BLOCK: tl.constexpr):",
              *[f"    {line}" for line in body]]  # fmt: skip
    launch = TILE.format(
        rows=" * ".join(lengths[g] for g in outer) or "1", inner=lengths[inner],
        tile=chosen["tile"],
    ).splitlines()  # fmt: skip
    if spread.across:
        launch[-1] = "grid = (triton.cdiv(rows, many),)"
    strips = "1" if spread.across else "triton.cdiv(inner, block)"
    launch += [
        f"strips, count = {strips}, {' * '.join(whole) or '1'}",
        f"spread[grid]({', '.join(passed)}, ROWS=many, BLOCK=block, num_warps={chosen['warps']})",
        "return out",
    ]
    return "\n".join(kernel), launch


def computed(
    offsets: Offsets, nodes: Sequence[Node], output: int, numbers: dict[str, str],
    chosen: Parameters, reduced: str = "", result: str = "value",
) -> list[str]:  # fmt: skip
    """Lines that load what some nodes need and compute them."""
    names = {text: name for name, text in numbers.items()}
    given = {i: names[n.text] for i, n in enumerate(nodes) if n.kind is Kind.NUMBER}
    given |= {i: reduced for i, n in enumerate(nodes) if n.text == "<reduced>"}
    prefix = "w" if reduced else "v"
    evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
    lines = []
    for node, leaf in leaf_nodes(nodes).items():
        given[node] = f"{prefix}{node}"
        lines += offsets.load(leaf, given[node], evict=evict)
    texts = Texts(nodes, given, cpp=False)
    return [*lines, *texts.lines([output]), f"{result} = {texts.name(output)}"]


def _down(
    spread: Spread, offsets: Offsets, numbers: dict[str, str], chosen: Parameters
) -> list[str]:
    """Lanes along the output; what is reduced is walked through."""
    reduced = list(range(spread.kept, len(spread.grid.groups)))
    inside = computed(offsets, spread.before, spread.reduced, numbers, chosen)
    offsets.forget()
    after = computed(offsets, spread.nodes, spread.output, numbers, chosen, "made", "result")
    total = spread.reduction in ("sum", "mean")
    worst = {"max": 'float("-inf")', "min": 'float("inf")'}.get(spread.reduction, "0.0")
    if total:
        loop = [
            "for start in range(0, count, 64):  # no chain of additions is longer",
            "    part = tl.zeros([ROWS, BLOCK], tl.float32)",
            "    for r in range(start, tl.minimum(start + 64, count)):",
            *[f"        {line}" for line in offsets.decoded(reduced, "r")],
            *[f"        {line}" for line in inside],
            "        part += value",
            "    made += part",
        ]
    else:
        step = f"tl.{spread.reduction}imum(made, value, tl.PropagateNan.ALL)"
        loop = [
            "for r in range(count):",
            *[f"    {line}" for line in offsets.decoded(reduced, "r")],
            *[f"    {line}" for line in inside],
            f"    made = {step}",
        ]
    return [
        f"made = tl.full([ROWS, BLOCK], {worst}, tl.float32)",
        *loop,
        *(["made = made / count"] if spread.reduction == "mean" else []),
        *after,
        "tl.store(out + row * inner + at, result, mask=there & within)",
    ]


def _across(
    spread: Spread, offsets: Offsets, numbers: dict[str, str], chosen: Parameters
) -> list[str]:
    """Lanes along what is reduced."""
    reduced = list(range(spread.kept, len(spread.grid.groups) - 1))
    inside = computed(offsets, spread.before, spread.reduced, numbers, chosen)
    end = Offsets(spread.grid, lanes=None, rows=range(spread.kept))
    end.integers = offsets.integers
    after = computed(end, spread.nodes, spread.output, numbers, chosen, "made", "result")
    total = spread.reduction in ("sum", "mean")
    worst = {"max": 'float("-inf")', "min": 'float("inf")'}.get(spread.reduction, "0.0")
    step = (
        "kept += tl.where(there & within, value, 0.0)"
        if total
        else f"kept = tl.{spread.reduction}imum(kept, tl.where(there & within, value, {worst}), "
        "tl.PropagateNan.ALL)"
    )
    if total:
        made = ["made = tl.sum(kept, axis=1, keep_dims=True)"]
    else:
        made = [
            "odd = tl.max(tl.where(kept != kept, 1, 0), axis=1, keep_dims=True)",
            f"made = tl.{spread.reduction}(tl.where(kept != kept, {worst}, kept), axis=1, "
            "keep_dims=True)",
            'made = tl.where(odd > 0, float("nan"), made)',
        ]
    return [
        f"kept = tl.full([ROWS, BLOCK], {worst}, tl.float32)",
        "for r in range(count):",
        *[f"    {line}" for line in offsets.decoded(reduced, "r")],
        "    for start in range(0, inner, BLOCK):",
        "        at = (start + tl.arange(0, BLOCK)[None, :]).to(tl.int64)",
        "        within = at < inner",
        *[f"        {line}" for line in inside],
        f"        {step}",
        *made,
        *(["made = made / (count * inner)"] if spread.reduction == "mean" else []),
        *after,
        "tl.store(out + row, result, mask=there)",
    ]
