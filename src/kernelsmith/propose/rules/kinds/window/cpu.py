"""Windows as C++: neighbouring outputs of a row side by side in vectors, edges one by one."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.kinds.window.graph import Window
from kernelsmith.propose.rules.space import Parameters

_READ = """\
// Elements of a row that are `{name}` apart.
template <class T> static inline vec every(const T* p, Full at) {{
  if constexpr ({name} == 1) return load(p, at);
  vec v;
  for (int k = 0; k < W; ++k) v[k] = float(p[(at.i + k) * {name}]);
  return v;
}}
template <class T> static inline vec every(const T* p, Part at) {{
  if constexpr ({name} == 1) return load(p, at);
  vec v = {{}};
  for (int k = 0; k < at.n; ++k) v[k] = float(p[(at.i + k) * {name}]);
  return v;
}}
"""
_START = {"max": "splat(-INFINITY)", "mean": "vec{}", "conv": "vec{}"}


def render_cpu(window: Window, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE[chosen["stores"]]
    ) + prelude.SIMPLE + cpp_functions(
        window.nodes, polynomial=chosen.get("math", "poly") == "poly", also=frozenset()
    )  # fmt: skip
    text += _constants(window) + _READ.format(name="SX")
    names = ["batch", "channels", "depth", "height", "width", "depths", "heights", "widths"]
    arguments = [
        *[("const T*", each) for each in window.tensors], ("T*", "out"),
        *[("int64_t", each) for each in names], *[("float", f"s{n}") for n in window.numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{", *_kernel(window, chosen)]
    text += "\n".join([*lines, "}", ""]) + cpp_entries(arguments)
    given = ", ".join([*window.tensors, "out", *names[:5], "*sizes", *window.numbers.values()])
    return Parts(
        kernel=cpp_library(text), fits=window.fits("RUN"),
        launch=(*window.prepared(), f"RUN[{window.x}.dtype]({given})", "return out"),
    )  # fmt: skip


def _constants(window: Window) -> str:
    lines = []
    for letter, three, why in (
        ("K", window.size, "window"), ("S", window.stride, "stride"),
        ("P", window.before, "padding in front"), ("D", window.step, "dilation"),
    ):  # fmt: skip
        listed = ", ".join(f"{letter}{axis} = {n}" for axis, n in zip("ZYX", three, strict=True))
        lines.append(f"constexpr int64_t {listed};  // {why}")
    return "\n".join(lines) + "\n"


def _kernel(window: Window, chosen: Parameters) -> list[str]:
    weights = []
    if window.op == "conv":
        weights = [
            "const int64_t channel = plane % channels;",
            "float taps[KZ * KY * KX];",
            "for (int64_t t = 0; t < KZ * KY * KX; ++t)",
            "  taps[t] = float(weight[channel * KZ * KY * KX + t]);",
        ]
        if window.bias:
            weights.append("const float base = float(bias[channel]);")
    return [
        "  // Outputs of a row for which no tap lies outside of it.",
        "  const int64_t left = std::min(widths, (PX + SX - 1) / SX);",
        "  const int64_t most = width - 1 - (KX - 1) * DX + PX;",
        "  const int64_t right = std::max(left, std::min(widths, most < 0 ? 0 : most / SX + 1));",
        "  const int64_t lines = depths * heights;",
        pragma(chosen, f"batch * channels * lines * widths * {window.taps}", collapse=2),
        "  for (int64_t plane = 0; plane < batch * channels; ++plane)",
        "    for (int64_t line = 0; line < lines; ++line) {",
        f"      const T* in = {window.x} + plane * depth * height * width;",
        "      T* to = out + (plane * lines + line) * widths;",
        "      const int64_t z = line / heights * SZ - PZ, y = line % heights * SY - PY;",
        *[f"      {each}" for each in weights],
        "      auto each = [&](auto at, auto inside) {",
        *[f"        {line}" for line in _body(window)],
        "      };",
        "      for (int64_t i = 0; i < left; ++i) each(Part{i, 1}, std::false_type());",
        "      int64_t i = left;",
        "      for (; i + U * W <= right; i += U * W)",
        "#pragma GCC unroll 8",
        "        for (int u = 0; u < U; ++u) each(Full{i + u * W}, std::true_type());",
        "      for (; i + W <= right; i += W) each(Full{i}, std::true_type());",
        "      if (i < right) each(Part{i, int(right - i)}, std::true_type());",
        "      for (i = right; i < widths; ++i) each(Part{i, 1}, std::false_type());",
        "    }",
    ]


def _body(window: Window) -> list[str]:
    join = {
        "max": "value = vmax(v, value);", "mean": "value += v;",
        "conv": "value += v * taps[(dz * KY + dy) * KX + dx];",
    }[window.op]  # fmt: skip
    counts = window.op == "mean" and not window.divisor and not window.whole and window.padded
    lines = [
        f"vec value = {'splat(base)' if window.bias else _START[window.op]};",
        *(["int count = 0;"] if counts else []),
        "for (int64_t dz = 0; dz < KZ; ++dz) {",
        "  const int64_t at_z = z + dz * DZ;",
        "  if (at_z < 0 || at_z >= depth) continue;",
        "  for (int64_t dy = 0; dy < KY; ++dy) {",
        "    const int64_t at_y = y + dy * DY;",
        "    if (at_y < 0 || at_y >= height) continue;",
        "    const T* row = in + (at_z * height + at_y) * width;",
        "#pragma GCC unroll 16",
        "    for (int64_t dx = 0; dx < KX; ++dx) {",
        "      const int64_t off = dx * DX - PX;",
        "      if (!inside && (at.i * SX + off < 0 || at.i * SX + off >= width)) continue;",
        "      const vec v = every(row + off, at);",
        f"      {join}",
        *(["      ++count;"] if counts else []),
        "    }",
        "  }",
        "}",
    ]
    if window.op == "mean":
        by = "count" if counts else str(window.divisor or window.taps)
        lines.append(f"value /= float({by});")
    texts = Texts(window.nodes, {window.made: "value"} | {n: f"s{n}" for n in window.numbers},
                  cpp=True)  # fmt: skip
    lines += texts.lines([window.output])
    return [*lines, f"store(to, at, {texts.name(window.output)});"]
