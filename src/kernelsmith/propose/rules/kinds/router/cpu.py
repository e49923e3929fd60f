"""A router as C++: scores as sortable integers, the best taken out one after the other."""

from kernelsmith.propose.rules import cpp_prelude as prelude
from kernelsmith.propose.rules.graph import Graph, Kind, Shape
from kernelsmith.propose.rules.kinds.candidate import Parts, cpp_entries, cpp_library
from kernelsmith.propose.rules.kinds.keys import UNKEYED
from kernelsmith.propose.rules.kinds.parameters import pragma
from kernelsmith.propose.rules.kinds.router.graph import Router
from kernelsmith.propose.rules.kinds.texts import Texts, cpp_functions
from kernelsmith.propose.rules.plan import plan
from kernelsmith.propose.rules.space import Parameters

_WIDEST = 1024
_KEYS = (
    """\
// Integers in the order of the floats; NaN is the largest, as in torch.
static inline ivec keys(vec v) {
  const ivec bits = (v != v) ? ivec{} + 0x7fc00000 : (ivec)v;
  return bits ^ ((bits >> 31) & 0x7fffffff);
}
"""
    + UNKEYED
    + """\
struct Place {
  int32_t key, at;
};
static inline Place foremost(ivec top, ivec where) {  // the largest; of equal ones the first
#ifdef ZMM
  const int32_t key = _mm512_reduce_max_epi32((__m512i)top);
  const __mmask16 equal = _mm512_cmpeq_epi32_mask((__m512i)top, _mm512_set1_epi32(key));
  return {key, _mm512_mask_reduce_min_epi32(equal, (__m512i)where)};
#else
  Place found = {top[0], where[0]};
  for (int k = 1; k < W; ++k)
    if (top[k] > found.key || (top[k] == found.key && where[k] < found.at))
      found = {top[k], where[k]};
  return found;
#endif
}
"""
)
_BEST = """\
for (int j = 0; j < {k}; ++j) {{
  ivec top = held[0], where = lanes();
  for (int b = 1; b < blocks; ++b) {{
    const ivec more = held[b] > top;
    top = more ? held[b] : top;
    where = more ? lanes() + b * W : where;
  }}
  const Place found = foremost(top, where);
  best[j] = unkeyed(found.key);
  indices[row * {k} + j] = found.at;
  reinterpret_cast<int32_t*>(held)[found.at] = INT32_MIN;  // below -inf: taken
}}"""


