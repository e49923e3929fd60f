"""Where the largest or smallest stands along a dimension: argmax and argmin."""

from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape, pruned
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.around import around
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.pick.cpu import render_cpu
from kernelsmith.propose.rules.kinds.pick.graph import Pick
from kernelsmith.propose.rules.kinds.pick.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, plain_of
from kernelsmith.propose.rules.space import Space

_NAMES = {"argmax": "max", "argmin": "min"}


def recognise(traced: Traced, backend: str) -> Written:
    """``argmax`` or ``argmin`` along one dimension, or the indices of ``max`` and ``min``.

    Raises:
        NotRecognised: It is something else.
    """
    pick = _read(traced)
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(pick, backend),
        render=lambda chosen: render(pick, chosen),
        does=f"One sweep along dimension {pick.around.axis} keeps the best and where it stood.",
    )  # fmt: skip


def _read(traced: Traced) -> Pick:
    result = traced.result
    if isinstance(result, Expr) and result.op == "item" and result.args[1] == 1:
        inner = result.args[0]
        if isinstance(inner, Expr) and inner.op in ("max", "min"):
            result = Expr(f"arg{inner.op}", inner.args, inner.settings)
    if not isinstance(result, Expr) or result.op not in _NAMES:
        raise NotRecognised("rules find no argmax")
    given = dict(zip(("x", "dim", "keepdim"), result.args, strict=False)) | dict(result.settings)
    over = given.get("x")
    if not isinstance(over, Expr) or given.get("dim") is None:
        raise NotRecognised("rules know argmax along a dimension")

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "input" and not expr.integer:
            return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
        return None

    lowering = Lowering(leaf)
    nodes, output = pruned(lowering.build.nodes, lowering.lower(over))
    if any(node.op == "pow" for node in nodes):
        raise NotRecognised("rules do not know a general power here")
    texts = {node.text for node in nodes if node.kind is Kind.INPUT}
    return Pick(
        nodes=nodes, output=output, largest=_NAMES[result.op] == "max",
        keep=bool(plain_of(given.get("keepdim", False))),
        around=around([e for e in traced.inputs if e.text in texts], given["dim"]),
    )  # fmt: skip


def _space(pick: Pick, backend: str) -> Space:
    if backend == "cpu":
        made = [p.width(), p.unroll("4", "vectors side by side", "1", "2", "4", "8", "16"),
                *p.threads()]  # fmt: skip
        return p.a_space("pick", made, ({}, {"unroll": "16"}, {"unroll": "1"}, {"width": "8"}))
    if pick.around.last:
        made = [
            p.sized("block", "2048", "elements per step", "512", "1024", "2048", "4096"),
            p.sized("rows", "1", "rows per program", "1", "2", "4"),
        ]
    else:
        made = [
            p.sized("block", "128", "columns per program", "32", "64", "128", "256"),
            p.sized("steps", "16", "elements along the dimension per step", "4", "8", "16", "32"),
        ]
    made += [p.warps("4"), p.evict()]
    return p.a_space("pick", made, (
        {}, {"block": "64", "steps": "32"}, {"block": "256", "steps": "8", "warps": "8"},
        {"block": "4096", "warps": "8"}, {"rows": "4", "block": "1024"},
    ))  # fmt: skip
