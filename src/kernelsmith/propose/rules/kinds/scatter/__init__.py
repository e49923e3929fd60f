"""Rows or elements added up where numbers say: index_add and scatter_add."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import POLYNOMIAL, Kind, Node, NotRecognised
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.scatter.cpu import render_cpu
from kernelsmith.propose.rules.kinds.scatter.graph import Scatter
from kernelsmith.propose.rules.kinds.scatter.triton import render_triton
from kernelsmith.propose.rules.kinds.spread import lowered, spread_of
from kernelsmith.propose.rules.kinds.spread.graph import Coordinate, Grid, Leaf, grouped
from kernelsmith.propose.rules.kinds.spread.layers import normal
from kernelsmith.propose.rules.kinds.spread.placing import Axes, Placing
from kernelsmith.propose.rules.kinds.spread.shapes import SCATTERS, ZEROS, Shapes, given, tensor
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value
from kernelsmith.propose.rules.space import Space


def recognise(traced: Traced, backend: str) -> Written:
    """One ``index_add`` or ``scatter_add`` of inputs, elementwise work before and behind it.

    Raises:
        NotRecognised: It is something else.
    """
    scatter = _read(traced)
    ops = {n.op for n in (*scatter.nodes, *scatter.after.nodes)}
    if backend != "cpu" and "pow" in ops:
        raise NotRecognised("rules do not know a general power in Triton")
    render = render_cpu if backend == "cpu" else render_triton
    does = (
        "Every thread owns a part of the sums and adds what belongs there, in order: the result "
        "is the same on any number of threads."
        if backend == "cpu"
        else "Terms are computed where they are read and added to float32 sums by atomics; "
        "the order of additions is left open, as in torch."
    )
    return Written(
        backend=backend, module=traced.module, space=_space(backend, ops), does=does,
        render=lambda chosen: render(scatter, chosen),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Target:
    """Where a term goes."""

    source: Expr
    axes: Axes
    coordinates: tuple[Coordinate, ...]


def _read(traced: Traced) -> Scatter:
    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules do not know a forward that returns several values")
    shapes = Shapes(traced.module)
    behind = Placing(shapes)
    after = spread_of(normal(traced.result), behind)
    found = behind.scattered
    if found is None:
        raise NotRecognised("rules find nothing that is added up by number")
    if any(leaf.view for leaf in (*after.grid.leaves, *behind.leaves)):
        raise NotRecognised("rules do not know tiles beside a scatter")
    if after.reduction:
        raise NotRecognised("rules do not know a reduction behind a scatter")
    base = tensor(found.args[0])
    single = _check_base(base)
    placing = Placing(shapes)
    target = _target(found, placing)
    nodes, output = lowered(placing.placed(target.source, target.axes), shapes.task)
    if placing.scattered is not None or placing.reduction:
        raise NotRecognised("rules know elementwise work before a scatter")
    to = Leaf("held", target.coordinates, sizes=shapes.sizes(base))
    leaves = (*placing.leaves, to)
    axes = [a for dim in target.axes for a in dim]
    grid = Grid(leaves=leaves, groups=tuple(grouped(leaves, axes)))
    if not axes or any(all(x.place(a) is None for x in placing.leaves) for a in axes):
        raise NotRecognised("rules do not know a dimension that no tensor has")
    if all(leaf.integer for leaf in placing.leaves):
        raise NotRecognised("rules do not know integer inputs here")
    return Scatter(grid=grid, nodes=nodes, output=output, after=after, single=single,
                   plain=_is_plain(after.nodes, after.output))  # fmt: skip


def _target(expr: Expr, placing: Placing) -> _Target:
    b = given(expr, SCATTERS[expr.op])
    source = tensor(b.get("source", b.get("src")))
    index, base = tensor(b["index"]), tensor(b["x"])
    if b.get("alpha", 1) != 1:
        raise NotRecognised("rules do not know index_add with alpha")
    shapes = placing.shapes
    form, at = shapes.of(source), shapes.axis(base, b["dim"])
    if len(form) != len(shapes.of(base)):
        raise NotRecognised("rules know a scatter of equal ranks")
    axes = placing.fresh(form)
    made = [Coordinate(axis=a[0]) if len(a) == 1 else Coordinate() for a in axes]
    if any(len(a) > 1 for a in axes):
        raise NotRecognised("rules do not know a scatter of flattened dimensions")
    if expr.op == "index_add":
        if len(shapes.of(index)) != 1:
            raise NotRecognised("rules know index_add by one list of numbers")
        made[at] = placing.at(index, (axes[at],))
    else:
        if [bool(dim) for dim in shapes.of(index)] != [bool(dim) for dim in form]:
            raise NotRecognised("rules know scatter_add of as many numbers as terms")
        made[at] = placing.at(index, axes)
    return _Target(source, axes, tuple(made))


def _check_base(base: Expr) -> bool:
    """Whether it is float32 whatever the inputs are; refuse what is neither that nor theirs."""
    if base.op not in ZEROS:
        if base.integer:
            raise NotRecognised("rules do not know a scatter onto integers")
        return False
    settings: dict[str, Value] = dict(base.settings)
    kind = settings.pop("dtype", None)
    settings.pop("device", None)
    like = base.args[0] if base.op != "zeros" else None
    if kind is not None:
        like = kind.args[0] if isinstance(kind, Expr) and kind.op == "dtype" else None
        if like is None:
            raise NotRecognised("rules do not know a scatter in another dtype")
    if settings or (isinstance(like, Expr) and like.integer):
        raise NotRecognised("rules do not know what this is added to")
    return like is None


def _is_plain(nodes: tuple[Node, ...], output: int) -> bool:
    """Whether the sums are the result."""
    return nodes[output].kind is Kind.INPUT


def _space(backend: str, ops: set[str]) -> Space:
    if backend == "cpu":
        made = [
            p.width(), p.unroll("4", "vectors per step"),
            p.sized("owners", "4", "parts of the sums that threads own", "1", "2", "4", "8", "16"),
            p.sized("span", "8192", "elements of a row per task", "1024", "4096", "8192", "32768"),
            *p.threads(),
        ]  # fmt: skip
        made += [p.math()] if ops & POLYNOMIAL else []
        return p.a_space("scatter", made, (
            {}, {"owners": "2"}, {"owners": "1"}, {"owners": "8", "schedule": "dynamic"},
            {"width": "8"}, {"unroll": "1"},
        ))  # fmt: skip
    made = [
        p.sized("tile", "512", "elements per program", "128", "256", "512", "1024", "2048"),
        p.warps("4"), p.evict(),
    ]  # fmt: skip
    return p.a_space("scatter", made, (
        {}, {"tile": "256", "warps": "2"}, {"tile": "1024"}, {"tile": "2048", "warps": "8"},
    ))  # fmt: skip
