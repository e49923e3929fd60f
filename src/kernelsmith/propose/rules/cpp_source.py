"""A graph as C++17: vector extensions within a row, OpenMP over rows or stretches."""

from collections.abc import Mapping

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Graph, Kind, Shape
from kernelsmith.propose.rules.names import pointers
from kernelsmith.propose.rules.plan import Plan, Sweep, computed, plan, roots

_INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "lt": "<", "le": "<=", "gt": ">",
          "ge": ">="}  # fmt: skip
_SCALAR = {
    "neg": "-{0}", "abs": "std::fabs({0})", "rsqrt": "1.0f / std::sqrt({0})",
    "reciprocal": "1.0f / {0}", "sigmoid": "1.0f / (1.0f + std::exp(-{0}))",
    "sign": "float(({0} > 0) - ({0} < 0))", "or_zero": "(std::isinf({0}) ? 0.0f : {0})",
}  # fmt: skip
_VECTOR = {"neg": "-{0}", "rsqrt": "1.0f / vsqrt({0})", "reciprocal": "1.0f / {0}"}
_FLAT_UNIT = 1024


class CppSource:
    """Writes one kernel. All text comes from the graph and the parameters: nothing is random."""

    def __init__(self, graph: Graph, parameters: Mapping[str, str]) -> None:
        self.graph = graph
        self.parameters = parameters
        self.plan: Plan = plan(
            graph, keep=parameters.get("keep") == "scratch",
            online=parameters.get("passes") == "online",
        )  # fmt: skip
        self.pointers = pointers(graph)
        self.numbers = graph.of(Kind.NUMBER)
        self._rows_done: set[int] = set()

    def text(self) -> str:
        """The whole translation unit."""
        return "\n".join([self._prelude(), self._kernel(), self._entries()])

    def _prelude(self) -> str:
        graph, p = self.graph, self.parameters
        vector_ops = {
            n.op for n in graph.nodes
            if n.op and n.shape in (Shape.FULL, Shape.COLUMN) and n.kind is not Kind.REDUCE
        }  # fmt: skip
        if any(sweep.online for sweep in self.plan.sweeps):
            vector_ops.add("exp")
        text = "#include <vector>\n" + prelude.VECTORS.format(
            width=p["width"], unroll=p["unroll"], store=prelude.STORE[p.get("stores", "plain")]
        )
        text += prelude.SIMPLE
        text += prelude.functions(vector_ops, polynomial=p.get("math", "poly") == "poly")
        reduces = {graph.nodes[n].op for s in self.plan.sweeps for n in s.reduces}
        if "sum" in reduces:
            text += prelude.SUMS[p["accumulate"]]
        for op, name, worst in (("max", "Max", "-INFINITY"), ("min", "Min", "INFINITY")):
            if op in reduces:
                text += prelude.EXTREME.format(name=name, worst=worst, pick=f"v{op}")
        if any(sweep.online for sweep in self.plan.sweeps):
            text += prelude.ONLINE
        return text

    def _arguments(self) -> list[str]:
        made = [f"const T* {name}" for name in self.pointers.values()]
        made += ["T* out", "int64_t rows", "int64_t dim"]
        return made + [f"float s{n}" for n in self.numbers]

    def _kernel(self) -> str:
        graph, p = self.graph, self.parameters
        lines = ["template <class T>", f"static void kernel({', '.join(self._arguments())}) {{"]
        lines += [f"  {line}" for line in self._scalars(graph.of(Kind.NUMBER, Kind.CONSTANT))]
        flat = not graph.has_rows
        if flat:
            lines.append(
                f"  const int64_t size = rows * dim, tile = int64_t({p['tile']}) * {_FLAT_UNIT};"
            )
            lines.append("  const int64_t blocks = (size + tile - 1) / tile;")
        else:
            lines.append(f"  const int64_t tile = {p['tile']}, blocks = (rows + tile - 1) / tile;")
        totals = graph.of(Kind.TOTAL)
        if totals:
            lines.append(f"  std::vector<double> partial(blocks * {len(totals)});")
        clauses = "" if p["threads"] == "all" else f" num_threads({p['threads']})"
        lines.append(f"#pragma omp parallel{clauses} if (rows * dim > {p['serial_below']})")
        lines.append("  {")
        kept = self.plan.kept
        if kept:
            lines.append(
                "    static thread_local std::vector<float> scratch;  // what later sweeps read"
            )
            lines.append(
                f"    scratch.resize(std::max<size_t>(scratch.size(), {len(kept)} * dim));"
            )
            lines += [
                f"    float* kept{n} = scratch.data() + {i} * dim;" for i, n in enumerate(kept)
            ]
        lines.append(f"#pragma omp for schedule({p['schedule']})")
        lines.append("    for (int64_t block = 0; block < blocks; ++block) {")
        lines += [f"      double total{n} = 0;" for n in totals]
        lines += self._flat() if flat else self._rows()
        for i, n in enumerate(totals):
            lines.append(f"      partial[block * {len(totals)} + {i}] = total{n};")
        lines += ["    }", "  }"]
        lines += self._ending(totals)
        return "\n".join([*lines, "}"])

    def _ending(self, totals: list[int]) -> list[str]:
        lines = []
        for i, n in enumerate(totals):
            lines.append(f"  double sum{n} = 0;")
            lines.append("  for (int64_t b = 0; b < blocks; ++b)")
            lines.append(f"    sum{n} += partial[b * {len(totals)} + {i}];")
            lines.append(f"  const double r{n} = sum{n};")
            self._rows_done.add(n)
        if self.graph.result.shape is Shape.SCALAR:
            lines += [f"  {line}" for line in self._scalars([self.graph.output], kind="double")]
            lines.append(f"  out[0] = T(float({self._row(self.graph.output)}));")
        return lines

    def _flat(self) -> list[str]:
        lines = ["      const int64_t start = block * tile, length = std::min(tile, size - start);"]
        return lines + self._sweeps("      ", "start", "length")

    def _rows(self) -> list[str]:
        lines = [
            "      const int64_t last = std::min(rows, (block + 1) * tile);",
            "      for (int64_t row = block * tile; row < last; ++row) {",
            "        const int64_t start = row * dim;",
        ]
        lines += self._sweeps("        ", "start", "dim")
        return [*lines, "      }"]

    def _sweeps(self, pad: str, start: str, length: str) -> list[str]:
        """All that happens to one row or stretch."""
        graph, lines = self.graph, []
        done = set(self._rows_done)
        have: frozenset[int] = frozenset()
        for sweep in self.plan.sweeps:
            values = computed(graph, roots(graph, sweep), have)
            needed = [a for n in values if n not in have for a in graph.nodes[n].args]
            needed += [graph.output] if sweep.writes else []
            lines += [pad + line for line in self._scalars(needed)]
            lines += [pad + line for line in self._sweep(sweep, values, have, length)]
            have |= set(sweep.keeps)
        if graph.result.shape in (Shape.ROW, Shape.SQUEEZED):
            lines += [pad + line for line in self._scalars([graph.output])]
            lines.append(f"{pad}out[row] = T({self._row(graph.output)});")
        for n in graph.of(Kind.TOTAL):
            lines += [pad + line for line in self._scalars([graph.nodes[n].args[0]])]
            lines.append(f"{pad}total{n} += {self._row(graph.nodes[n].args[0])};")
        self._rows_done = done
        return lines

    def _sweep(
        self, sweep: Sweep, values: list[int], have: frozenset[int], length: str
    ) -> list[str]:
        graph = self.graph
        kinds = {"sum": "Sum", "max": "Max", "min": "Min"}
        lines = [f"{kinds[graph.nodes[n].op]} a{n};" for n in sweep.reduces]
        lines += [f"Online a{pair.total};" for pair in sweep.online]
        lines.append(f"sweep({length}, [&](auto at, int u) {{")
        for n in values:
            text = f"load(kept{n}, at)" if n in have else self._vector(n)
            lines.append(f"  const vec v{n} = {text};")
        lines += [f"  store(kept{n}, at, v{n});" for n in sweep.keeps]
        lines += [f"  a{n}.add(v{graph.nodes[n].args[0]}, at, u);" for n in sweep.reduces]
        lines += [f"  a{pair.total}.add(v{pair.over}, at, u);" for pair in sweep.online]
        if sweep.writes:
            lines.append(f"  store(out + start, at, {self._operand(graph.output, splat=True)});")
        lines.append("});")
        for n in sweep.reduces:
            lines.append(f"const float r{n} = float(a{n}.total());")
        for pair in sweep.online:
            lines.append(f"const float r{pair.maximum} = a{pair.total}.maximum();")
            shift = top = f"r{pair.maximum}"
            if pair.unshifted:
                shift = f"std::isinf({top}) ? 0.0f : {top}"
            lines.append(f"const float r{pair.total} = a{pair.total}.total({shift});")
        self._rows_done |= set(sweep.targets) | {pair.maximum for pair in sweep.online}
        return lines

    def _is_vector(self, n: int) -> bool:
        return self.graph.nodes[n].shape in (Shape.FULL, Shape.COLUMN)

    def _operand(self, n: int, *, splat: bool = False) -> str:
        if self._is_vector(n):
            return f"v{n}"
        return f"splat({self._row(n)})" if splat else self._row(n)

    def _vector(self, n: int) -> str:
        node = self.graph.nodes[n]
        if node.kind in (Kind.INPUT, Kind.PARAMETER):
            start = " + start" if node.shape is Shape.FULL else ""
            return f"load({self.pointers[n]}{start}, at)"
        if node.kind is Kind.VIEW:
            return self._operand(node.args[0], splat=True)
        if node.kind is Kind.SELECT:
            c, a, b = (self._operand(each, splat=True) for each in node.args)
            return f"{self._condition(node.args[0], c)} ? {a} : {b}"
        if node.kind is Kind.BINARY:
            if node.op in ("lt", "le", "gt", "ge"):
                a, b = (self._operand(each, splat=True) for each in node.args)
                return f"({a} {_INFIX[node.op]} {b}) ? splat(1.0f) : splat(0.0f)"
            if node.op in _INFIX:
                a, b = (self._operand(each) for each in node.args)
                return f"{a} {_INFIX[node.op]} {b}"
            a, b = (self._operand(each, splat=True) for each in node.args)
            return f"v{node.op}({a}, {b})"
        a = self._operand(node.args[0], splat=True)
        return _VECTOR.get(node.op, f"v{node.op}({{0}})").format(a)

    @staticmethod
    def _condition(_: int, text: str) -> str:
        return f"({text} != 0.0f)"

    def _row(self, n: int) -> str:
        node = self.graph.nodes[n]
        if node.kind is Kind.CONSTANT:
            return _float(node.value)
        if node.kind is Kind.NUMBER:
            return f"s{n}"
        if node.kind is Kind.COUNT:
            return f"float({node.text})"
        if node.kind is Kind.VIEW:
            return self._row(node.args[0])
        return f"r{n}"

    def _scalars(self, wanted: list[int], kind: str = "float") -> list[str]:
        """Values per row or for all, each computed once, before they are needed."""
        lines: list[str] = []
        for n in wanted:
            node = self.graph.nodes[n]
            leaf = node.kind in (Kind.CONSTANT, Kind.NUMBER, Kind.COUNT)
            if self._is_vector(n) or leaf or n in self._rows_done:
                continue
            lines += self._scalars(list(node.args), kind)
            self._rows_done.add(n)
            if node.kind is not Kind.VIEW:
                lines.append(f"const {kind} r{n} = {self._scalar(n)};")
        return lines

    def _scalar(self, n: int) -> str:
        node = self.graph.nodes[n]
        if node.kind in (Kind.INPUT, Kind.PARAMETER):
            return f"{self.pointers[n]}[{'0' if node.shape is Shape.SCALAR else 'row'}]"
        args = [self._row(each) for each in node.args]
        if node.kind is Kind.SELECT:
            return f"{args[0]} != 0 ? {args[1]} : {args[2]}"
        if node.kind is Kind.BINARY:
            if node.op in _INFIX:
                return f"{args[0]} {_INFIX[node.op]} {args[1]}"
            name = "std::pow" if node.op == "pow" else f"v{node.op}"
            return f"{name}(float({args[0]}), float({args[1]}))"
        assert node.kind is Kind.UNARY, node
        return _SCALAR.get(node.op, f"std::{node.op}({{0}})").format(args[0])

    def _entries(self) -> str:
        text = ""
        for dtype, kind in (("float32", "float"), ("bfloat16", "bf16"), ("float16", "f16")):
            arguments = [each.replace("T*", "void*") for each in self._arguments()]
            passed = [f"(const {kind}*){name}" for name in self.pointers.values()]
            passed += [f"({kind}*)out", "rows", "dim"] + [f"s{n}" for n in self.numbers]
            text += (
                f'extern "C" void run_{dtype}({", ".join(arguments)}) {{\n'
                f"  kernel<{kind}>({', '.join(passed)});\n}}\n"
            )
        return text


def _float(value: float) -> str:
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return f"{value!r}f" if value >= 0 else f"({value!r}f)"
