"""Columns as Triton: a program takes a strip of columns and goes along them in steps."""

from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.columns.graph import Columns
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.plan import Sweep, onlines, plan
from kernelsmith.propose.rules.space import Parameters
from kernelsmith.propose.rules.triton_source import or_zero

_START = {"sum": "0.0", "prod": "1.0", "max": 'float("-inf")', "min": 'float("inf")'}
_JOIN = {"sum": "{0} + {1}", "prod": "{0} * {1}", "max": "larger({0}, {1})",
         "min": "smaller({0}, {1})"}  # fmt: skip
_ACROSS = {
    "sum": "tl.sum({0}, axis=0, keep_dims=True)",
    "prod": "tl.reduce({0}, 0, times, keep_dims=True)",
    "max": "tl.reduce({0}, 0, larger, keep_dims=True)",
    "min": "tl.reduce({0}, 0, smaller, keep_dims=True)",
}
_FUNCTIONS = {
    "prod": "@triton.jit\ndef times(a, b):\n    return a * b\n\n\n",
    "max": "@triton.jit\ndef larger(a, b):\n"
    "    return tl.maximum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch\n\n\n",
    "min": "@triton.jit\ndef smaller(a, b):\n"
    "    return tl.minimum(a, b, tl.PropagateNan.ALL)  # NaN wins, as in torch\n\n\n",
}


