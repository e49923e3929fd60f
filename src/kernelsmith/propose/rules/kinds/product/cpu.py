"""Products as C++: sums in registers, down columns or along rows of weights, as the sizes want."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Shape
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.product.graph import Products, Term
from kernelsmith.propose.rules.kinds.product.loops import DOWN, PACK, WIDENED
from kernelsmith.propose.rules.kinds.registers import ALONG, REGISTERS, TURNED
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

SPAN = "constexpr int64_t SPAN = 3 * W;  // outputs of one task\n"


def render_cpu(products: Products, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + cpp_functions(
        [n for stage in products.stages for n in stage.nodes],
        polynomial=chosen.get("math", "poly") == "poly", also=frozenset(),
    )  # fmt: skip
    text += REGISTERS + WIDENED + f"constexpr int R = {chosen['rows']};  // rows of a tile\n" + DOWN
    if any(term.turned for term in products.terms):
        text += TURNED + PACK
    if any(_reads_along(products, s, chosen) for s in range(len(products.stages))):
        text += ALONG.format(outputs=chosen["outputs"]) + SPAN
    arguments = _arguments(products)
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{"]
    lines += _widened(products)
    for s in range(len(products.stages)):
        lines += _stage(products, s, chosen)
    text += "\n".join([*lines, "}", ""]) + cpp_entries(arguments)
    return Parts(
        kernel=cpp_library(text), fits=products.fits("RUN"), setup=products.setup(),
        launch=(*products.prepared(), f"RUN[a0.dtype]({_given(products)})", "return out"),
    )  # fmt: skip


def _arguments(products: Products) -> list[tuple[str, str]]:
    last = len(products.stages) - 1
    read = [*products.lefts.values(), *products.rights.values()]
    read += [f"m{i}" for i in range(len(products.more))]
    sizes = ["batch", "rows", *(f"d{i}" for i in range(len(products.terms)))]
    sizes += [f"w{s}" for s in range(last + 1)]
    return [
        *[("const T*", name) for name in read], *[("float*", f"t{s}") for s in range(last)],
        ("T*", "out"), *[("int64_t", name) for name in sizes],
        *[("float", f"e{i}") for i in range(len(products.numbers))],
    ]  # fmt: skip


def _given(products: Products) -> str:
    """What ``forward`` passes, in the order of the arguments."""
    last = len(products.stages) - 1
    return ", ".join([
        *products.lefts.values(), *products.rights.values(),
        *[f"m{i}" for i in range(len(products.more))], *[f"t{s}" for s in range(last)],
        "out", "batch", "rows", *[products.depth(term) for term in products.terms],
        *[products.columns(s) for s in range(last + 1)],
        *[text for _, _, text in products.numbers],
    ])  # fmt: skip


def _reads_along(products: Products, stage: int, chosen: Parameters) -> bool:
    """Whether few rows are multiplied by weights as they lie: each row of them is contiguous."""
    return chosen.get("few", "0") != "0" and all(t.turned for t in products.stages[stage].terms)


def _widened(products: Products) -> list[str]:
    lines = []
    for text, name in products.lefts.items():
        depth = next(f"d{i}" for i, term in enumerate(products.terms) if term.left == text)
        lines += [
            f"  static thread_local std::vector<float> of_{name};",
            f"  const float* x{name[1:]} = widened({name}, batch * rows * {depth}, of_{name});",
        ]
    return lines


class _Names:
    """What the parts of one stage are called in C++."""

    def __init__(self, products: Products, stage: int) -> None:
        self._products = products
        self._lefts = products.lefts
        before = sum(len(each.terms) for each in products.stages[:stage])
        self.sums: list[list[tuple[int, Term]]] = []
        for terms in products.stages[stage].sums:
            self.sums.append(list(enumerate(terms, before)))
            before += len(terms)
        self.wide = f"w{stage}"
        self.out = "out" if stage == len(products.stages) - 1 else f"t{stage}"
        self.work = " + ".join(f"d{i}" for each in self.sums for i, _ in each)

    def left(self, term: Term) -> str:
        return f"t{term.left}" if isinstance(term.left, int) else f"x{self._lefts[term.left][1:]}"

    def right(self, term: Term) -> str:
        return self._products.rights[term.right]


def _stage(products: Products, stage: int, chosen: Parameters) -> list[str]:
    names = _Names(products, stage)
    tiles = _tiles(products, stage, names, chosen)
    if not _reads_along(products, stage, chosen):
        return ["  {", *tiles, "  }"]
    dots = _dots(products, stage, names, chosen)
    return [f"  if (rows <= {chosen['few']}) {{", *dots, "  } else {", *tiles, "  }"]


def _dots(products: Products, stage: int, names: _Names, chosen: Parameters) -> list[str]:
    """Few rows: sums along the rows of weights, which are read once."""
    sums, done = [], []
    for number, terms in enumerate(names.sums):
        listed = ", ".join(
            f"{{{names.left(term)} + b * rows * d{i}, "
            f"{names.right(term)} + (b * {names.wide} + first) * d{i}, d{i}, d{i}}}"
            for i, term in terms
        )
        place = f"held.data() + {number} * rows * SPAN" if number else "held.data()"
        sums += [
            f"const Term<T> terms{number}[] = {{{listed}}};",
            f"dots(terms{number}, {len(terms)}, rows, count, {place}, SPAN);",
        ]
        done.append(f"const vec sum{number} = load({place} + row * SPAN, at);")
    return [
        f"    const int64_t strips = ({names.wide} + SPAN - 1) / SPAN;",
        pragma(chosen, f"batch * rows * {names.wide} * ({names.work}) / 8", collapse=2),
        "    for (int64_t b = 0; b < batch; ++b)",
        "      for (int64_t s = 0; s < strips; ++s) {",
        f"        const int64_t first = s * SPAN, count = std::min(SPAN, {names.wide} - first);",
        "        static thread_local std::vector<float> held;",
        f"        held.resize(std::max<size_t>(held.size(), {len(names.sums)} * rows * SPAN));",
        *[f"        {line}" for line in sums],
        "        for (int64_t row = 0; row < rows; ++row) {",
        f"          const int64_t start = (b * rows + row) * {names.wide};",
        "          auto finish = [&](auto at) {",
        "            auto to = at;",
        "            to.i += first;",
        *[f"            {line}" for line in done],
        *[f"            {line}" for line in _after(products, stage, names, "sum{}")],
        "          };",
        "          int64_t i = 0;",
        "          for (; i + W <= count; i += W) finish(Full{i});",
        "          if (i < count) finish(Part{i, int(count - i)});",
        "        }",
        "      }",
    ]


def _tiles(products: Products, stage: int, names: _Names, chosen: Parameters) -> list[str]:
    """Many rows: a tile of the result in registers, turned weights packed strip by strip."""
    wide, flat = names.wide, [each for terms in names.sums for each in terms]
    pack = []
    if any(term.turned for _, term in flat):
        pack.append(f"const int64_t count = std::min(wide, {wide} - first);")
    for i, term in flat:
        right = names.right(term)
        if term.turned:
            pack += [
                f"static thread_local std::vector<float> strip{i};",
                f"strip{i}.resize(std::max<size_t>(strip{i}.size(), d{i} * wide));",
                f"packed({right} + (b * {wide} + first) * d{i}, strip{i}.data(), d{i}, count, "
                "wide);",
                f"const float* from{i} = strip{i}.data();",
            ]
        else:
            pack.append(f"const T* from{i} = {right} + b * d{i} * {wide} + first;")
    sums = [
        f"pieces<M, V>(done[{number}], {names.left(term)} + (b * rows + row) * d{i}, d{i}, "
        f"from{i}, {'wide' if term.turned else wide}, at);"
        for number, terms in enumerate(names.sums)
        for i, term in terms
    ]
    after = _after(products, stage, names, "done[{}][m * V + v]")
    return [
        "    constexpr int64_t wide = int64_t(U) * W;",
        f"    const int64_t tall = {chosen['strip']};",
        f"    const int64_t across = ({wide} + wide - 1) / wide, below = (rows + tall - 1) / tall;",
        pragma(chosen, f"batch * rows * {wide} * ({names.work}) / 8", collapse=3),
        "    for (int64_t b = 0; b < batch; ++b)",
        "      for (int64_t s = 0; s < across; ++s)",
        "        for (int64_t d = 0; d < below; ++d) {",
        "          const int64_t first = s * wide, last = std::min(rows, (d + 1) * tall);",
        *[f"          {line}" for line in pack],
        "          // One tile: `many` rows from `row` on, `vectors` of columns from `at` on.",
        "          auto tile = [&](auto many, auto vectors, int64_t row, auto at) {",
        "            constexpr int M = decltype(many)::value, V = decltype(vectors)::value;",
        f"            vec done[{len(names.sums)}][M * V] = {{}};",
        *[f"            {line}" for line in sums],
        "#pragma GCC unroll 1",
        "            for (int m = 0; m < M; ++m)",
        "#pragma GCC unroll 1",
        "              for (int v = 0; v < V; ++v) {",
        "                auto to = at;",
        "                to.i += first + v * W;",
        f"                const int64_t start = (b * rows + row + m) * {wide};",
        *[f"                {line}" for line in after],
        "              }",
        "          };",
        "          auto column = [&](auto vectors, auto at) {",
        "            int64_t row = d * tall;",
        "            for (; row + R <= last; row += R)",
        "              tile(std::integral_constant<int, R>(), vectors, row, at);",
        "            for (; row + 4 <= last; row += 4)",
        "              tile(std::integral_constant<int, 4>(), vectors, row, at);",
        "            for (; row < last; ++row)",
        "              tile(std::integral_constant<int, 1>(), vectors, row, at);",
        "          };",
        f"          if (first + wide <= {wide}) {{",
        "            column(std::integral_constant<int, U>(), Full{0});",
        "            continue;",
        "          }",
        "          int64_t j = 0;",
        f"          for (; first + j + W <= {wide}; j += W)",
        "            column(std::integral_constant<int, 1>(), Full{j});",
        f"          if (const int rest = int({wide} - first - j))",
        "            column(std::integral_constant<int, 1>(), Part{j, rest});",
        "        }",
    ]


def _after(products: Products, stage: int, names: _Names, made: str) -> list[str]:
    """What is elementwise behind the sums of one vector; ``made`` says what a sum is called."""
    held = products.stages[stage]
    lines, given = [], {n: made.format(number) for n, number in held.made.items()}
    for i, (s, n, _) in enumerate(products.more):
        if s != stage:
            continue
        text = {
            Shape.FULL: f"load(m{i} + start, to)", Shape.COLUMN: f"load(m{i}, to)",
        }.get(held.nodes[n].shape, f"splat(float(m{i}[0]))")  # fmt: skip
        lines.append(f"const vec v{n} = {text};")
        given[n] = f"v{n}"
    given |= {n: f"e{i}" for i, (s, n, _) in enumerate(products.numbers) if s == stage}
    texts = Texts(held.nodes, given, cpp=True)
    lines += texts.lines([held.output])
    return [*lines, f"store({names.out} + start, to, {texts.name(held.output)});"]
