"""Columns as C++: every lane of every vector is a column of its own."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.columns.graph import Columns
from kernelsmith.propose.rules.kinds.parameters import down_columns
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.plan import Sweep, plan
from kernelsmith.propose.rules.space import Parameters

_START = {"sum": "vec{}", "prod": "splat(1.0f)", "max": "splat(-INFINITY)",
          "min": "splat(INFINITY)"}  # fmt: skip
_JOIN = {"sum": "{0} += {1};", "prod": "{0} *= {1};", "max": "{0} = vmax({1}, {0});",
         "min": "{0} = vmin({1}, {0});"}  # fmt: skip
_CHUNK = 64
"""Elements that are summed in float before the sum joins the others."""


def render_cpu(columns: Columns, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    graph = columns.graph
    online = chosen.get("passes") == "online"
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"],
        store=prelude.STORE[chosen.get("stores", "plain")],
    ) + prelude.SIMPLE + cpp_functions(
        graph.nodes, polynomial=chosen.get("math", "poly") == "poly",
        also=frozenset({"exp"} if online else ()),
    )  # fmt: skip
    numbers = columns.of(Kind.NUMBER)
    arguments = [
        *[("const T*", name) for name in columns.names().values()],
        ("T*", "out"), ("int64_t", "outer"), ("int64_t", "length"), ("int64_t", "inner"),
        *[("float", f"s{n}") for n in numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    body = _Body(columns, chosen).lines()
    lines = [
        "template <class T>",
        f"static void kernel({listed}) {{",
        *down_columns(chosen, body),
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments)
    given = ", ".join([*columns.names().values(), "out", "outer", "length", "inner",
                       *numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=columns.fits("RUN"), setup=columns.around.setup(),
        launch=(*columns.prepared(), f"RUN[{columns.around.like}.dtype]({given})", "return out"),
    )  # fmt: skip


class _Body:
    """What happens to one strip of columns."""

    def __init__(self, columns: Columns, chosen: Parameters) -> None:
        self._columns = columns
        self._nodes = columns.nodes
        self._double = chosen.get("accumulate") == "double"
        self._plan = plan(columns.graph, keep=False, online=chosen.get("passes") == "online")
        self._have: dict[int, str] = {n: f"s{n}" for n in columns.of(Kind.NUMBER)}
        self._have |= {n: "float(length)" for n in columns.of(Kind.COUNT)}

    def lines(self) -> list[str]:
        columns, graph = self._columns, self._columns.graph
        names = columns.names()
        lines = []
        for n in columns.of(Kind.PARAMETER):
            if self._nodes[n].shape is Shape.SCALAR:
                lines.append(f"const float v{n} = {names[n]}[0];")
                self._have[n] = f"v{n}"
        for sweep in self._plan.sweeps:
            lines += self._per_column(columns.needed(sweep))
            lines += self._sweep(sweep)
        if graph.result.shape is not Shape.FULL:
            lines += self._per_column([graph.output])
            value = Texts(self._nodes, self._have, cpp=True).name(graph.output)
            lines += [
                "for (int u = 0; u < many; ++u) {", "  auto at = from;", "  at.i += u * W;",
                f"  store(out + o * inner, at, {value});", "}",
            ]  # fmt: skip
        return lines

    def _per_column(self, wanted: list[int]) -> list[str]:
        """Values per column that these need, each computed once."""
        found = self._columns.hoisted(wanted, set(self._have))
        if not found:
            return []
        texts = Texts(self._nodes, self._have, cpp=True)
        inside = texts.lines(found)
        lines = [f"vec r{n}[many];" for n in found]
        lines.append("for (int u = 0; u < many; ++u) {")
        lines += [f"  {line}" for line in inside]
        lines += [f"  r{n}[u] = {texts.name(n)};" for n in found] + ["}"]
        self._have |= {n: f"r{n}[u]" for n in found}
        return lines

    def _sweep(self, sweep: Sweep) -> list[str]:
        columns, nodes = self._columns, self._nodes
        names = columns.names()
        sums = [n for n in sweep.reduces if nodes[n].op == "sum"]
        lines, chunk, after = [], [], []
        for n in sweep.reduces:
            wide = self._double and n in sums
            start = "dvec{}" if wide else _START[nodes[n].op]
            lines.append(f"{'dvec' if wide else 'vec'} a{n}[many];")
            lines.append(f"for (auto& each : a{n}) each = {start};")
        for pair in sweep.online:
            lines.append(f"vec a{pair.total}[many] = {{}}, m{pair.total}[many];")
            lines.append(f"for (auto& each : m{pair.total}) each = splat(-3.4028234e38f);")
        if not self._double:
            chunk += [f"vec b{n}[many] = {{}};" for n in sums]
            after += [f"for (int u = 0; u < many; ++u) a{n}[u] += b{n}[u];" for n in sums]
        inside = [
            "auto at = from;", "at.i += u * W;",
            *[f"const vec v{n} = load({names[n]} + start, at);" for n in columns.of(Kind.INPUT)],
            *[f"const vec v{n} = splat({names[n]}[step]);" for n in columns.of(Kind.PARAMETER)
              if nodes[n].shape is not Shape.SCALAR],
        ]  # fmt: skip
        given = self._have | {
            n: f"v{n}" for n in columns.names() if nodes[n].shape is not Shape.SCALAR
        }
        texts = Texts(nodes, given, cpp=True)
        inside += texts.lines(columns.needed(sweep))
        for n in sweep.reduces:
            value, op = texts.name(nodes[n].args[0]), nodes[n].op
            target = f"b{n}[u]" if n in sums and not self._double else f"a{n}[u]"
            if n in sums and self._double:
                value = f"__builtin_convertvector({value}, dvec)"
            inside.append(_JOIN[op].format(target, value))
        for pair in sweep.online:
            m, a, v = f"m{pair.total}[u]", f"a{pair.total}[u]", texts.name(pair.over)
            inside += [
                f"const vec d{pair.total} = {v} == {m} ? vec{{}} : {v} - {m};",
                f"const ivec up{pair.total} = d{pair.total} > 0.0f;",
                f"const vec e{pair.total} = vexp(up{pair.total} ? -d{pair.total} : d{pair.total});",
                f"{a} = up{pair.total} ? {a} * e{pair.total} + 1.0f : {a} + e{pair.total};",
                f"{m} = up{pair.total} ? {v} : {m};",
            ]
        if sweep.writes:
            inside.append(f"store(out + start, at, {texts.name(columns.graph.output)});")
        lines += [
            f"for (int64_t top = 0; top < length; top += {_CHUNK}) {{",
            *[f"  {line}" for line in chunk],
            f"  for (int64_t step = top; step < std::min(length, top + {_CHUNK}); ++step) {{",
            "    const int64_t start = first + step * inner;",
            "#pragma GCC unroll 8",
            "    for (int u = 0; u < many; ++u) {",
            *[f"      {line}" for line in inside],
            "    }",
            "  }",
            *[f"  {line}" for line in after],
            "}",
        ]
        for n in sweep.reduces:
            wide = self._double and n in sums
            self._have[n] = f"__builtin_convertvector(a{n}[u], vec)" if wide else f"a{n}[u]"
        for pair in sweep.online:
            a, m = f"a{pair.total}[u]", f"m{pair.total}[u]"
            off = f"({m} == INFINITY ? {m} : vec{{}})" if pair.unshifted else f"({m} - {m})"
            lines.append(f"for (int u = 0; u < many; ++u) {a} *= vexp{off};  // infinities")
            self._have[pair.maximum] = f"m{pair.total}[u]"
            self._have[pair.total] = f"a{pair.total}[u]"
        return lines