def render_triton(columns: Columns, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    ops = {columns.nodes[n].op for n in columns.graph.of(Kind.REDUCE)}
    text = triton_functions(columns.nodes)
    text += "".join(each for op, each in _FUNCTIONS.items() if op in ops)
    kernels = [_kernel(columns, chosen, looped=True)]
    if "whole" in chosen:
        kernels.append(_kernel(columns, chosen, looped=False))
    given = ", ".join([*columns.names().values(), "out", "length", "inner", "strips",
                       *columns.of(Kind.NUMBER).values()])  # fmt: skip
    tail = f"BLOCK={chosen['block']}, num_warps={chosen['warps']}"
    strips = [f"strips = triton.cdiv(inner, {chosen['block']})", "grid = (outer * strips,)"]
    run = f"looped[grid]({given}, STEPS={chosen['steps']}, {tail})"
    if "whole" in chosen:
        strips += [
            "steps = triton.next_power_of_2(length)",
            f"if steps * {chosen['block']} <= {chosen['whole']}:",
            f"    whole[grid]({given}, STEPS=steps, {tail})",
            "else:",
            f"    {run}",
        ]
    else:
        strips.append(run)
    return Parts(
        kernel=text + "\n\n\n".join(kernels), fits=columns.fits(DTYPES),
        setup=columns.around.setup(), launch=(*columns.prepared(), *strips, "return out"),
    )  # fmt: skip


def _kernel(columns: Columns, chosen: Parameters, *, looped: bool) -> str:
    arguments = [*columns.names().values(), "out", "length", "inner", "strips"]
    arguments += [f"s{n}" for n in columns.of(Kind.NUMBER)]
    arguments += ["STEPS: tl.constexpr", "BLOCK: tl.constexpr"]
    lines = [
        "number = tl.program_id(0).to(tl.int64)",
        "first = number // strips * length * inner",
        "column = number % strips * BLOCK + tl.arange(0, BLOCK)[None, :]",
    ]
    lines += _Body(columns, chosen, looped=looped).lines()
    name = "looped" if looped else "whole"
    head = ["@triton.jit", f"def {name}({', '.join(arguments)}):"]
    return "\n".join([*head, *[f"    {line}" for line in lines]])


class _Body:
    def __init__(self, columns: Columns, chosen: Parameters, *, looped: bool) -> None:
        self._columns = columns
        self._shifts = {pair.maximum for pair in onlines(columns.graph)}
        self._nodes = columns.nodes
        self._looped = looped
        online = looped and chosen.get("passes") == "online"
        self._plan = plan(columns.graph, keep=False, online=online)
        self._evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
        stages = f", num_stages={chosen['stages']}" if chosen["stages"] != "1" else ""
        self._loop = f"for step in tl.range(0, length, STEPS{stages}):"
        self._have: dict[int, str] = {n: f"s{n}" for n in columns.of(Kind.NUMBER)}
        self._have |= {n: "tl.cast(length, tl.float32)" for n in columns.of(Kind.COUNT)}
        self._texts = Texts(self._nodes, self._have, cpp=False)

    def lines(self) -> list[str]:
        columns = self._columns
        lines = [
            f"v{n} = tl.load(p{n}).to(tl.float32)" for n in columns.of(Kind.PARAMETER)
            if self._nodes[n].shape is Shape.SCALAR
        ]  # fmt: skip
        self._have |= {n: f"v{n}" for n in columns.of(Kind.PARAMETER)
                       if self._nodes[n].shape is Shape.SCALAR}  # fmt: skip
        if not self._looped:
            self._texts = Texts(self._nodes, self._have, cpp=False)
            lines += ["step = 0", *self._loads()]
        for sweep in self._plan.sweeps:
            lines += self._stepped(sweep) if self._looped else self._at_once(sweep)
        if columns.graph.result.shape is not Shape.FULL:
            if self._looped:
                self._texts = Texts(self._nodes, self._have, cpp=False)
            lines += self._texts.lines([columns.graph.output])
            value = self._texts.name(columns.graph.output)
            lines.append(
                f"tl.store(out + number // strips * inner + column, {value}, mask=column < inner)"
            )
        return lines

    def _across(self, n: int, value: str) -> str:
        """One value per column; a shift of exponentials need not be NaN, their sum will be."""
        if n in self._shifts:
            return f"tl.max({value}, axis=0, keep_dims=True)"
        return _ACROSS[self._nodes[n].op].format(value)

    def _loads(self) -> list[str]:
        columns = self._columns
        lines = ["at = (step + tl.arange(0, STEPS)[:, None]).to(tl.int64)",
                 "inside = (at < length) & (column < inner)"]  # fmt: skip
        for n, name in columns.names().items():
            if self._nodes[n].shape is Shape.SCALAR:
                continue
            place, mask = "first + at * inner + column", f"inside, other=0.0{self._evict}"
            if n in columns.of(Kind.PARAMETER):
                place, mask = "at", "at < length, other=0.0"
            lines.append(f"v{n} = tl.load({name} + {place}, mask={mask}).to(tl.float32)")
            self._texts.given[n] = f"v{n}"
        return lines

    def _at_once(self, sweep: Sweep) -> list[str]:
        """The strip is in registers."""
        lines = []
        for n in sweep.reduces:
            lines += self._texts.lines([self._nodes[n].args[0]])
            op, value = self._nodes[n].op, self._texts.name(self._nodes[n].args[0])
            value = f"tl.where(inside, {value}, {_START[op]})"
            lines.append(f"r{n} = {self._across(n, value)}")
            self._texts.given[n] = f"r{n}"
        if sweep.writes:
            lines += [*self._texts.lines([self._columns.graph.output]), self._store()]
        return lines

    def _store(self) -> str:
        value = self._texts.name(self._columns.graph.output)
        return f"tl.store(out + first + at * inner + column, {value}, mask=inside)"

    def _stepped(self, sweep: Sweep) -> list[str]:
        columns, nodes = self._columns, self._nodes
        self._texts = Texts(nodes, self._have, cpp=False)
        found = columns.hoisted(columns.needed(sweep), set(self._have))
        lines = self._texts.lines(found)
        self._have |= {n: self._texts.name(n) for n in found}
        for n in sweep.reduces:
            lines.append(f"a{n} = tl.full([STEPS, BLOCK], {_START[nodes[n].op]}, tl.float32)")
        for pair in sweep.online:
            lines.append(f"m{pair.total} = tl.full([STEPS, BLOCK], -3.4028234e38, tl.float32)")
            lines.append(f"a{pair.total} = tl.zeros([STEPS, BLOCK], tl.float32)")
        self._texts = Texts(nodes, self._have, cpp=False)
        inside = self._loads()
        inside += self._texts.lines(columns.needed(sweep))
        for n in sweep.reduces:
            op = nodes[n].op
            value = f"tl.where(inside, {self._texts.name(nodes[n].args[0])}, {_START[op]})"
            inside.append(f"a{n} = {_JOIN[op].format(f'a{n}', value)}")
        for pair in sweep.online:
            m, a, t, e = (f"{each}{pair.total}" for each in "mate")
            inside += [
                f'{t} = tl.where(inside, {self._texts.name(pair.over)}, float("-inf"))',
                f"{e} = tl.exp(tl.where({t} == {m}, 0.0, -tl.abs({t} - {m})))",
                f"{a} = tl.where({t} > {m}, {a} * {e} + 1.0, {a} + {e})",
                f"{m} = tl.where({t} > {m}, {t}, {m})",
            ]
        if sweep.writes:
            inside.append(self._store())
        lines += [self._loop, *[f"    {line}" for line in inside]]
        for n in sweep.reduces:
            lines.append(f"r{n} = {self._across(n, f'a{n}')}")
            self._have[n] = f"r{n}"
        for pair in sweep.online:
            m, a, r = f"m{pair.total}", f"a{pair.total}", f"r{pair.maximum}"
            lines.append(f"{r} = tl.max({m}, axis=0, keep_dims=True)")
            shift = or_zero(r) if pair.unshifted else r
            lines.append(
                f"r{pair.total} = tl.sum({a} * tl.exp({m} - {shift}), axis=0, keep_dims=True)"
            )
            self._have |= {pair.maximum: f"r{pair.maximum}", pair.total: f"r{pair.total}"}
        return lines
