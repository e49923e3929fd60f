"""A grid as C++: lanes along its last group, addresses once per row."""

from collections.abc import Sequence

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind, Node
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.spread.graph import Grid, Spread, Term, leaf_nodes
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

LANES = """\
// Elements that do not lie side by side, one by one.
template <class T, class F> static inline vec picked(const T* p, Full at, F&& place) {
  vec v;
  for (int k = 0; k < W; ++k) v[k] = float(p[place(at.i + k)]);
  return v;
}
template <class T, class F> static inline vec picked(const T* p, Part at, F&& place) {
  vec v = {};
  for (int k = 0; k < at.n; ++k) v[k] = float(p[place(at.i + k)]);
  return v;
}
static inline int lanes_of(Full) { return W; }
static inline int lanes_of(Part at) { return at.n; }
"""


class Access:
    """Addresses of leaves in C++, and the whole numbers that they need from Python."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        self.names = grid.names
        self.integers: dict[str, str] = {}
        """By what they are in Python, their names in the kernel."""

    def integer(self, text: str) -> str:
        """The name of a whole number that Python gives."""
        return text if text == "1" else self.integers.setdefault(text, f"q{len(self.integers)}")

    def lengths(self) -> list[str]:
        """The lengths of all groups."""
        return [self.integer(self.grid.length(g)) for g in range(len(self.grid.groups))]

    def decoded(self, groups: Sequence[int], number: str) -> list[str]:
        """Lines that turn the number of a row into positions ``g0``, ``g1``, ..."""
        lines = []
        for i, g in enumerate(reversed(groups)):
            if i == len(groups) - 1:
                lines.append(f"const int64_t g{g} = {number};")
            else:
                length = self.integer(self.grid.length(g))
                lines += [f"const int64_t g{g} = {number} % {length};", f"{number} /= {length};"]
        return lines

    def address(
        self, number: int, inner: int | None, known: Sequence[int], start: str = ""
    ) -> list[str]:
        """Lines that point ``p3`` at leaf 3's first element along the inner group.

        ``known`` are the groups whose positions are there. Where a number must be read for every
        element, ``a3`` says how far each is from there. ``start`` is where the lanes begin.
        """
        name = self.names[self.grid.leaves[number].text]
        fixed, late = [f"const auto* p{number} = {name}"], []
        lines: list[str] = []
        for term in self.grid.terms(number):
            if term.index is None:
                if term.group in known:
                    fixed.append(self.times(f"g{term.group}", term.stride))
            elif inner is not None and self.grid.moves(term.index, inner):
                late.append(term)
            else:
                lines += self._read(number, term, self.element(term.index, None, known))
                fixed.append(self.times(f"j{number}_{term.dim}", term.stride))
        if start and not late:
            fixed += [self.times(start, t.stride) for t in self._along(number, inner)]
        lines.append(" + ".join(fixed) + ";")
        if late:
            lines.append(f"auto a{number} = [&](int64_t i) {{")
            lines += [f"  i += {start};"] if start else []
            for term in late:
                assert term.index is not None
                number_read = self.element(term.index, inner, known)
                lines += [f"  {each}" for each in self._read(number, term, number_read)]
            far = [self.times(f"j{number}_{t.dim}", t.stride) for t in late]
            far += [self.times("i", t.stride) for t in self._along(number, inner)]
            lines += [f"  return {' + '.join(far)};", "};"]
        return lines

    def _along(self, number: int, inner: int | None) -> list[Term]:
        terms = self.grid.terms(number)
        return [t for t in terms if t.group is not None and t.group == inner]

    def times(self, what: str, stride: str) -> str:
        """A summand of an offset."""
        return what if stride == "1" else f"{what} * {self.integer(stride)}"

    def element(self, number: int, inner: int | None, known: Sequence[int]) -> str:
        """One element of a leaf of numbers, at position ``i`` of the inner group."""
        parts = [
            self.times("i" if t.group == inner else f"g{t.group}", t.stride)
            for t in self.grid.terms(number)
            if t.group == inner or t.group in known
        ]
        return f"{self.names[self.grid.leaves[number].text]}[{' + '.join(parts) or '0'}]"

    def _read(self, number: int, term: Term, text: str) -> list[str]:
        j = f"j{number}_{term.dim}"
        count = self.integer(self.grid.leaves[number].size(term.dim))
        wrap = [f"if ({j} < 0) {j} += {count};"] if term.wraps else []
        return [f"int64_t {j} = {text};", *wrap,
                f"if ({j} < 0 || {j} >= {count}) ++missing, {j} = 0;"]  # fmt: skip

    def load(self, number: int, inner: int | None) -> str:
        """A vector of a leaf's elements, or one for all."""
        if inner is None or not self.grid.moves(number, inner):
            return f"splat(float(*p{number}))"
        terms = self.grid.terms(number)
        if any(t.index is not None and self.grid.moves(t.index, inner) for t in terms):
            return f"picked(p{number}, at, a{number})"
        (along,) = self._along(number, inner)
        if along.stride == "1":
            return f"load(p{number}, at)"
        stride = self.integer(along.stride)
        return f"picked(p{number}, at, [&](int64_t i) {{ return i * {stride}; }})"


