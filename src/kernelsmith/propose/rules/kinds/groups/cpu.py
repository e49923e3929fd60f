"""Norms over channels as C++: two sweeps over a group, one factor and summand per channel."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.groups.graph import Groups
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

_MOMENTS = """\
const T* own = {x} + (n * groups + g) * length;
Sum sum;
sweep(length, [&](auto at, int u) {{ sum.add(load(own, at), at, u); }});
const float mean = float(sum.total() / length);
Sum squares;
sweep(length, [&](auto at, int u) {{
  const vec off = load(own, at) - mean;
  squares.add(off * off, at, u);
}});
const float scale = float(1.0 / std::sqrt(squares.total() / length + double(eps)));"""


def render_cpu(groups: Groups, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen["unroll"], store=prelude.STORE[chosen["stores"]]
    ) + prelude.SIMPLE + cpp_functions(
        groups.nodes, polynomial=chosen.get("math", "poly") == "poly", also=frozenset()
    )  # fmt: skip
    running = groups.kind == "batch"
    text += "" if running else prelude.SUMS["double"]
    more = ["mean", "var"] if running else []
    arguments = [
        *[("const T*", each) for each in [*groups.tensors, *more]], ("T*", "out"),
        *[("int64_t", each) for each in ("batch", "channels", "groups", "length", "inner")],
        ("float", "eps"), *[("float", f"s{n}") for n in groups.numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    texts = Texts(groups.nodes, {groups.made: "value"} | {n: f"s{n}" for n in groups.numbers},
                  cpp=True)  # fmt: skip
    inside = texts.lines([groups.output])
    centre, spread = "mean", "scale"
    if running:
        centre = "float(mean[c])"
        spread = "float(1.0 / std::sqrt(double(float(var[c])) + double(eps)))"
    factor = f"{spread} * float(weight[c])" if groups.affine else spread
    moments = [] if running else _MOMENTS.format(x=groups.x).splitlines()
    lines = [
        "template <class T>",
        f"static void kernel({listed}) {{",
        pragma(chosen, "batch * channels * inner", collapse=2),
        "  for (int64_t n = 0; n < batch; ++n)",
        "    for (int64_t g = 0; g < groups; ++g) {",
        *[f"      {line}" for line in moments],
        "      for (int64_t c = g * (channels / groups); c < (g + 1) * (channels / groups); ++c) {",
        f"        const float factor = {factor}, centre = {centre};",
        f"        const float base = {'float(bias[c])' if groups.affine else '0.0f'};",
        "        const int64_t start = (n * channels + c) * inner;",
        "        sweep(inner, [&](auto at, int) {",
        f"          const vec value = (load({groups.x} + start, at) - centre) * factor + base;",
        *[f"          {line}" for line in inside],
        f"          store(out + start, at, {texts.name(groups.output)});",
        "        });",
        "      }",
        "    }",
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments)
    given = ", ".join([*groups.tensors, *more, "out", "batch", "channels", "groups", "length",
                       "inner", f"{groups.path}.eps", *groups.numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=groups.fits("RUN"),
        launch=(*groups.prepared(), f"RUN[{groups.x}.dtype]({given})", "return out"),
    )  # fmt: skip
