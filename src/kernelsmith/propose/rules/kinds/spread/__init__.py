"""Tensors of different shapes over one grid: broadcasting, look-ups, bags, mixed reductions."""

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Kind,
    Node,
    NotRecognised,
    Shape,
)
from kernelsmith.propose.rules.kinds import lookup
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.spread.cpu import render_cpu
from kernelsmith.propose.rules.kinds.spread.graph import Grid, Spread, grouped, leaf_nodes
from kernelsmith.propose.rules.kinds.spread.layers import is_pool, normal
from kernelsmith.propose.rules.kinds.spread.placing import Placing, is_ordered
from kernelsmith.propose.rules.kinds.spread.shapes import Shapes
from kernelsmith.propose.rules.kinds.spread.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Expr, Traced
from kernelsmith.propose.rules.space import Parameter, Space

_LEFT = (Kind.REDUCE, Kind.TOTAL, Kind.COUNT, Kind.VIEW, Kind.PARAMETER)


def broadcast(traced: Traced, backend: str) -> Written:
    """Elementwise work on tensors that broadcast otherwise than over the last dimension.

    Raises:
        NotRecognised: It is something else.
    """
    spread = read(traced)
    if spread.indexed or spread.reduction:
        raise NotRecognised("rules know elementwise work here")
    axes = [a for dim in spread.result for a in dim]
    last = set(spread.result[-1]) if spread.result else set()
    usual: tuple[set[int], ...] = (set(axes), last, set(axes) - last, set())
    held = [{c.axis for c in leaf.coordinates} - {None} for leaf in spread.grid.leaves]
    if all(each in usual for each in held):
        raise NotRecognised("rules leave what broadcasts over the last dimension to the rows")
    return _written(
        traced, backend, spread, "broadcast",
        "Every tensor is read as it is: those that broadcast once per row or with the row, "
        "so that nothing is repeated in memory.",
    )  # fmt: skip


def gather(traced: Traced, backend: str) -> Written:
    """Elements read at numbers that another input holds; summed over bags or not.

    Raises:
        NotRecognised: It is something else.
    """
    spread = read(traced)
    if not spread.indexed:
        raise NotRecognised("rules find no look-up")
    if _known_as_lookup(traced, backend):
        raise NotRecognised("rules leave an embedding alone to the kind of that name")
    does = (
        "Rows are picked by number and put together while they are in registers; what was picked "
        "is never written down."
        if spread.reduction
        else "Elements go straight from where their number says to where they belong, changed on "
        "the way."
    )
    return _written(traced, backend, spread, "gather", does)


def mixed(traced: Traced, backend: str) -> Written:
    """A reduction that rows and columns do not know: over dimensions apart, or of what broadcasts.

    Raises:
        NotRecognised: It is something else.
    """
    spread = read(traced)
    if spread.indexed or not spread.reduction:
        raise NotRecognised("rules find no reduction")
    grid = spread.grid
    every = {a for group in grid.groups for a in group}
    full = all({c.axis for c in leaf.coordinates} - {None} == every for leaf in grid.leaves)
    groups = len(grid.groups) - spread.kept
    pooled = isinstance(traced.result, Expr) and is_pool(traced.result)
    known = full and groups == 1 and (spread.across or len(grid.groups[-1]) == 1)
    if known and not pooled:
        raise NotRecognised("rules leave reductions along one dimension to rows and columns")
    return _written(
        traced, backend, spread, "mixed",
        "One sweep over the input puts together all that belongs to an output, wherever it lies.",
    )  # fmt: skip


def read(traced: Traced) -> Spread:
    """What a task computes over one grid.

    Raises:
        NotRecognised: It is something else.
    """
    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules do not know a forward that returns several values")
    result = normal(traced.result)
    placing = Placing(Shapes(traced.module))
    spread = spread_of(result, placing)
    if placing.scattered is not None:
        raise NotRecognised("rules leave what is added up by number to the kind of that name")
    return spread


