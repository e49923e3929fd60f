"""An argmax as C++: the best and its place in lanes."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.pick.graph import Pick
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

_BETTER = """\
static inline ivec better(vec v, vec best) {  // NaN is best of all, the first one stays
  return (v > best) | ((v != v) & (best == best));
}
static inline bool ahead(float v, int at, float best, int place) {
  const bool equal = v == best || (v != v && best != best);
  return equal ? at < place : v > best || v != v;
}
"""


def render_cpu(pick: Pick, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE["plain"]
    ) + prelude.SIMPLE + cpp_functions(pick.nodes, polynomial=True, also=frozenset())  # fmt: skip
    text += _BETTER
    numbers = pick.of(Kind.NUMBER)
    arguments = [
        *[("const T*", text) for text in pick.around.inputs], ("int64_t*", "out"),
        ("int64_t", "outer"), ("int64_t", "length"), ("int64_t", "inner"),
        *[("float", f"s{n}") for n in numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{"]
    lines += _rows(pick, chosen) if pick.around.last else _columns(pick, chosen)
    text += "\n".join([*lines, "}", ""]) + cpp_entries(arguments)
    given = ", ".join([*pick.around.inputs, "out", "outer", "length", "inner", *numbers.values()])
    fits = (*pick.around.fits("RUN"), f"{pick.around.like}.shape[axis] < 2**31")
    return Parts(
        kernel=cpp_library(text), fits=fits, setup=pick.around.setup(),
        launch=(*pick.prepared(), f"RUN[{pick.around.like}.dtype]({given})", "return out"),
    )  # fmt: skip


def _value(pick: Pick) -> tuple[list[str], str]:
    inputs = pick.of(Kind.INPUT)
    lines = [f"const vec v{n} = load({text} + start, at);" for n, text in inputs.items()]
    given = {n: f"v{n}" for n in inputs} | {n: f"s{n}" for n in pick.of(Kind.NUMBER)}
    texts = Texts(pick.nodes, given, cpp=True)
    lines += texts.lines([pick.output])
    name = texts.name(pick.output)
    return lines, name if pick.largest else f"-{name}"


def _rows(pick: Pick, chosen: Parameters) -> list[str]:
    lines, value = _value(pick)
    return [
        pragma(chosen, "outer * length"),
        "  for (int64_t row = 0; row < outer; ++row) {",
        "    const int64_t start = row * length;",
        "    vec best[U];",
        "    ivec place[U];",
        "    for (auto& each : best) each = splat(-INFINITY);",
        "    for (auto& each : place) each = ivec{} + INT32_MAX;",
        "    sweep(length, [&](auto at, int u) {",
        *[f"      {line}" for line in lines],
        f"      const vec value = only({value}, at, -INFINITY);",
        "      const ivec here = lanes() + int(at.i);",
        "      // The first of a lane counts even where it is -inf.",
        "      const ivec more = better(value, best[u]) | (place[u] == INT32_MAX);",
        "      best[u] = more ? value : best[u];",
        "      place[u] = more ? here : place[u];",
        "    });",
        "    float most = best[0][0];",
        "    int where = place[0][0];",
        "    for (int u = 0; u < U; ++u)",
        "      for (int k = 0; k < W; ++k)",
        "        if (place[u][k] < length && ahead(best[u][k], place[u][k], most, where))",
        "          most = best[u][k], where = place[u][k];",
        "    out[row] = where;",
        "  }",
    ]


def _columns(pick: Pick, chosen: Parameters) -> list[str]:
    lines, value = _value(pick)
    return [
        "  constexpr int64_t span = int64_t(U) * W;",
        "  const int64_t spans = (inner + span - 1) / span;",
        pragma(chosen, "outer * length * inner", collapse=2),
        "  for (int64_t o = 0; o < outer; ++o)",
        "    for (int64_t s = 0; s < spans; ++s) {",
        "      auto down = [&](auto from, auto wide, int count) {",
        "        constexpr int many = decltype(wide)::value;",
        "        vec best[many];",
        "        ivec place[many] = {};",
        "        for (int64_t step = 0; step < length; ++step) {",
        "          const int64_t start = (o * length + step) * inner;",
        "#pragma GCC unroll 8",
        "          for (int u = 0; u < many; ++u) {",
        "            auto at = from;",
        "            at.i += u * W;",
        *[f"            {line}" for line in lines],
        f"            const vec value = {value};",
        "            const ivec more = step ? better(value, best[u]) : ivec{} - 1;",
        "            best[u] = more ? value : best[u];",
        "            place[u] = more ? ivec{} + int(step) : place[u];",
        "          }",
        "        }",
        "        for (int u = 0; u < many; ++u)",
        "          for (int k = 0; k < count; ++k)",
        "            out[o * inner + from.i + u * W + k] = place[u][k];",
        "      };",
        "      int64_t i = s * span;",
        "      if (i + span <= inner) {",
        "        down(Full{i}, std::integral_constant<int, U>(), W);",
        "        continue;",
        "      }",
        "      const std::integral_constant<int, 1> one;",
        "      for (; i + W <= inner; i += W) down(Full{i}, one, W);",
        "      if (i < inner) down(Part{i, int(inner - i)}, one, int(inner - i));",
        "    }",
    ]
