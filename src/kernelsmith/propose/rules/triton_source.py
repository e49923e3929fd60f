"""A graph as Triton: one program per stretch or group of rows, long rows in steps."""

from collections.abc import Mapping

from kernelsmith.propose.rules.graph import Graph, Kind, Shape
from kernelsmith.propose.rules.names import pointers
from kernelsmith.propose.rules.plan import Plan, Sweep, computed, onlines, plan, roots

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">",
          "ge": ">="}  # fmt: skip
_CALLS = {
    "neg": "-{0}", "abs": "tl.abs({0})", "exp": "tl.exp({0})", "log": "tl.log({0})",
    "log1p": "log1p({0})", "sqrt": "tl.sqrt({0})", "rsqrt": "tl.rsqrt({0})",
    "reciprocal": "1.0 / {0}", "tanh": "tanh({0})", "erf": "tl.erf({0})",
    "sigmoid": "1.0 / (1.0 + tl.exp(-{0}))", "sin": "tl.sin({0})", "cos": "tl.cos({0})",
    "floor": "tl.floor({0})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, 0.0))",
    "or_zero": "tl.where(tl.abs({0}) == float('inf'), 0.0, {0})",
}  # fmt: skip
_TANH = """\
@triton.jit
def tanh(x):
    z = x * x  # odd polynomial near 0, where the other form cancels
    p = 2.1475370e-3 * z - 8.1826737e-3
    p = ((p * z + 2.1702968e-2) * z - 5.3947203e-2) * z + 1.3333210e-1
    near = x + x * z * (p * z - 3.3333331e-1)
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0, -far, far))


"""
_LOG1P = """\
@triton.jit
def log1p(x):
    u = 1.0 + x  # log(u) + what 1 + x lost in rounding, over u
    lost = tl.where(u > 0.0, (x - (u - 1.0)) / u, 0.0)
    return tl.where(u < float("inf"), tl.log(u) + lost, x)


"""
WORST = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}
_PICK = {"sum": "{0} + {1}", "max": "tl.maximum({0}, {1}, tl.PropagateNan.ALL)",
         "min": "tl.minimum({0}, {1}, tl.PropagateNan.ALL)"}  # fmt: skip
_ACROSS = {"sum": "tl.sum({0}, axis=1, keep_dims=True)",
           "max": "tl.reduce({0}, 1, larger, keep_dims=True)",
           "min": "tl.reduce({0}, 1, smaller, keep_dims=True)"}  # fmt: skip
_EXTREMES = {
    "max": "@triton.jit\ndef larger(a, b):\n"
    "    return tl.maximum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch\n\n\n",
    "min": "@triton.jit\ndef smaller(a, b):\n"
    "    return tl.minimum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch\n\n\n",
}
_REGISTERS = 16384
"""Elements that one program may hold at a time."""


def or_zero(name: str) -> str:
    """A maximum that is taken off, unless it is infinite."""
    return _CALLS["or_zero"].format(name)