def render_cpu(spread: Spread, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    access = Access(spread.grid)
    numbers = spread.numbers()
    if spread.reduction:
        body = _across(spread, access, chosen) if spread.across else _down(spread, access, chosen)
    else:
        body = swept(spread, access, chosen, numbers)
    nodes = (*spread.before, *spread.nodes)
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"],
        store=prelude.STORE[chosen.get("stores", "plain")],
    ) + prelude.SIMPLE + LANES  # fmt: skip
    text += cpp_functions(nodes, polynomial=chosen.get("math") != "libm", also=frozenset())
    if spread.across:
        text += prelude.SUMS[chosen.get("accumulate", "blocked")]
        if spread.reduction in ("max", "min"):
            text += prelude.EXTREME.format(
                name="Best", worst="-INFINITY" if spread.reduction == "max" else "INFINITY",
                pick=f"v{spread.reduction}",
            )  # fmt: skip
    whole = {leaf.text for leaf in spread.grid.leaves if leaf.integer}
    tensors = [("const int64_t*" if text in whole else "const T*", name)
               for text, name in access.names.items()]  # fmt: skip
    arguments = [
        *tensors, ("T*", "out"), *[("int64_t", name) for name in access.integers.values()],
        *[("float", name) for name in numbers],
    ]  # fmt: skip
    result = "int64_t" if spread.indexed else "void"
    lines = ["template <class T>",
             f"static {result} kernel({', '.join(f'{k} {n}' for k, n in arguments)}) {{",
             *(["  int64_t missing = 0;"] if spread.indexed else []), *body,
             *(["  return missing;"] if spread.indexed else []), "}", ""]  # fmt: skip
    text += "\n".join(lines) + cpp_entries(arguments, result)
    passed = ", ".join([*access.names.values(), "out", *access.integers, *numbers.values()])
    call = f"RUN[{spread.grid.like}.dtype]({passed})"
    launch = [call] if not spread.indexed else [
        f"if {call}:", '    raise IndexError("index out of range")',
    ]  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=spread.grid.fits("RUN"), setup=spread.grid.setup(),
        launch=(*spread.grid.dense(), f"out = {spread.grid.like}.new_empty({spread.shape()})",
                *launch, "return out"),
    )  # fmt: skip


def pragma(spread: Spread, chosen: Parameters, work: str, collapse: int = 1) -> str:
    """The OpenMP line; numbers that are out of range are counted."""
    counted = " reduction(+ : missing)" if spread.indexed else ""
    return p.pragma(chosen, work, collapse=collapse) + counted


