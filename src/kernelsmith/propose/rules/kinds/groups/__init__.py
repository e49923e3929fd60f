"""Norms over channels: batch norm with running statistics, group norm, instance norm."""

from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Kind,
    Node,
    NotRecognised,
    Shape,
)
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.groups.cpu import render_cpu
from kernelsmith.propose.rules.kinds.groups.graph import Groups
from kernelsmith.propose.rules.kinds.groups.triton import render_triton
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, plain_of
from kernelsmith.propose.rules.space import Space

_LAYERS = {
    "GroupNorm": "group",
    **{f"BatchNorm{n}d": "batch" for n in (1, 2, 3)},
    **{f"InstanceNorm{n}d": "instance" for n in (1, 2, 3)},
}


def recognise(traced: Traced, backend: str) -> Written:
    """One such norm of an input, and what is elementwise behind it.

    Raises:
        NotRecognised: It is something else.
    """
    groups = _read(traced)
    render = render_cpu if backend == "cpu" else render_triton
    how = {
        "batch": "The running statistics become one factor and one summand per channel.",
        "group": "Moments of pieces first, then all is scaled by what they add up to.",
        "instance": "Moments of pieces first, then all is scaled by what they add up to.",
    }[groups.kind]
    return Written(
        backend=backend, module=traced.module, space=_space(groups, backend),
        render=lambda chosen: render(groups, chosen), does=how,
    )  # fmt: skip


def _read(traced: Traced) -> Groups:
    found: list[Expr] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "layer" and expr.setting("kind") in _LAYERS:
            found.append(expr)
            return lowering.build.add(Node(kind=Kind.INPUT, text="<norm>", shape=Shape.FULL))
        if expr.op in ("input", "parameter"):
            raise NotRecognised("rules know nothing but numbers behind such a norm")
        return None

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no norm over channels")
    lowering = Lowering(leaf)
    output = lowering.lower(traced.result)
    if len(found) != 1 or len(found[0].args) != 1:
        raise NotRecognised("rules know one norm over channels at a time")
    layer, x = found[0], found[0].args[0]
    kind = _LAYERS[str(layer.setting("kind"))]
    if not isinstance(x, Expr) or x.op != "input" or x.integer:
        raise NotRecognised("rules know norms of an input")
    if kind == "batch" and (
        traced.module.task.training or plain_of(layer.setting("track_running_stats", True)) is False
    ):
        raise NotRecognised("rules know batch norm with running statistics")
    if kind == "instance" and plain_of(layer.setting("track_running_stats", False)):
        raise NotRecognised("rules know instance norm without running statistics")
    affine = plain_of(layer.setting("affine", kind != "instance"))
    nodes, output = lowering.needed(output, traced.module.task)
    made = next(i for i, n in enumerate(nodes) if n.kind is Kind.INPUT)
    return Groups(
        kind=kind, x=x.text, path=layer.text, affine=bool(affine), nodes=nodes, made=made,
        output=output,
    )  # fmt: skip


def _space(groups: Groups, backend: str) -> Space:
    if backend == "cpu":
        made = [p.width(), p.unroll("4", "vectors in flight hide latency"), *p.threads(),
                p.stores()]  # fmt: skip
        if {n.op for n in groups.nodes} & POLYNOMIAL:
            made.append(p.math())
        return p.a_space("groups", made, (
            {}, {"stores": "stream"}, {"unroll": "2"}, {"width": "8", "unroll": "4"},
        ))  # fmt: skip
    made = [
        p.sized("block", "4096", "elements per program", "1024", "2048", "4096", "8192"),
        p.warps("8"), p.evict(),
    ]  # fmt: skip
    if groups.kind != "batch":
        made.append(p.sized("piece", "8192", "elements whose moments are found at once",
                            "2048", "4096", "8192", "16384"))  # fmt: skip
    return p.a_space("groups", made, (
        {}, {"block": "2048", "warps": "4"}, {"piece": "16384"}, {"block": "8192"},
        {"piece": "4096", "block": "2048", "warps": "4"},
    ))  # fmt: skip