class TritonSource:
    """Writes the kernels of one graph, and the lines that launch them."""

    def __init__(self, graph: Graph, parameters: Mapping[str, str]) -> None:
        self.graph = graph
        self.parameters = parameters
        self.plan: Plan = plan(graph, keep=False, online=parameters.get("passes") == "online")
        self.whole: Plan = plan(graph, keep=False, online=False)
        self.pointers = pointers(graph)
        self.numbers = graph.of(Kind.NUMBER)
        self.totals = graph.of(Kind.TOTAL)
        self._done: set[int] = set()
        # What no number makes of exp(x - max) is none either: there the maximum need not be.
        self._shifts = {pair.maximum for pair in onlines(graph)}

    def text(self) -> str:
        """All kernels."""
        ops = self.graph.ops()
        parts = (_TANH if "tanh" in ops else "") + (_LOG1P if "log1p" in ops else "")
        reduced = {self.graph.nodes[n].op for n in self._strict()}
        parts += "".join(each for op, each in _EXTREMES.items() if op in reduced)
        if self.graph.has_rows:
            parts += self._rows(looped=False) + "\n\n" + self._rows(looped=True)
        else:
            parts += self._flat()
        return parts + ("\n\n" + self._finish() if self.totals else "")

    def _strict(self) -> list[int]:
        """Reductions that must be no number where anything is."""
        return [n for n in self.graph.of(Kind.REDUCE) if n not in self._shifts]

    def across(self, n: int, value: str) -> str:
        """A reduction along the last of two dimensions."""
        op = self.graph.nodes[n].op
        if n in self._shifts:
            return f"tl.{op}({value}, axis=1, keep_dims=True)"
        return _ACROSS[op].format(value)

    def _signature(self, name: str, *constants: str) -> list[str]:
        out = "partial" if self.totals else "out"
        arguments = [*self.pointers.values(), out, "rows", "dim"]
        arguments += [f"s{n}" for n in self.numbers]
        arguments += [f"{each}: tl.constexpr" for each in constants]
        return ["@triton.jit", f"def {name}({', '.join(arguments)}):"]

    def _flat(self) -> str:
        lines = self._signature("flat", "BLOCK")
        lines += [
            "    size = tl.cast(rows, tl.int64) * dim",
            "    first = tl.program_id(0).to(tl.int64)",
            *[f"    total{n} = tl.zeros([BLOCK], tl.float32)" for n in self.totals],
            "    for tile in range(first, tl.cdiv(size, BLOCK), tl.num_programs(0)):",
            "        at = tile * BLOCK + tl.arange(0, BLOCK)",
            "        inside = at < size",
        ]
        self._done = set()
        needed = [self.graph.nodes[self.graph.nodes[n].args[0]].args[0] for n in self.totals]
        needed = needed or [self.graph.output]
        lines += [f"        {line}" for line in self._values(needed, flat=True)]
        if not self.totals:
            lines.append(
                f"        tl.store(out + at, {self._name(self.graph.output)}, mask=inside)"
            )
        for n, value in zip(self.totals, needed, strict=False):
            lines.append(f"        total{n} += tl.where(inside, {self._name(value)}, 0.0)")
        return "\n".join(lines + self._partials("axis=0"))

    def _partials(self, how: str) -> list[str]:
        count = len(self.totals)
        return [
            f"    tl.store(partial + first * {count} + {i}, tl.sum(total{n}, {how}))"
            for i, n in enumerate(self.totals)
        ]

    def _rows(self, *, looped: bool) -> str:
        lines = self._signature("looped" if looped else "whole", "ROWS", "BLOCK")
        lines += [
            "    first = tl.program_id(0).to(tl.int64)",
            *[f"    total{n} = tl.zeros([ROWS, 1], tl.float32)" for n in self.totals],
            "    for tile in range(first, tl.cdiv(rows, ROWS), tl.num_programs(0)):",
            "        at_row = tile * ROWS + tl.arange(0, ROWS).to(tl.int64)[:, None]",
            "        there = at_row < rows",
        ]
        self._done = set()
        body = self._looped() if looped else self._whole()
        result = self.graph.result
        if result.shape in (Shape.ROW, Shape.SQUEEZED):
            body += self._values([self.graph.output])
            body.append(f"tl.store(out + at_row, {self._name(self.graph.output)}, mask=there)")
        for n in self.totals:
            value = self.graph.nodes[n].args[0]
            body += self._values([value])
            body.append(f"total{n} += tl.where(there, {self._name(value)}, 0.0)")
        lines += [f"        {line}" for line in body]
        # Summed over both axes: a number, not a block of one.
        return "\n".join(lines + self._partials("axis=None"))

    def _whole(self) -> list[str]:
        """The row in registers: everything is loaded and computed once."""
        lines = ["at = tl.arange(0, BLOCK)[None, :]", "inside = there & (at < dim)"]
        for sweep in self.whole.sweeps:
            for n in sweep.reduces:
                node = self.graph.nodes[n]
                lines += self._values([node.args[0]])
                value = f"tl.where(inside, {self._name(node.args[0])}, {WORST[node.op]})"
                lines.append(f"r{n} = {self.across(n, value)}")
                self._done.add(n)
            if sweep.writes:
                lines += self._values([self.graph.output])
                lines.append(self._store())
        return lines

    def _store(self) -> str:
        value = self._name(self.graph.output)
        return f"tl.store(out + at_row * dim + at, {value}, mask=inside)"

    def _looped(self) -> list[str]:
        """A long row in steps, once per sweep."""
        return [line for sweep in self.plan.sweeps for line in self.swept(sweep)]

    def swept(self, sweep: Sweep, begin: str = "0", end: str = "dim") -> list[str]:
        """Lines of one sweep over a part of the row, and of what it needs of the row itself."""
        values = computed(self.graph, roots(self.graph, sweep), frozenset())
        outer = [a for n in values for a in self.graph.nodes[n].args if not self._wide(a)]
        return [*self._values(outer), *self._sweep(sweep, begin, end)]

    def _sweep(self, sweep: Sweep, begin: str, end: str) -> list[str]:
        lines = [
            f"a{n} = tl.full([ROWS, BLOCK], {WORST[self.graph.nodes[n].op]}, tl.float32)"
            for n in sweep.reduces
        ]
        for pair in sweep.online:
            lines.append(f"m{pair.total} = tl.full([ROWS, BLOCK], -3.4028234e38, tl.float32)")
            lines.append(f"a{pair.total} = tl.zeros([ROWS, BLOCK], tl.float32)")
        inner = ["at = start + tl.arange(0, BLOCK)[None, :]", f"inside = there & (at < {end})"]
        before = set(self._done)
        inner += self._values(roots(self.graph, sweep))
        for n in sweep.reduces:
            node = self.graph.nodes[n]
            value = f"tl.where(inside, {self._name(node.args[0])}, {WORST[node.op]})"
            inner.append(f"a{n} = {_PICK[node.op].format(f'a{n}', value)}")
        for pair in sweep.online:
            m, a, t = f"m{pair.total}", f"a{pair.total}", f"t{pair.total}"
            inner += [
                f'{t} = tl.where(inside, {self._name(pair.over)}, float("-inf"))',
                f"e{pair.total} = tl.exp(tl.where({t} == {m}, 0.0, -tl.abs({t} - {m})))",
                f"{a} = tl.where({t} > {m}, {a} * e{pair.total} + 1.0, {a} + e{pair.total})",
                f"{m} = tl.where({t} > {m}, {t}, {m})",
            ]
        if sweep.writes:
            inner.append(self._store())
        self._done = before
        lines.append(f"for start in range({begin}, {end}, BLOCK):")
        lines += [f"    {line}" for line in inner]
        for n in sweep.reduces:
            lines.append(f"r{n} = {self.across(n, f'a{n}')}")
        for pair in sweep.online:
            m, a, r = f"m{pair.total}", f"a{pair.total}", f"r{pair.maximum}"
            lines.append(f"{r} = tl.max({m}, axis=1, keep_dims=True)")
            shift = or_zero(r) if pair.unshifted else r
            lines.append(
                f"r{pair.total} = tl.sum({a} * tl.exp({m} - {shift}), axis=1, keep_dims=True)"
            )
        self._done |= set(sweep.targets) | {pair.maximum for pair in sweep.online}
        return lines

    def _wide(self, n: int) -> bool:
        return self.graph.nodes[n].shape in (Shape.FULL, Shape.COLUMN)

    def _name(self, n: int) -> str:
        node = self.graph.nodes[n]
        if node.kind is Kind.CONSTANT:
            return f"float('{node.value}')" if abs(node.value) == float("inf") else repr(node.value)
        if node.kind is Kind.NUMBER:
            return f"s{n}"
        if node.kind is Kind.COUNT:
            return f"tl.cast({node.text}, tl.float32)"
        if node.kind is Kind.VIEW:
            return self._name(node.args[0])
        return f"v{n}" if self._wide(n) else f"r{n}"

    def _values(self, wanted: list[int], *, flat: bool = False) -> list[str]:
        """Lines for these and all that they need, each value once."""
        lines: list[str] = []
        for n in wanted:
            node = self.graph.nodes[n]
            leaf = node.kind in (Kind.CONSTANT, Kind.NUMBER, Kind.COUNT)
            if leaf or n in self._done or node.kind is Kind.REDUCE:
                continue
            lines += self._values(list(node.args), flat=flat)
            self._done.add(n)
            if node.kind is not Kind.VIEW:
                lines.append(f"{self._name(n)} = {self._value(n, flat)}")
        return lines

    def _value(self, n: int, flat: bool) -> str:
        node = self.graph.nodes[n]
        if node.kind in (Kind.INPUT, Kind.PARAMETER):
            return self._load(n, flat)
        args = [self._name(each) for each in node.args]
        if node.kind is Kind.SELECT:
            return f"tl.where({args[0]}, {args[1]}, {args[2]})"
        if node.kind is Kind.BINARY:
            if node.op in _INFIX:
                return f"{args[0]} {_INFIX[node.op]} {args[1]}"
            return _PICK[node.op].format(*args)
        return _CALLS[node.op].format(args[0])

    def _load(self, n: int, flat: bool) -> str:
        pointer, shape = self.pointers[n], self.graph.nodes[n].shape
        evict = ""
        if self.parameters["evict"] == "first" and shape is Shape.FULL:
            evict = ', eviction_policy="evict_first"'
        place, mask = {
            Shape.FULL: ("at" if flat else "at_row * dim + at", "inside"),
            Shape.COLUMN: ("at", "at < dim"),
            Shape.ROW: ("at_row", "there"),
            Shape.SQUEEZED: ("at_row", "there"),
            Shape.SCALAR: ("", ""),
        }[shape]
        if not place:
            return f"tl.load({pointer}).to(tl.float32)"
        return f"tl.load({pointer} + {place}, mask={mask}, other=0.0{evict}).to(tl.float32)"

    def _finish(self) -> str:
        """One program adds up what the others left."""
        numbers = "".join(f", s{n}" for n in self.numbers)
        lines = [
            "@triton.jit",
            f"def finish(partial, out, rows, dim, count{numbers}, BLOCK: tl.constexpr):",
        ]
        for n in self.totals:
            lines.append(f"    total{n} = tl.zeros([BLOCK], tl.float32)")
        lines.append("    for start in range(0, count, BLOCK):")
        lines.append("        at = start + tl.arange(0, BLOCK)")
        for i, n in enumerate(self.totals):
            place = f"partial + at * {len(self.totals)} + {i}"
            lines.append(f"        total{n} += tl.load({place}, mask=at < count, other=0.0)")
        self._done = set(self.totals)
        lines += [f"    r{n} = tl.sum(total{n}, axis=0)" for n in self.totals]
        lines += [f"    {line}" for line in self._values([self.graph.output])]
        return "\n".join([*lines, f"    tl.store(out, {self._name(self.graph.output)})"])

    def _like(self) -> int:
        return next(n for n in self.pointers if self.graph.nodes[n].text == self.graph.shaped_like)

    def launch(self) -> list[str]:
        """Python that launches the kernels and returns the output."""
        p, like = self.parameters, self.pointers[self._like()]
        tensors = list(self.pointers.values())
        numbers = [self.graph.nodes[n].text for n in self.numbers]
        target = "partial" if self.totals else "out"
        given = ", ".join([*tensors, target, "rows", "dim", *numbers])
        limit = f"min({p['programs']}, tiles)" if p["programs"] != "0" else "tiles"
        lines = [] if self.totals else ["if not out.numel():", "    return out"]
        if not self.graph.has_rows:
            lines.append(f"tiles = triton.cdiv(rows * dim, {p['block']})")
        else:
            lines += [
                f"short = dim <= {p['whole']}",
                f"block = triton.next_power_of_2(max(dim, 1)) if short else {p['block']}",
                f"tile = max(1, min({p['rows']}, {_REGISTERS} // block))",
                "tiles = triton.cdiv(rows, tile)",
            ]
        lines.append(f"programs = max(1, {limit})")
        if self.totals:
            lines.append(
                f"partial = torch.empty(programs * {len(self.totals)}, "
                f"dtype=torch.float32, device={like}.device)"
            )
        if not self.graph.has_rows:
            lines.append(f"flat[(programs,)]({given}, BLOCK={p['block']}, num_warps={p['warps']})")
        else:
            lines.append("kernel = whole if short else looped")
            lines.append(
                f"kernel[(programs,)]({given}, ROWS=tile, BLOCK=block, num_warps={p['warps']})"
            )
        if self.totals:
            numbers_text = "".join(f", {each}" for each in numbers)
            lines.append(
                f"finish[(1,)](partial, out, rows, dim, programs{numbers_text}, BLOCK=1024)"
            )
        return [*lines, "return out"]
