"""A scan as C++: prefixes within a vector by shifted additions, the carry in double."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.parameters import down_columns, pragma
from kernelsmith.propose.rules.kinds.scan.graph import Scan
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.space import Parameters

_PREFIX = """\
#include <utility>
// The vector moved up by S lanes (down where backwards); `rest` comes in.
template <int S, class V, int... K>
static inline V moved(V v, V rest, std::integer_sequence<int, K...>) {{
  return __builtin_shufflevector(v, rest, ({lane})...);
}}
template <int S, class V> static inline V upto(V v) {{
  if constexpr (S < W) {{
    v = v {sign} moved<S>(v, V{{}} + {identity}, std::make_integer_sequence<int, W>());
    return upto<2 * S>(v);
  }}
  return v;
}}
"""
_CARRY = {
    "sum": """\
struct Carry {  // what came before, in double; added as two floats
  double all = 0;
  vec behind(vec v, float total) {
    const float high = float(all), low = std::isfinite(high) ? float(all - high) : 0.0f;
    all += total;
    return (v + low) + high;
  }
};
""",
    "prod": """\
struct Carry {  // what came before, in double
  double all = 1;
  vec behind(vec v, float total) {
    const float before = float(all);
    all *= total;
    return v * before;
  }
};
""",
}
_EXACT = """\
struct Carry {{  // in double throughout
  double all = {identity};
  vec behind(dvec v, double total) {{
    const vec made = __builtin_convertvector(v {sign} all, vec);
    all {sign}= total;
    return made;
  }}
}};
"""
_SIGN = {"sum": "+", "prod": "*"}
_IDENTITY = {"sum": "0.0f", "prod": "1.0f"}


def render_cpu(scan: Scan, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    text = prelude.VECTORS.format(
        width=chosen["width"], unroll=chosen.get("unroll", "1"),
        store=prelude.STORE[chosen["stores"]],
    ) + prelude.SIMPLE + cpp_functions(scan.nodes, polynomial=True, also=frozenset())  # fmt: skip
    if scan.around.last:
        lane = "K >= S ? K - S : W + K" if not scan.reverse else "K + S < W ? K + S : W + K"
        text += _PREFIX.format(lane=lane, sign=_SIGN[scan.op], identity=_IDENTITY[scan.op][:-1])
        exact = chosen["accumulate"] == "double"
        text += _EXACT.format(sign=_SIGN[scan.op], identity=_IDENTITY[scan.op][:-1]) if exact else (
            _CARRY[scan.op])  # fmt: skip
    arguments = [
        *[("const uint8_t*" if text in scan.around.masks else "const T*", text)
          for text in scan.inputs.values()],
        ("T*", "out"), ("int64_t", "outer"), ("int64_t", "length"), ("int64_t", "inner"),
        *[("float", f"s{n}") for n in scan.numbers],
    ]  # fmt: skip
    listed = ", ".join(f"{kind} {name}" for kind, name in arguments)
    lines = ["template <class T>", f"static void kernel({listed}) {{"]
    lines += _rows(scan, chosen) if scan.around.last else _columns(scan, chosen)
    text += "\n".join([*lines, "}", ""]) + cpp_entries(arguments)
    given = ", ".join([*scan.inputs.values(), "out", "outer", "length", "inner",
                       *scan.numbers.values()])  # fmt: skip
    return Parts(
        kernel=cpp_library(text), fits=scan.around.fits("RUN"), setup=scan.around.setup(),
        launch=(*scan.around.dense(), f"out = torch.empty_like({scan.around.like})",
                f"RUN[{scan.around.like}.dtype]({given})", "return out"),
    )  # fmt: skip


def _body(scan: Scan, at: str, middle: list[str]) -> list[str]:
    """Loads, what is scanned, the scan itself, what is written."""
    lines = [f"const vec v{n} = load({text} + {at}, at);" for n, text in scan.inputs.items()]
    given = {n: f"v{n}" for n in scan.inputs} | {n: f"s{n}" for n in scan.numbers}
    texts = Texts(scan.nodes, given, cpp=True)
    lines += texts.lines([scan.before])
    lines += [each.replace("<value>", texts.name(scan.before)) for each in middle]
    if (scanned := scan.scanned) is not None:
        texts.given[scanned] = "scanned"
    lines += texts.lines([scan.output])
    return [*lines, f"store(out + {at}, at, {texts.name(scan.output)});"]


def _rows(scan: Scan, chosen: Parameters) -> list[str]:
    edge = "0" if scan.reverse else "W - 1"
    value = f"only(<value>, at, {_IDENTITY[scan.op]})"
    if chosen["accumulate"] == "double":
        value = f"__builtin_convertvector({value}, dvec)"
    middle = [
        f"const auto local = upto<1>({value});",
        f"const vec scanned = carry.behind(local, local[{edge}]);",
    ]
    steps = ["for (int64_t i = 0; i + W <= length; i += W) each(Full{i});",
             "if (rest) each(Part{length - rest, int(rest)});"]  # fmt: skip
    if scan.reverse:
        steps = ["if (rest) each(Part{length - rest, int(rest)});",
                 "for (int64_t i = length - rest - W; i >= 0; i -= W) each(Full{i});"]  # fmt: skip
    return [
        f"  {pragma(chosen, 'outer * length')}".lstrip(),
        "  for (int64_t row = 0; row < outer; ++row) {",
        "    const int64_t start = row * length, rest = length % W;",
        "    Carry carry;",
        "    auto each = [&](auto at) {",
        *[f"      {line}" for line in _body(scan, "start", middle)],
        "    };",
        *[f"    {line}" for line in steps],
        "  }",
    ]


def _columns(scan: Scan, chosen: Parameters) -> list[str]:
    """Lanes lie across the inner dimensions: nothing crosses a vector."""
    middle = [
        f"carry[u] {_SIGN[scan.op]}= __builtin_convertvector(<value>, dvec);",
        "const vec scanned = __builtin_convertvector(carry[u], vec);",
    ]
    order = "length - 1 - step" if scan.reverse else "step"
    body = [
        "dvec carry[many];",
        f"for (auto& each : carry) each = dvec{{}} + {_IDENTITY[scan.op][:-1]};",
        "for (int64_t step = 0; step < length; ++step) {",
        f"  const int64_t start = first + ({order}) * inner;",
        "#pragma GCC unroll 8",
        "  for (int u = 0; u < many; ++u) {",
        "    auto at = from;",
        "    at.i += u * W;",
        *[f"    {line}" for line in _body(scan, "start", middle)],
        "  }",
        "}",
    ]
    return down_columns(chosen, body)
