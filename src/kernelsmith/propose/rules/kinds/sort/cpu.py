"""A sort or a selection as C++: a row is one task of the thread schedule."""

from collections.abc import Sequence

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.sort import helpers
from kernelsmith.propose.rules.kinds.sort.graph import INDICES, SORTED, Over, Selected, Sorted
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.plan import Sweep, plan
from kernelsmith.propose.rules.space import Parameters

_ACCUMULATORS = {"sum": "Sum", "max": "Max", "min": "Min"}


def render_sorted(sort: Sorted, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = _head(sort, chosen) + helpers.KEYS + (helpers.SELECT if sort.count else "")
    text += f"constexpr int DIGIT = {chosen['digits']};  // most bits of a key per pass\n"
    text += f"constexpr int SMALL = {chosen['small']};  // rows up to this length are counted\n"
    text += helpers.ORDER + (helpers.FIRST if sort.count else "")
    texts = Texts(sort.nodes, _numbers(sort), cpp=True)
    texts.given |= {n: f"v{n}" for n in sort.inputs()}
    inside = [f"const vec v{n} = load({x} + start, at);" for n, x in sort.inputs().items()]
    inside += texts.lines([sort.score])
    flip = "~" if sort.descending else ""
    order = "first_in_order<T>(keys, length, count," if sort.count else "in_order<T>(keys, length,"
    written = [*dict.fromkeys(each for each in sort.outputs)]
    puts = [f"indices[row * {_count(sort)} + at] = from;"] if INDICES in written else []
    nodes = [n for n in written if n != INDICES]
    puts += ["best[at] = scores[from];"] if nodes else []
    body = [
        "const int64_t start = row * length;",
        "Held& held = Held::mine();",
        "int32_t* keys = Held::fit(held.keys, length + W);",
        "float* scores = Held::fit(held.scratch, 2 * length);",
        "sweep(length, [&](auto at, int) {",
        *[f"  {line}" for line in inside],
        f"  const vec value = rounded<T>({texts.name(sort.score)});",
        "  store(scores, at, value);",
        f"  put(keys + at.i, {flip}keyed(value));",
        "});",
        "float* best = scores + length;" if nodes else "",
        f"{order} held, [&](int64_t at, int64_t from) {{",
        *[f"  {line}" for line in puts],
        "});",
        *_behind(sort, nodes),
    ]
    arguments = [*sort.arguments(), ("int64_t", "rows"), ("int64_t", "length")]
    arguments += [("int64_t", "count")] if sort.count else []
    arguments += [("float", f"s{n}") for n in sort.of(Kind.NUMBER)]
    return _parts(sort, chosen, text, arguments, body, fits=sort.fits("RUN"))


def _behind(sort: Sorted, nodes: Sequence[int]) -> list[str]:
    """What happens to the sorted values."""
    if not nodes:
        return []
    texts = Texts(sort.nodes, _numbers(sort), cpp=True)
    ((sorted_node, _),) = [(n, t) for n, t in sort.of(Kind.INPUT).items() if t == SORTED]
    texts.given[sorted_node] = "value"
    inside = ["const vec value = load(best, at);", *texts.lines(nodes)]
    names = dict(zip(sort.outputs, sort.names(), strict=True))
    count = _count(sort)
    inside += [f"store({names[n]} + row * {count}, at, {texts.name(n)});" for n in nodes]
    # An output that is returned twice is two tensors.
    for name, n in zip(sort.names(), sort.outputs, strict=True):
        if n != INDICES and names[n] != name:
            inside.append(f"store({name} + row * {count}, at, {texts.name(n)});")
    return [f"sweep({count}, [&](auto at, int) {{", *[f"  {line}" for line in inside], "});"]


def _count(sort: Sorted) -> str:
    return "count" if sort.count else "length"


def render_selected(selected: Selected, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    ops = {n.op for n in selected.nodes if n.kind is Kind.REDUCE}
    text = _head(selected, chosen)
    text += prelude.SUMS["lanes"] if "sum" in ops else ""
    for op, name, worst in (("max", "Max", "-INFINITY"), ("min", "Min", "INFINITY")):
        if op in ops:
            text += prelude.EXTREME.format(name=name, worst=worst, pick=f"v{op}")
    text += helpers.KEYS + helpers.SELECT + helpers.SIEVE
    arguments = [*selected.arguments(), ("int64_t", "rows"), ("int64_t", "length")]
    arguments += [("int64_t", f"t{n}") for n in selected.ranks()]
    arguments += [("float", f"s{n}") for n in selected.of(Kind.NUMBER)]
    body = _Row(selected, keep=chosen.get("keep") == "scratch").lines()
    return _parts(selected, chosen, text, arguments, body, fits=selected.fits("RUN"))


class _Row:
    """What happens to one row."""

    def __init__(self, selected: Selected, *, keep: bool) -> None:
        self._selected = selected
        self._nodes = selected.nodes
        self._have = _numbers(selected) | {
            n: "float(length)" for n, node in enumerate(self._nodes) if node.kind is Kind.COUNT
        }
        self._plan = plan(selected.graph, keep=keep, online=False)
        scored = {self._nodes[n].args[0] for n in selected.ranks()}
        self._stored = {n for n in scored if self._nodes[n].op == "rounded"}
        """What is compared with what was selected must be the very same number again."""
        self._scratch = [*dict.fromkeys([*sorted(self._stored), *self._plan.kept])]

    def lines(self) -> list[str]:
        lines = ["const int64_t start = row * length;", "Held& held = Held::mine();"]
        if self._scratch:
            size = f"{len(self._scratch)} * (length + W)"
            lines.append(f"float* scratch = Held::fit(held.scratch, {size});")
        for sweep in self._plan.sweeps:
            lines += self._per_row() + self._sweep(sweep)
        lines += self._per_row()
        texts = Texts(self._nodes, self._have, cpp=True)
        for name, n in zip(self._selected.names(), self._selected.outputs, strict=True):
            if self._nodes[n].shape is not Shape.FULL:
                lines.append(f"{name}[row] = T(({texts.name(n)})[0]);")
        return lines

    def _per_row(self) -> list[str]:
        """Values per row that can be computed by now, each once."""
        lines: list[str] = []
        for n, node in enumerate(self._nodes):
            if node.shape not in (Shape.ROW, Shape.SQUEEZED) or n in self._have:
                continue
            ready = all(
                a in self._have or self._nodes[a].kind in (Kind.CONSTANT, Kind.NUMBER)
                or (self._nodes[a].shape is Shape.SCALAR)
                for a in node.args
            )  # fmt: skip
            if node.kind is Kind.REDUCE or not ready:
                continue
            texts = Texts(self._nodes, self._have, cpp=True)
            lines += texts.lines([n])
            self._have |= texts.given
            self._have[n] = texts.name(n)
        return lines

    def _place(self, n: int) -> str:
        return f"scratch + {self._scratch.index(n)} * (length + W)"

    def _sweep(self, sweep: Sweep) -> list[str]:
        nodes, ranks = self._nodes, self._selected.ranks()
        picked = [n for n in sweep.reduces if n in ranks]
        summed = [n for n in sweep.reduces if n not in ranks]
        texts = self._texts()
        stores = [n for n in {nodes[n].args[0]: 0 for n in picked} if n in self._stored]
        stores = [n for n in stores if n not in self._have] + [*sweep.keeps]
        wanted = [nodes[n].args[0] for n in summed] + stores
        full = [n for n in self._selected.outputs if nodes[n].shape is Shape.FULL]
        wanted += full if sweep.writes else []
        lines = [f"{_ACCUMULATORS[nodes[n].op]} a{n};" for n in summed]
        if wanted:
            inside = self._loads() + texts.lines(wanted)
            inside += [f"store({self._place(n)}, at, {texts.name(n)});" for n in stores]
            inside += [f"a{n}.add({texts.name(nodes[n].args[0])}, at, u);" for n in summed]
            if sweep.writes:
                for name, n in zip(self._selected.names(), self._selected.outputs, strict=True):
                    if n in full:
                        inside.append(f"store({name} + start, at, {texts.name(n)});")
            lines.append("sweep(length, [&](auto at, int u) {")
            lines += [f"  {line}" for line in inside] + ["});"]
        self._have |= {n: f"load({self._place(n)}, at)" for n in stores}
        for n in picked:
            over = nodes[n].args[0]
            texts = self._texts()
            inside = self._loads() + texts.lines([over])
            lines.append(
                f"const vec r{n} = splat({nodes[n].op}(length, t{n}, held, [&](auto at) {{"
            )
            lines += [f"  {line}" for line in inside]
            lines.append(f"  return vec({texts.name(over)});")
            lines.append("}));")
        lines += [f"const vec r{n} = splat(a{n}.total());" for n in summed]
        self._have |= {n: f"r{n}" for n in sweep.reduces}
        return lines

    def _texts(self) -> Texts:
        given = self._have | {n: f"v{n}" for n in self._selected.inputs()}
        return Texts(self._nodes, given, cpp=True)

    def _loads(self) -> list[str]:
        inputs = self._selected.inputs().items()
        return [f"const vec v{n} = load({x} + start, at);" for n, x in inputs]


def _numbers(over: Over) -> dict[int, str]:
    return {n: f"s{n}" for n in over.of(Kind.NUMBER)}


def _head(over: Over, chosen: Parameters) -> str:
    text = "#include <climits>\n#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen.get("unroll", "1"), store=prelude.STORE["plain"]
    ) + prelude.SIMPLE  # fmt: skip
    polynomial = chosen.get("math", "poly") == "poly"
    return text + cpp_functions(over.nodes, polynomial=polynomial, also=frozenset())


def _parts(
    over: Over, chosen: Parameters, text: str, arguments: Sequence[tuple[str, str]],
    body: Sequence[str], *, fits: tuple[str, ...],
) -> Parts:  # fmt: skip
    lines = [
        "template <class T>",
        f"static void kernel({', '.join(f'{kind} {name}' for kind, name in arguments)}) {{",
        "  const auto vrounded = [](vec v) { return rounded<T>(v); };",
        "  (void)vrounded;",
        pragma(chosen, "rows * length"),
        "  for (int64_t row = 0; row < rows; ++row) {",
        *[f"    {line}" for line in body if line],
        "  }",
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments)
    texts = dict(over.of(Kind.NUMBER))
    ranks = over.ranks() if isinstance(over, Selected) else {}
    known = {f"s{n}": each for n, each in texts.items()} | {f"t{n}": e for n, e in ranks.items()}
    known |= {name: text for text, name in over.given().items()}
    given = ", ".join(known.get(name, name) for _, name in arguments)
    return Parts(
        kernel=cpp_library(text), fits=(*fits, f"{over.around.like}.shape[-1] < 2**31 - 64"),
        launch=(*over.prepared(), f"RUN[{over.around.like}.dtype]({given})", over.returned()),
    )  # fmt: skip