def render_cpu(router: Router, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    ops = {n.op for n in (*router.scored, *router.weighed) if n.kind is Kind.REDUCE}
    text = "#include <climits>\n" + prelude.VECTORS.format(
        width=chosen["width"], unroll="1", store=prelude.STORE["plain"]
    ) + prelude.SIMPLE  # fmt: skip
    text += cpp_functions(
        (*router.scored, *router.weighed), polynomial=chosen["math"] == "poly", also=frozenset()
    )
    text += prelude.SUMS["lanes"] if "sum" in ops else ""
    for op, name, worst in (("max", "Max", "-INFINITY"), ("min", "Min", "INFINITY")):
        if op in ops:
            text += prelude.EXTREME.format(name=name, worst=worst, pick=f"v{op}")
    text += _KEYS
    arguments = [("const T*", router.x), ("T*", "weights"), ("int64_t*", "indices"),
                 ("int64_t", "rows"), ("int64_t", "dim")]  # fmt: skip
    before, scored = _scores(router)
    lines = [
        "template <class T>",
        f"static void kernel({', '.join(f'{kind} {name}' for kind, name in arguments)}) {{",
        "  const int blocks = int((dim + W - 1) / W);",
        pragma(chosen, "rows * dim"),
        "  for (int64_t row = 0; row < rows; ++row) {",
        f"    alignas(64) ivec held[{_WIDEST} / W];",
        *[f"    {line}" for line in before],
        f"    float best[{_lanes(router, chosen)}] = {{}};",
        *[f"    {line}" for line in _BEST.format(k=router.k).splitlines()],
        *[f"    {line}" for line in [*scored, *_weights(router)]],
        "  }",
        "}",
        "",
    ]
    text += "\n".join(lines) + cpp_entries(arguments)
    return Parts(
        kernel=cpp_library(text), fits=router.fits("RUN", _WIDEST),
        launch=(*router.prepared(),
                f"RUN[{router.x}.dtype]({router.x}, weights, indices, rows, dim)",
                router.returned()),
    )  # fmt: skip


def _lanes(router: Router, chosen: Parameters) -> int:
    width = int(chosen["width"])
    return -(-router.k // width) * width


def _sweeps(
    router: Router, *, after: bool, length: str, start: str, end: str
) -> tuple[list[str], list[str], Texts]:
    """Reductions along a row, as the rows template orders them, and loads of the last values."""
    nodes = router.weighed if after else router.scored
    output = router.weights if after else router.score
    graph = Graph(nodes=nodes, output=output)
    have: dict[int, str] = {n: f"float({length})" for n in graph.of(Kind.COUNT)}
    names = {"sum": "Sum", "max": "Max", "min": "Min"}
    mark = "w" if after else "a"
    lines: list[str] = []

    def per_element(place: str) -> tuple[list[str], Texts]:
        given = have | {n: f"v{n}" for n in graph.of(Kind.INPUT)}
        loads = [f"const vec v{n} = load({place}, at);" for n in graph.of(Kind.INPUT)]
        return loads, Texts(nodes, given, cpp=True)

    for sweep in plan(graph, keep=False, online=False).sweeps:
        if sweep.writes:
            break
        lines += [f"{names[nodes[n].op]} {mark}{n};" for n in sweep.reduces]
        loads, texts = per_element(start)
        inside = texts.lines([nodes[n].args[0] for n in sweep.reduces])
        lines.append(f"sweep({length}, [&](auto at, int u) {{")
        lines += [f"  {line}" for line in loads + inside]
        lines += [f"  {mark}{n}.add({texts.name(nodes[n].args[0])}, at, u);" for n in sweep.reduces]
        lines.append("});")
        have |= {n: f"splat({mark}{n}.total())" for n in sweep.reduces}
        rowwise = [
            n for n, node in enumerate(nodes)
            if node.shape is Shape.ROW and node.kind in (Kind.UNARY, Kind.BINARY, Kind.SELECT)
            and set(node.args) <= set(have) | set(graph.of(Kind.CONSTANT)) and n not in have
        ]  # fmt: skip
        made = Texts(nodes, have, cpp=True)
        hoisted = made.lines(rowwise)
        lines += hoisted
        have |= {n: made.name(n) for n in rowwise}
    loads, texts = per_element(end)
    return lines, loads, texts


def _scores(router: Router) -> tuple[list[str], list[str]]:
    """What is compared, for the whole row, and the scores of the best."""
    row = f"{router.x} + row * dim"
    end = "best" if router.rising else row
    lines, loads, texts = _sweeps(router, after=False, length="dim", start=row, end=end)
    inside = loads + texts.lines([router.score])
    value = texts.name(router.score)
    held = [
        "  const ivec there = lanes() < int(std::min<int64_t>(W, dim - at.i));",
        "  held[at.i / W] = there ? key : ivec{} + INT32_MIN;",
        "});",
    ]
    if not router.rising:
        key = f"  const ivec key = keys(rounded<T>({value}));"
        made = ["sweep(dim, [&](auto at, int) {", *[f"  {line}" for line in inside], key, *held]
        return [*lines, *made], []
    made = ["sweep(dim, [&](auto at, int) {", f"  const ivec key = keys(load({row}, at));", *held]
    scored = [
        f"sweep({router.k}, [&](auto at, int) {{",
        *[f"  {line}" for line in inside],
        f"  store(best, at, rounded<T>({value}));",
        "});",
    ]
    return [*lines, *made], scored


def _weights(router: Router) -> list[str]:
    lines, loads, texts = _sweeps(
        router, after=True, length=f"int64_t({router.k})", start="best", end="best"
    )
    inside = loads + texts.lines([router.weights])
    return [
        *lines,
        f"sweep({router.k}, [&](auto at, int) {{",
        *[f"  {line}" for line in inside],
        f"  store(weights + row * {router.k}, at, {texts.name(router.weights)});",
        "});",
    ]
