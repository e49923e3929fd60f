"""Convolutions of few channels per group as C++: a row of outputs in cache, tap after tap."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Kind
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.neighbours.graph import Convolution
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

_SIZES = ("batch", "inputs", "channels", "group", "in_z", "in_y", "in_x", "out_z", "out_y", "out_x")


def render_cpu(found: Convolution, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    nodes = (*found.before.nodes, *found.after.nodes)
    text = "#include <vector>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll="1", store=prelude.STORE[chosen["stores"]]
    ) + prelude.SIMPLE + cpp_functions(
        nodes, polynomial=chosen["math"] == "poly", also=frozenset()
    )  # fmt: skip
    for letter, three in (("K", found.size), ("S", found.stride), ("P", found.padding),
                          ("D", found.step)):  # fmt: skip
        listed = ", ".join(f"{letter}{axis} = {n}" for axis, n in zip("ZYX", three, strict=True))
        text += f"constexpr int64_t {listed};\n"
    arguments = [
        *(("const T*", each) for each in found.tensors), ("T*", "out"),
        *(("int64_t", each) for each in _SIZES), *(("float", each) for each in found.numbers),
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{", *_kernel(found, chosen), "}"]
    text += "\n".join([*lines, ""]) + cpp_entries(arguments)
    given = ", ".join([
        *found.tensors, "out", "x.shape[0]", "x.shape[1] // layer.groups", "channels",
        "channels // layer.groups", "*sizes", "*outs", *found.numbers.values(),
    ])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=found.fits("RUN"), setup=found.setup(),
        launch=(*found.prepared(), "x = x.contiguous()", f"RUN[x.dtype]({given})", "return out"),
    )  # fmt: skip


def _kernel(found: Convolution, chosen: Parameters) -> list[str]:
    weight = "((first + ci) * group + co % group)" if found.turned else "(co * inputs + ci)"
    return [
        "  const int64_t lines = out_z * out_y;",
        pragma(chosen, f"batch * channels * lines * out_x * inputs * {found.taps}", collapse=2),
        "  for (int64_t plane = 0; plane < batch * channels; ++plane)",
        "    for (int64_t line = 0; line < lines; ++line) {",
        "      const int64_t co = plane % channels, first = co / group * inputs;",
        "      const int64_t all = channels / group * inputs;",
        "      const int64_t oz = line / out_y, oy = line % out_y;",
        "      static thread_local std::vector<float> held, taken;",
        "      held.assign(out_x + W, 0.0f);",
        "      taken.resize(in_x + W);",
        "      float* row = held.data();",
        "      for (int64_t ci = 0; ci < inputs; ++ci)",
        "        for (int64_t kz = 0; kz < KZ; ++kz)",
        "          for (int64_t ky = 0; ky < KY; ++ky) {",
        *[f"            {line}" for line in _row(found)],
        "            const int64_t ahead = (plane / channels * all + first + ci) * in_z + at_z;",
        "            const T* from = x + (ahead * in_y + at_y) * in_x;",
        f"            const T* taps = weight + {weight} * (KZ * KY * KX) + (kz * KY + ky) * KX;",
        *[f"            {line}" for line in _taken(found)],
        "            for (int64_t kx = 0; kx < KX; ++kx) {",
        "              const float w = float(taps[kx]);",
        *[f"              {line}" for line in _added(found)],
        "            }",
        "          }",
        *[f"      {line}" for line in _ending(found)],
        "    }",
    ]


def _row(found: Convolution) -> list[str]:
    """Which row of the input a tap of this row of outputs reads; none: the next tap."""
    lines = []
    for axis, up in (("z", "Z"), ("y", "Y")):
        if found.turned:
            lines += [
                f"const int64_t off_{axis} = o{axis} + P{up} - k{axis} * D{up};",
                f"if (off_{axis} < 0 || off_{axis} % S{up}) continue;",
                f"const int64_t at_{axis} = off_{axis} / S{up};",
                f"if (at_{axis} >= in_{axis}) continue;",
            ]
        else:
            lines += [
                f"const int64_t at_{axis} = o{axis} * S{up} + k{axis} * D{up} - P{up};",
                f"if (at_{axis} < 0 || at_{axis} >= in_{axis}) continue;",
            ]
    return lines


def _taken(found: Convolution) -> list[str]:
    """The row in float, with what stands before the convolution."""
    if len(found.before.nodes) == 1:
        return [
            "float* read = taken.data();",
            "for (int64_t i = 0; i < in_x; ++i) read[i] = float(from[i]);",
        ]
    given = {found.before.made: "v"}
    given |= {int(name[1:]): name for name in found.numbers if name.startswith("t")}
    texts = Texts(found.before.nodes, given, cpp=True)
    inner = ["const vec v = load(from, at);", *texts.lines([found.before.output]),
             f"store(read, at, {texts.name(found.before.output)});"]  # fmt: skip
    return [
        "float* read = taken.data();",
        "sweep(in_x, [&](auto at, int) {",
        *[f"  {line}" for line in inner],
        "});",
    ]


def _added(found: Convolution) -> list[str]:
    if found.turned:
        return [
            "// Output of input i: i * SX + off.",
            "const int64_t off = kx * DX - PX;",
            "const int64_t low = off < 0 ? (-off + SX - 1) / SX : 0;",
            "const int64_t most = out_x - 1 - off;",
            "const int64_t high = most < 0 ? 0 : std::min(in_x, most / SX + 1);",
            "for (int64_t i = low; i < high; ++i) row[i * SX + off] += w * read[i];",
        ]
    return [
        "const int64_t off = kx * DX - PX;",
        "const int64_t low = off < 0 ? (-off + SX - 1) / SX : 0;",
        "const int64_t most = in_x - 1 - off;",
        "const int64_t high = most < 0 ? 0 : std::min(out_x, most / SX + 1);",
        "for (int64_t i = low; i < high; ++i) row[i] += w * read[i * SX + off];",
    ]


def _ending(found: Convolution) -> list[str]:
    base = " + float(bias[co])" if found.bias else ""
    given = {found.after.made: "total"}
    lines = ["const int64_t start = (plane * lines + line) * out_x;"]
    inner = [f"const vec total = load(row, at){base};"]
    for n in found.channelwise:
        lines.append(f"const vec c{n} = splat(float(p{n}[co]));")
        given[n] = f"c{n}"
    for n in found.after.of(Kind.INPUT):
        inner.append(f"const vec e{n} = load(r{n} + start, at);")
        given[n] = f"e{n}"
    given |= {int(name[1:]): name for name in found.numbers if name.startswith("s")}
    texts = Texts(found.after.nodes, given, cpp=True)
    inner += texts.lines([found.after.output])
    inner.append(f"store(out + start, at, {texts.name(found.after.output)});")
    return [*lines, "sweep(out_x, [&](auto at, int) {", *(f"  {line}" for line in inner), "});"]