def spread_of(result: Expr, placing: Placing) -> Spread:
    """The grid of an expression.

    Raises:
        NotRecognised: There is none.
    """
    if result.op == "place" or not is_ordered(result):
        raise NotRecognised("rules know outputs that lie row by row")
    axes = placing.fresh(placing.shapes.of(result))
    root = placing.placed(result, axes)
    task, inner = placing.shapes.task, placing.inner
    nodes, output = lowered(root, task)
    before, reduced = lowered(inner, task) if inner is not None else ((), 0)
    kept = [a for dim in axes for a in dim]
    if not kept:
        raise NotRecognised("rules know outputs of more than one element here")
    computes = placing.reduction or placing.scattered or _picks(placing)
    if nodes[output].kind is Kind.INPUT and not computes:
        raise NotRecognised("rules find nothing to compute here")
    groups = grouped(placing.leaves, kept)
    if placing.reduction and not placing.reduced:
        raise NotRecognised("rules find nothing to reduce")
    if placing.reduction and set(placing.order) != {*kept, *placing.reduced}:
        raise NotRecognised("rules do not know a reduction that is used again all along")
    grid = Grid(
        leaves=tuple(placing.leaves),
        groups=tuple(groups + grouped(placing.leaves, placing.reduced)),
    )
    for axis in (*kept, *placing.reduced):
        if all(leaf.place(axis) is None for leaf in grid.leaves):
            raise NotRecognised("rules do not know a dimension that no tensor has")
    if all(leaf.integer for leaf in grid.leaves):
        raise NotRecognised("rules do not know integer inputs here")
    spread = Spread(
        grid=grid, kept=len(groups), result=axes, nodes=nodes, output=output,
        reduction=placing.reduction, before=before, reduced=reduced,
        across=bool(placing.reduction) and placing.order[-1] in placing.reduced,
    )  # fmt: skip
    _check_lanes(spread)
    return spread


def lowered(expr: Expr, task: Task) -> tuple[tuple[Node, ...], int]:
    """The graph of an expression over places."""

    def leaf(lowering: Lowering, found: Expr) -> int | None:
        if found.op == "place":
            return lowering.build.add(Node(kind=Kind.INPUT, text=found.text, shape=Shape.FULL))
        return None

    lowering = Lowering(leaf)
    nodes, output = lowering.needed(lowering.lower(expr), task)
    if any(node.kind in _LEFT for node in nodes):
        raise NotRecognised("rules know elementwise work here")
    return nodes, output


def _picks(placing: Placing) -> bool:
    return any(leaf.integer for leaf in placing.leaves)


def _check_lanes(spread: Spread) -> None:
    """Refuse what would be read with a stride: a transposed copy needs tiles."""
    inner = len(spread.grid.groups) - 1 if spread.across else spread.kept - 1
    read_by = set(leaf_nodes((*spread.before, *spread.nodes)).values())
    for number in read_by:
        for term in spread.grid.terms(number):
            if term.group == inner and term.stride != "1" and not _late(spread, number, inner):
                raise NotRecognised("rules do not know transposed tensors here")


def _late(spread: Spread, number: int, inner: int) -> bool:
    """Whether an element's place is read anew for every lane."""
    return any(
        t.index is not None and spread.grid.moves(t.index, inner) for t in spread.grid.terms(number)
    )


def _known_as_lookup(traced: Traced, backend: str) -> bool:
    try:
        lookup.recognise(traced, backend)
    except NotRecognised:
        return False
    return True


def _written(traced: Traced, backend: str, spread: Spread, name: str, does: str) -> Written:
    ops = {n.op for n in (*spread.before, *spread.nodes)}
    if backend != "cpu" and "pow" in ops:
        raise NotRecognised("rules do not know a general power in Triton")
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, does=does,
        space=cpu_space(name, spread) if backend == "cpu" else triton_space(name),
        render=lambda chosen: render(spread, chosen),
    )  # fmt: skip


def cpu_space(name: str, spread: Spread) -> Space:
    """Choices of the C++."""
    made: list[Parameter] = [p.width()]
    if spread.reduction:
        made += [p.unroll("4", "vectors side by side", "1", "2", "4", "8")]
        if spread.reduction in ("sum", "mean"):
            made.append(p.choice("accumulate", ("blocked", "double"), "how partial sums are kept",
                                 safe="double"))  # fmt: skip
    else:
        made += [
            p.unroll("4", "vectors per step"),
            p.sized("span", "8192", "elements of a row per task", "1024", "4096", "8192", "32768"),
            p.stores(),
        ]
    made += p.threads()
    if {n.op for n in (*spread.before, *spread.nodes)} & {*POLYNOMIAL, "sin", "cos"}:
        made.append(p.math())
    return p.a_space(name, made, (
        {}, {"stores": "stream"}, {"width": "8"}, {"unroll": "8"}, {"unroll": "1"},
        {"accumulate": "double"}, {"span": "1024"},
    ))  # fmt: skip


def triton_space(name: str) -> Space:
    """Choices of the Triton kernel."""
    made = [
        p.sized("tile", "1024", "elements per program", "128", "256", "512", "1024", "2048"),
        p.warps("4"), p.evict(),
    ]  # fmt: skip
    return p.a_space(name, made, (
        {}, {"tile": "512"}, {"tile": "2048", "warps": "8"}, {"tile": "256", "warps": "2"},
        {"evict": "first"},
    ))  # fmt: skip
