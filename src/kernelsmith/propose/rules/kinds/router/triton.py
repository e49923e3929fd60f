"""A router as Triton: some rows per program, all of each in registers."""

from kernelsmith.propose.rules.graph import Graph, Kind, Node
from kernelsmith.propose.rules.kinds.around import DTYPES
from kernelsmith.propose.rules.kinds.candidate import Parts
from kernelsmith.propose.rules.kinds.router.graph import Router
from kernelsmith.propose.rules.kinds.texts import Texts, triton_functions
from kernelsmith.propose.rules.space import Parameters

_WIDEST = 8192
_WORST = {"sum": "0.0", "max": 'float("-inf")', "min": 'float("inf")'}


def render_triton(router: Router, chosen: Parameters) -> Parts:
    """Write one choice of parameters."""
    few = 1 << (router.k - 1).bit_length()
    x = router.x
    end = "best" if router.rising else "value"
    first, score, scored = _values(
        router.scored, router.score, given="value", mask="inside", length="dim", end=end
    )
    second, weight, weighed = _values(
        router.weighed, router.weights, given="best", mask="kept", length=str(router.k), end="best"
    )
    kind = f".to({x}.dtype.element_ty).to(tl.float32)"
    compared = [f"score = ({scored}){kind}"] if not router.rising else ["score = value"]
    behind = [*score, f"best = ({scored}){kind}"] if router.rising else []
    lines = [
        "@triton.jit",
        f"def route({x}, weights, indices, rows, dim, ROWS: tl.constexpr, BLOCK: tl.constexpr):",
        *[f"    {line}" for line in [
            "row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]",
            "at = tl.arange(0, BLOCK)[None, :]",
            "inside = (row < rows) & (at < dim)",
            f"value = tl.load({x} + row * dim + at, mask=inside, other=0.0).to(tl.float32)",
            *first, *([] if router.rising else score),
            "# Integers in the order of the floats; NaN is the largest, as in torch.",
            *compared,
            "bits = tl.where(score != score, 0x7fc00000, score.to(tl.int32, bitcast=True))",
            "key = tl.where(inside, bits ^ ((bits >> 31) & 0x7fffffff), -2147483648)",
            f"which = tl.arange(0, {few})[None, :]",
            f"kept = which < {router.k}",
            f"best = tl.zeros([ROWS, {few}], tl.float32)",
            f"place = tl.zeros([ROWS, {few}], tl.int32)",
            f"for j in tl.static_range({router.k}):",
            "    most = tl.max(key, axis=1, keep_dims=True)",
            "    first = tl.min(tl.where(key == most, at, BLOCK), axis=1, keep_dims=True)",
            "    bits = most ^ ((most >> 31) & 0x7fffffff)",
            "    best = tl.where(which == j, bits.to(tl.float32, bitcast=True), best)",
            "    place = tl.where(which == j, first, place)",
            "    key = tl.where(at == first, -2147483648, key)  # below -inf: taken",
            *behind, *second, *weight,
            "kept = kept & (row < rows)",
            f"tl.store(weights + row * {router.k} + which, {weighed}, mask=kept)",
            f"tl.store(indices + row * {router.k} + which, place.to(tl.int64), mask=kept)",
        ]],
    ]  # fmt: skip
    return Parts(
        kernel=triton_functions((*router.scored, *router.weighed)) + "\n".join(lines),
        fits=router.fits(DTYPES, _WIDEST),
        launch=(
            *router.prepared(),
            "block = triton.next_power_of_2(dim)",
            f"tile = max(1, {chosen['block']} // block)",
            f"route[(triton.cdiv(rows, tile),)]({x}, weights, indices, rows, dim, ROWS=tile, "
            f"BLOCK=block, num_warps={chosen['warps']})",
            router.returned(),
        ),
    )  # fmt: skip


def _values(
    nodes: tuple[Node, ...], output: int, *, given: str, mask: str, length: str, end: str
) -> tuple[list[str], list[str], str]:
    """Reductions of all that is given, then the output at ``end``, each with its lines."""
    graph = Graph(nodes=nodes, output=output)
    have = {n: f"tl.cast({length}, tl.float32)" for n in graph.of(Kind.COUNT)}
    inputs = graph.of(Kind.INPUT)
    texts, lines = Texts(nodes, have | dict.fromkeys(inputs, given), cpp=False), []
    for n in graph.of(Kind.REDUCE):
        node = nodes[n]
        lines += texts.lines([node.args[0]])
        value = f"tl.where({mask}, {texts.name(node.args[0])}, {_WORST[node.op]})"
        have[n] = f"{given}{n}"
        lines.append(f"{have[n]} = tl.{node.op}({value}, axis=1, keep_dims=True)")
        texts.given[n] = have[n]
    if end != given:
        texts = Texts(nodes, have | dict.fromkeys(inputs, end), cpp=False)
    last = texts.lines([output])
    return lines, last, texts.name(output)