def values(
    access: Access, nodes: Sequence[Node], output: int, inner: int | None, numbers: dict[str, str],
    reduced: str = "",
) -> tuple[list[str], list[str], str]:  # fmt: skip
    """Loads that never change along the lanes, the others with all that is computed, the result."""
    fixed: list[str] = []
    lines: list[str] = []
    names = {text: name for name, text in numbers.items()}
    given = {i: names[n.text] for i, n in enumerate(nodes) if n.kind is Kind.NUMBER}
    given |= {i: reduced for i, n in enumerate(nodes) if n.text == "<reduced>"}
    for node, leaf in leaf_nodes(nodes).items():
        given[node] = f"v{node}"
        moves = inner is not None and access.grid.moves(leaf, inner)
        line = f"const vec v{node} = {access.load(leaf, inner)};"
        (lines if moves else fixed).append(line)
    texts = Texts(nodes, given, cpp=True)
    return fixed, [*lines, *texts.lines([output])], texts.name(output)


def swept(spread: Spread, access: Access, chosen: Parameters, numbers: dict[str, str]) -> list[str]:
    """A grid without a reduction: row by row, lanes along the last group."""
    inner, outer = spread.kept - 1, list(range(spread.kept - 1))
    lengths = access.lengths()
    addresses = [line for leaf in leaf_nodes(spread.nodes).values()
                 for line in access.address(leaf, inner, outer, "first")]  # fmt: skip
    fixed, inside, value = values(access, spread.nodes, spread.output, inner, numbers)
    return [
        f"  const int64_t inner = {lengths[inner]}, rows = {' * '.join(lengths[:inner]) or '1'};",
        f"  const int64_t span = {chosen['span']}, spans = (inner + span - 1) / span;",
        pragma(spread, chosen, "rows * inner", collapse=2),
        "  for (int64_t row = 0; row < rows; ++row)",
        "    for (int64_t s = 0; s < spans; ++s) {",
        "      const int64_t first = s * span, many = std::min(span, inner - first);",
        *indented(["int64_t number = row;", *access.decoded(outer, "number")] if outer else [], 6),
        *indented([*addresses, *fixed], 6),
        "      T* to = out + row * inner + first;",
        "      sweep(many, [&](auto at, int) {",
        *indented([*inside, f"store(to, at, {value});"], 8),
        "      });",
        "    }",
    ]


def _down(spread: Spread, access: Access, chosen: Parameters) -> list[str]:
    """Lanes along the output; what is reduced is walked through."""
    grid, inner, outer = spread.grid, spread.kept - 1, list(range(spread.kept - 1))
    reduced = list(range(spread.kept, len(grid.groups)))
    lengths, numbers = access.lengths(), spread.numbers()
    first = [line for leaf in leaf_nodes(spread.before).values()
             for line in access.address(leaf, inner, [*outer, *reduced])]  # fmt: skip
    fixed, inside, value = values(access, spread.before, spread.reduced, inner, numbers)
    last = [line for leaf in leaf_nodes(spread.nodes).values()
            for line in access.address(leaf, inner, outer)]  # fmt: skip
    held, end, result = values(access, spread.nodes, spread.output, inner, numbers, "made")
    total = spread.reduction in ("sum", "mean")
    worst = {"max": "-INFINITY", "min": "INFINITY"}.get(spread.reduction, "0.0f")
    double = total and chosen["accumulate"] == "double"
    if double:
        start, step = "dvec total[many] = {};", "total[u] += __builtin_convertvector({}, dvec);"
    elif total:
        start, step = "vec total[many] = {}, part[many] = {};", "part[u] += {};"
    else:
        start, step = "vec total[many];", f"total[u] = v{spread.reduction}({{}}, total[u]);"
    over = " / float(count)" if spread.reduction == "mean" else ""
    made = "__builtin_convertvector(total[u], vec)" if double else "total[u]"
    blocks = total and not double
    return [
        f"  const int64_t inner = {lengths[inner]}, rows = {' * '.join(lengths[:inner]) or '1'};",
        f"  const int64_t count = {' * '.join(lengths[spread.kept :])};",
        "  constexpr int64_t span = int64_t(U) * W;",
        "  const int64_t spans = (inner + span - 1) / span;",
        pragma(spread, chosen, "rows * inner * count", collapse=2),
        "  for (int64_t row = 0; row < rows; ++row)",
        "    for (int64_t s = 0; s < spans; ++s) {",
        *indented(["int64_t number = row;", *access.decoded(outer, "number")] if outer else [], 6),
        "      auto down = [&](auto from, auto wide) {",
        "        constexpr int many = decltype(wide)::value;",
        f"        {start}",
        *([] if total else [f"        for (auto& each : total) each = splat({worst});"]),
        "        for (int64_t r = 0; r < count; ++r) {",
        *indented(["int64_t rest = r;", *access.decoded(reduced, "rest"), *first, *fixed], 10),
        "#pragma GCC unroll 8",
        "          for (int u = 0; u < many; ++u) {",
        "            auto at = from;",
        "            at.i += u * W;",
        *indented([*inside, step.format(_vector(spread.before, spread.reduced, value))], 12),
        "          }",
        *indented([
            "if (r % 64 == 63)  // no chain of additions is longer",
            "  for (int u = 0; u < many; ++u) total[u] += part[u], part[u] = vec{};",
        ] if blocks else [], 10),
        "        }",
        *indented([*last, *held], 8),
        "        for (int u = 0; u < many; ++u) {",
        "          auto at = from;",
        "          at.i += u * W;",
        *(["          total[u] += part[u];"] if blocks else []),
        f"          const vec made = {made}{over};",
        *indented([*end, f"store(out + row * inner, at, {result});"], 10),
        "        }",
        "      };",
        *p.THROUGH_A_SPAN,
    ]  # fmt: skip


