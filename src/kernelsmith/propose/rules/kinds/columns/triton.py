"""Columns as Triton: a program takes a strip of columns and goes along them in steps."""

from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.columns import split
from kernelsmith.propose.rules.kinds.columns.graph import Columns
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.plan import Sweep, onlines, plan
from kernelsmith.propose.rules.space import Parameters
from kernelsmith.propose.rules.triton_source import or_zero

_STRIP = (
    "number = tl.program_id(0).to(tl.int64)",
    "column = (number % strips * BLOCK).to(tl.int32) + tl.arange(0, BLOCK)[None, :]",
)
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
    parted = chosen.get("split", "none") != "none"
    if parted:
        kernels += [_kernel(columns, chosen, looped=True, parted=True), _joined(columns, chosen)]
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
    elif parted:
        strips += split.launch(columns, chosen, run)
    else:
        strips.append(run)
    most = max(int(chosen["steps"]), int(chosen.get("whole", "0")) // int(chosen["block"]))
    small = f"{columns.around.like}.shape[axis + 1 :].numel() * {most} < 2**31"
    return Parts(
        kernel=text + "\n\n\n".join(kernels), fits=(*columns.fits(DTYPES), small),
        setup=columns.around.setup(), launch=(*columns.prepared(), *strips, "return out"),
    )  # fmt: skip


def _kernel(
    columns: Columns, chosen: Parameters, *, looped: bool, parted: bool = False
) -> str:  # fmt: skip
    arguments = [*columns.names().values(), *(split.KEPT if parted else ("out",))]
    arguments += ["length", "inner", "strips"]
    arguments += [f"s{n}" for n in columns.of(Kind.NUMBER)]
    arguments += ["STEPS: tl.constexpr", "BLOCK: tl.constexpr"]
    lines = [*_STRIP, "first = number // strips * length * inner"]
    lines.append("spot = tl.arange(0, STEPS)[:, None] * inner + column  # the same in every step")
    lines += split.BOUNDS if parted else ()
    lines += _Body(columns, chosen, looped=looped, parted=parted).lines()
    name = "parted" if parted else "looped" if looped else "whole"
    return _function(name, arguments, lines)


def _joined(columns: Columns, chosen: Parameters) -> str:
    arguments = [f"p{n}" for n in columns.scalars()] + ["kept", "size", "parts", "out"]
    arguments += ["length", "inner", "strips"]
    arguments += [f"s{n}" for n in columns.of(Kind.NUMBER)]
    arguments += ["PARTS: tl.constexpr", "BLOCK: tl.constexpr"]
    return _function("joined", arguments, [*_STRIP, *_Body(columns, chosen, looped=True).joined()])


def _function(name: str, arguments: list[str], lines: list[str]) -> str:
    head = ["@triton.jit", f"def {name}({', '.join(arguments)}):"]
    return "\n".join([*head, *[f"    {line}" for line in lines]])


class _Body:
    def __init__(
        self, columns: Columns, chosen: Parameters, *, looped: bool, parted: bool = False
    ) -> None:
        self._columns, self._parted = columns, parted
        self._begin, self._end = ("begin", "end") if parted else ("0", "length")
        self._shifts = {pair.maximum for pair in onlines(columns.graph)}
        self._nodes = columns.nodes
        self._looped = looped
        online = looped and chosen.get("passes") == "online"
        self._plan = plan(columns.graph, keep=False, online=online)
        self._evict = ', eviction_policy="evict_first"' if chosen["evict"] == "first" else ""
        stages = f", num_stages={chosen['stages']}" if chosen["stages"] != "1" else ""
        self._loop = f"for step in tl.range({self._begin}, full, STEPS{stages}):"
        self._have: dict[int, str] = {n: f"s{n}" for n in columns.of(Kind.NUMBER)}
        self._have |= {n: "tl.cast(length, tl.float32)" for n in columns.of(Kind.COUNT)}
        self._texts = Texts(self._nodes, self._have, cpp=False)

    def lines(self) -> list[str]:
        columns = self._columns
        lines = self._scalars()
        if not self._looped:
            self._texts = Texts(self._nodes, self._have, cpp=False)
            lines += ["step = 0", *self._loads()]
        for sweep in self._plan.sweeps:
            lines += self._stepped(sweep) if self._looped else self._at_once(sweep)
        if self._parted:
            lines += split.stores(self._plan.sweeps[0])
        elif columns.graph.result.shape is not Shape.FULL:
            lines += self._reduced()
        return lines

    def joined(self) -> list[str]:
        """Parts of a column that others have found, put together."""
        lines, (sweep,) = self._scalars(), self._plan.sweeps
        lines += split.loads(sweep, {n: _START[self._nodes[n].op] for n in sweep.reduces})
        for n in sweep.reduces:
            lines.append(f"r{n} = {self._across(n, f'a{n}')}")
            self._have[n] = f"r{n}"
        return lines + self._reduced()

    def _scalars(self) -> list[str]:
        scalars = self._columns.scalars()
        self._have |= {n: f"v{n}" for n in scalars}
        return [f"v{n} = tl.load(p{n}).to(tl.float32)" for n in scalars]

    def _reduced(self) -> list[str]:
        """What follows from reductions, one value per column, to its place."""
        if self._looped:
            self._texts = Texts(self._nodes, self._have, cpp=False)
        lines = self._texts.lines([self._columns.graph.output])
        value = self._texts.name(self._columns.graph.output)
        place = "out + number // strips * inner + column"
        return [*lines, f"tl.store({place}, {value}, mask=column < inner)"]

    def _across(self, n: int, value: str) -> str:
        """One value per column; a shift of exponentials need not be NaN, their sum will be."""
        if n in self._shifts:
            return f"tl.max({value}, axis=0, keep_dims=True)"
        return _ACROSS[self._nodes[n].op].format(value)

    def _loads(self, *, whole: bool = False) -> list[str]:
        """What a step reads; a whole one has all its rows, and columns beyond the last are lost."""
        columns = self._columns
        lines = [
            "at = step + tl.arange(0, STEPS)[:, None]",
            f"inside = {'' if whole else f'(at < {self._end}) & '}(column < inner)",
            "here = first + tl.cast(step, tl.int64) * inner",
        ]
        for n, name in columns.names().items():
            if self._nodes[n].shape is Shape.SCALAR:
                continue
            given = f"here + spot, mask=inside, other=0.0{self._evict}"
            if n in columns.of(Kind.PARAMETER):
                given = "at" if whole else "at, mask=at < length, other=0.0"
            lines.append(f"v{n} = tl.load({name} + {given}).to(tl.float32)")
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
        return f"tl.store(out + here + spot, {value}, mask=inside)"

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
        lines.append(f"full = {self._begin} + ({self._end} - {self._begin}) // STEPS * STEPS")
        lines += [self._loop, *[f"    {line}" for line in self._step(sweep, whole=True)]]
        rest = ["step = full", *self._step(sweep, whole=False)]
        lines += [f"if full < {self._end}:", *[f"    {line}" for line in rest]]
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

    def _step(self, sweep: Sweep, *, whole: bool) -> list[str]:
        columns, nodes = self._columns, self._nodes
        self._texts = Texts(nodes, self._have, cpp=False)

        def only(value: str, start: str) -> str:
            return value if whole else f"tl.where(inside, {value}, {start})"

        lines = [*self._loads(whole=whole), *self._texts.lines(columns.needed(sweep))]
        for n in sweep.reduces:
            op = nodes[n].op
            value = only(self._texts.name(nodes[n].args[0]), _START[op])
            lines.append(f"a{n} = {_JOIN[op].format(f'a{n}', value)}")
        for pair in sweep.online:
            m, a, t, e = (f"{each}{pair.total}" for each in "mate")
            value = only(self._texts.name(pair.over), 'float("-inf")')
            lines += [
                f"{t} = {value}",
                f"{e} = tl.exp(tl.where({t} == {m}, 0.0, -tl.abs({t} - {m})))",
                f"{a} = tl.where({t} > {m}, {a} * {e} + 1.0, {a} + {e})",
                f"{m} = tl.where({t} > {m}, {t}, {m})",
            ]
        return [*lines, self._store()] if sweep.writes else lines
