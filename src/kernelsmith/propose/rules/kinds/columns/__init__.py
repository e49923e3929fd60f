"""Reductions, norms and softmax along a dimension that is not the last, column by column."""

from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Graph,
    Kind,
    Node,
    NotRecognised,
    Shape,
)
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.around import around
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.columns.cpu import render_cpu
from kernelsmith.propose.rules.kinds.columns.graph import Columns
from kernelsmith.propose.rules.kinds.columns.split import splits
from kernelsmith.propose.rules.kinds.columns.triton import render_triton
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.trace import Expr, Traced
from kernelsmith.propose.rules.plan import onlines, plan
from kernelsmith.propose.rules.space import Space
from kernelsmith.propose.rules.values import Late
from kernelsmith.propose.rules.values import Value as Read


def recognise(traced: Traced, backend: str) -> Written:
    """Any graph of the rows template whose rows lie along another dimension than the last.

    Raises:
        NotRecognised: It has none, several, or something else beside them.
    """
    columns = _read(traced)
    if backend == "triton" and "pow" in columns.graph.ops():
        raise NotRecognised("rules do not know a general power in Triton")
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(columns, backend),
        render=lambda chosen: render(columns, chosen),
        does=f"One kernel goes along dimension {columns.around.axis}, lanes side by side across "
        "the dimensions behind it.",
    )  # fmt: skip


def _read(traced: Traced) -> Columns:
    dims: list[Read] = []

    def axis(dim: Read) -> None:
        known = dim.known if isinstance(dim, Late) else dim
        if isinstance(known, tuple) and len(known) == 1:
            known = known[0]
        if not isinstance(known, int) or isinstance(known, bool):
            raise NotRecognised("rules must know the one dimension that this goes along")
        dims.append(known)

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "input":
            if expr.integer:
                raise NotRecognised("rules do not know integer inputs here")
            return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
        if expr.op == "parameter":
            return lowering.build.add(
                Node(kind=Kind.PARAMETER, text=expr.text, shape=_shape(expr, dims))
            )
        return None

    def _shape(expr: Expr, found: list[Read]) -> Shape:
        if expr.dims is not None and all(each == "1" for each in expr.dims):
            return Shape.SCALAR
        rank = traced.inputs[0].rank
        if expr.dims is None or not found or rank is None or not isinstance(found[0], int):
            raise NotRecognised(f"rules cannot tell how {expr.text} broadcasts")
        place = found[0] - rank if found[0] >= 0 else found[0]
        wide = [i - len(expr.dims) for i, each in enumerate(expr.dims) if each != "1"]
        if wide != [place]:
            raise NotRecognised(f"rules know parameters along the dimension only, not {expr.text}")
        return Shape.COLUMN

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules do not know a forward that returns several values")
    lowering = Lowering(leaf, axis)
    output = lowering.lower(traced.result)
    if not dims:
        raise NotRecognised("rules find no reduction along a dimension")
    nodes, output = lowering.needed(output, traced.module.task)
    texts = {node.text for node in nodes if node.kind is Kind.INPUT}
    placed = [around([e for e in traced.inputs if e.text in texts], each) for each in _plain(dims)]
    if any(each != placed[0] for each in placed):
        raise NotRecognised("rules do not know reductions along different dimensions")
    if placed[0].last:
        raise NotRecognised("rules leave the last dimension to the rows template")
    kinds = {node.kind for node in nodes}
    if Kind.TOTAL in kinds or Kind.REDUCE not in kinds:
        raise NotRecognised("rules know reductions along one dimension here")
    if nodes[output].shape not in (Shape.FULL, Shape.ROW, Shape.SQUEEZED):
        raise NotRecognised("rules do not know this output")
    graph = Graph(nodes=nodes, output=output, shaped_like=placed[0].like)
    return Columns(graph=graph, around=placed[0])


def _plain(dims: list[Read]) -> list[int]:
    return [each for each in dims if isinstance(each, int)]


def _space(columns: Columns, backend: str) -> Space:
    graph = columns.graph
    online = onlines(graph)
    passes = p.choice("passes", ("multi", "online"), "maximum and sum in one sweep", safe="multi")
    if backend == "cpu":
        made = [
            p.width(),
            p.unroll("8", "vectors side by side", "1", "2", "4", "8", "16", "32"),
            *p.threads("16384"),
        ]
        if graph.result.shape is Shape.FULL:
            made.append(p.stores())
        if graph.ops() & POLYNOMIAL:
            made.append(p.math())
        if any(n.op == "sum" for n in graph.nodes):
            made.append(
                p.choice("accumulate", ("blocked", "double"), "how partial sums are kept",
                         safe="double")
            )  # fmt: skip
        made += [passes] if online else []
        return p.a_space("columns", made, (
            {}, {"unroll": "32"}, {"unroll": "4", "stores": "stream"},
            {"passes": "online", "unroll": "4"}, {"width": "8", "unroll": "16"},
        ))  # fmt: skip
    single = len(plan(graph, keep=False, online=False).sweeps) == 1
    parted = splits(columns)
    made = [
        p.sized("block", "128", "columns per program", "32", "64", "128", "256", "512"),
        # Of eight the assembler unrolls four steps, with registers of their own for what is read.
        p.sized("steps", "8" if parted else "16", "elements along the dimension per step",
                "4", "8", "16", "32", "64"),
        p.warps("4"), p.evict(),
        p.sized("stages", "1", "loads run ahead", "1", "2", "3"),
    ]  # fmt: skip
    if not single:
        made.append(p.sized("whole", "8192", "columns up to this many elements stay in registers",
                            "1024", "4096", "8192", "16384"))  # fmt: skip
        made += [passes] if online else []
    if parted:
        made.append(p.sized("split", "16384", "programs that share columns where there are fewer",
                            "none", "4096", "16384", "65536"))  # fmt: skip
        return p.a_space("columns", made, (
            {}, {"steps": "16", "stages": "3"},
            {"split": "65536", "block": "256", "warps": "8"}, {"block": "64", "steps": "32"},
            {"split": "none", "steps": "16"}, {"block": "512", "warps": "8"},
        ))  # fmt: skip
    return p.a_space("columns", made, (
        {}, {"block": "64", "steps": "32"}, {"block": "256", "steps": "8", "warps": "8"},
        {"block": "128", "steps": "32", "warps": "8"}, {"passes": "online"},
        {"block": "64", "steps": "64", "warps": "8", "stages": "3"},
        {"whole": "16384", "block": "64", "warps": "8"},
    ))  # fmt: skip
