"""A product as C++: a tile of the result in registers, turned weights packed strip by strip."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind, Shape
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.product.graph import Product
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

_PACK = """\
// A strip of weights turned round, so that neighbouring columns are neighbours.
template <class T>
static void packed(const T* from, float* to, int64_t depth, int64_t count, int64_t wide) {
  for (int64_t k = 0; k < depth; k += 16) {
    const int64_t last = std::min(depth, k + 16);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t i = k; i < last; ++i) to[i * wide + j] = float(from[j * depth + i]);
  }
}
"""


def render_cpu(product: Product, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = "#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + cpp_functions(
        product.nodes, polynomial=chosen.get("math", "poly") == "poly", also=frozenset()
    )  # fmt: skip
    text += f"constexpr int R = {chosen['rows']};  // rows of a tile\n"
    text += _PACK if product.turned else ""
    numbers = product.of(Kind.NUMBER)
    arguments = [
        ("const T*", product.a), ("const T*", "right"),
        *[("const T*", name) for name in product.more.values()], ("T*", "out"),
        ("int64_t", "batch"), ("int64_t", "rows"), ("int64_t", "depth"), ("int64_t", "columns"),
        *[("float", f"s{n}") for n in numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{", *_kernel(product, chosen)]
    text += "\n".join([*lines, "}", ""]) + cpp_entries(arguments)
    given = ", ".join([product.a, "right", *product.more.values(), "out", "batch", "rows", "depth",
                       "columns", *numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=product.fits("RUN"), setup=product.setup(),
        launch=(*product.prepared(), f"RUN[{product.a}.dtype]({given})", "return out"),
    )  # fmt: skip


def _kernel(product: Product, chosen: Parameters) -> list[str]:
    source, ahead = "right + b * depth * columns", "columns"
    pack: list[str] = []
    if product.turned:
        source, ahead = "strip.data()", "wide"
        pack = [
            "static thread_local std::vector<float> strip;",
            "strip.resize(std::max<size_t>(strip.size(), depth * wide));",
            "const int64_t count = std::min(wide, columns - first);",
            "packed(right + (b * columns + first) * depth, strip.data(), depth, count, wide);",
        ]
    base = "0" if product.turned else "first"
    return [
        "  constexpr int64_t wide = int64_t(U) * W;",
        f"  const int64_t tall = {chosen['strip']};",
        "  const int64_t across = (columns + wide - 1) / wide, down = (rows + tall - 1) / tall;",
        pragma(chosen, "batch * rows * columns * depth / 8", collapse=3),
        "  for (int64_t b = 0; b < batch; ++b)",
        "    for (int64_t s = 0; s < across; ++s)",
        "      for (int64_t d = 0; d < down; ++d) {",
        "        const int64_t first = s * wide, last = std::min(rows, (d + 1) * tall);",
        *[f"        {line}" for line in pack],
        f"        const auto* from = {source} + {base};",
        "        // One tile: `many` rows from `row` on, `vectors` of columns from `at` on.",
        "        auto tile = [&](auto many, auto vectors, int64_t row, auto at) {",
        "          constexpr int M = decltype(many)::value, V = decltype(vectors)::value;",
        "          vec sum[M][V] = {};",
        f"          const T* left = {product.a} + (b * rows + row) * depth;",
        "          for (int64_t k = 0; k < depth; ++k) {",
        "            vec right_[V];",
        "#pragma GCC unroll 4",
        "            for (int v = 0; v < V; ++v) {",
        "              auto to = at;",
        "              to.i += v * W;",
        f"              right_[v] = load(from + k * {ahead}, to);",
        "            }",
        "#pragma GCC unroll 16",
        "            for (int m = 0; m < M; ++m) {",
        "              const float one = float(left[m * depth + k]);",
        "#pragma GCC unroll 4",
        "              for (int v = 0; v < V; ++v) sum[m][v] += one * right_[v];",
        "            }",
        "          }",
        "          vec done[M][V];  // sums leave their registers once",
        "#pragma GCC unroll 16",
        "          for (int m = 0; m < M; ++m)",
        "#pragma GCC unroll 4",
        "            for (int v = 0; v < V; ++v) done[m][v] = sum[m][v];",
        "#pragma GCC unroll 1",
        "          for (int m = 0; m < M; ++m)",
        "#pragma GCC unroll 1",
        "            for (int v = 0; v < V; ++v) {",
        "              auto to = at;",
        "              to.i += first + v * W;",
        "              const int64_t start = (b * rows + row + m) * columns;",
        *[f"              {line}" for line in _after(product)],
        "            }",
        "        };",
        "        auto column = [&](auto vectors, auto at) {",
        "          int64_t row = d * tall;",
        "          for (; row + R <= last; row += R)",
        "            tile(std::integral_constant<int, R>(), vectors, row, at);",
        "          for (; row + 4 <= last; row += 4)",
        "            tile(std::integral_constant<int, 4>(), vectors, row, at);",
        "          for (; row < last; ++row)",
        "            tile(std::integral_constant<int, 1>(), vectors, row, at);",
        "        };",
        "        if (first + wide <= columns) {",
        "          column(std::integral_constant<int, U>(), Full{0});",
        "          continue;",
        "        }",
        "        int64_t j = 0;",
        "        for (; first + j + W <= columns; j += W)",
        "          column(std::integral_constant<int, 1>(), Full{j});",
        "        if (const int rest = int(columns - first - j))",
        "          column(std::integral_constant<int, 1>(), Part{j, rest});",
        "      }",
    ]


def _after(product: Product) -> list[str]:
    lines, given = [], {product.made: "done[m][v]"}
    for n, name in product.more.items():
        shape = product.nodes[n].shape
        text = {
            Shape.FULL: f"load({name} + start, to)", Shape.COLUMN: f"load({name}, to)",
        }.get(shape, f"splat(float({name}[0]))")  # fmt: skip
        lines.append(f"const vec v{n} = {text};")
        given[n] = f"v{n}"
    given |= {n: f"s{n}" for n in product.of(Kind.NUMBER)}
    texts = Texts(product.nodes, given, cpp=True)
    lines += texts.lines([product.output])
    return [*lines, f"store(out + start, to, {texts.name(product.output)});"]