def _across(spread: Spread, access: Access, chosen: Parameters) -> list[str]:
    """Lanes along what is reduced."""
    outer, inner = list(range(spread.kept)), len(spread.grid.groups) - 1
    reduced = list(range(spread.kept, inner))
    lengths, numbers = access.lengths(), spread.numbers()
    first = [line for leaf in leaf_nodes(spread.before).values()
             for line in access.address(leaf, inner, [*outer, *reduced])]  # fmt: skip
    fixed, inside, value = values(access, spread.before, spread.reduced, inner, numbers)
    last = [line for leaf in leaf_nodes(spread.nodes).values()
            for line in access.address(leaf, None, outer)]  # fmt: skip
    held, end, result = values(access, spread.nodes, spread.output, None, numbers, "made")
    over = " / double(count * inner)" if spread.reduction == "mean" else ""
    kind = "Sum" if spread.reduction in ("sum", "mean") else "Best"
    return [
        f"  const int64_t rows = {' * '.join(lengths[: spread.kept])}, inner = {lengths[inner]};",
        f"  const int64_t count = {' * '.join(lengths[spread.kept : inner]) or '1'};",
        pragma(spread, chosen, "rows * inner * count"),
        "  for (int64_t row = 0; row < rows; ++row) {",
        *indented(["int64_t number = row;", *access.decoded(outer, "number")], 4),
        f"    {kind} kept;",
        "    for (int64_t r = 0; r < count; ++r) {",
        *indented(["int64_t rest = r;", *access.decoded(reduced, "rest")] if reduced else [], 6),
        *indented([*first, *fixed], 6),
        "      sweep(inner, [&](auto at, int u) {",
        *indented([*inside, f"kept.add({_vector(spread.before, spread.reduced, value)}, at, u);"],
                   8),
        "      });",
        "    }",
        f"    const vec made = splat(float(kept.total(){over}));",
        "    const Part at{0, 1};",
        *indented([*last, *held, *end, f"store(out + row, at, {result});"], 4),
        "  }",
    ]  # fmt: skip


def _vector(nodes: Sequence[Node], number: int, name: str) -> str:
    return name if nodes[number].shape != "scalar" else f"splat({name})"


def indented(lines: Sequence[str], by: int) -> list[str]:
    """Lines further to the right; what is for the preprocessor stays."""
    return [" " * by + line if line and not line.startswith("#") else line for line in lines]
