"""Running sums and products along any dimension, forwards or backwards."""

from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape, pruned
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.around import around
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.scan.cpu import render_cpu
from kernelsmith.propose.rules.kinds.scan.graph import SCAN, Scan
from kernelsmith.propose.rules.kinds.scan.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value
from kernelsmith.propose.rules.space import Space

_OPS = {"cumsum": "sum", "cumprod": "prod"}


def recognise(traced: Traced, backend: str) -> Written:
    """One scan, with elementwise work on what it reads and on what it gives.

    Raises:
        NotRecognised: There is none, or more than one, or something else beside it.
    """
    scan = _read(traced)
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(scan, backend),
        render=lambda chosen: render(scan, chosen),
        does=f"One sweep along dimension {scan.around.axis} scans with a carry"
        f"{', backwards' if scan.reverse else ''}"
        f"{'' if scan.around.last else ', lanes across the inner dimensions'}.",
    )  # fmt: skip


def _read(traced: Traced) -> Scan:
    found: list[tuple[Value, bool, str]] = []
    before: list[int] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        if expr.op == "input":
            return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
        opened = _opened(expr)
        if opened is None:
            return None
        inner, dim, reverse, op = opened
        if found and found[0] != (dim, reverse, op):
            raise NotRecognised("rules know one scan at a time")
        found.append((dim, reverse, op))
        before.append(lowering.lower(inner))
        if len(set(before)) > 1:
            raise NotRecognised("rules know one scan at a time")
        return lowering.build.add(Node(kind=Kind.INPUT, text=SCAN, shape=Shape.FULL))

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no scan")
    lowering = Lowering(leaf)
    output = lowering.lower(traced.result)
    if not found:
        raise NotRecognised("rules find no scan")
    dim, reverse, op = found[0]
    nodes = lowering.build.nodes
    for each in (before[0], output):
        lowering.check_result(each, traced.module.task)
    # Everything hangs on the output, the scanned value as its last argument.
    tied, _ = pruned(
        [*nodes, Node(kind=Kind.VIEW, shape=Shape.FULL, args=(output, before[0]))], len(nodes)
    )
    texts = {node.text for node in tied if node.kind is Kind.INPUT}
    used = [each for each in traced.inputs if each.text in texts]
    return Scan(
        nodes=tied[:-1], before=tied[-1].args[1], output=tied[-1].args[0], op=op,
        around=around(used, dim), reverse=reverse,
    )  # fmt: skip


def _opened(expr: Expr) -> tuple[Expr, Value, bool, str] | None:
    """What a scan goes over, its dimension, whether backwards, and its operator."""
    if expr.op in _OPS:
        given = dict(zip(("x", "dim"), expr.args, strict=False)) | dict(expr.settings)
        inner, dim = given.get("x"), given.get("dim")
        if not isinstance(inner, Expr) or set(given) != {"x", "dim"}:
            raise NotRecognised(f"rules do not know these arguments of {expr.op}")
        if (flipped := _flipped(inner)) is not None:
            if flipped[1] != dim:
                raise NotRecognised("rules do not know a flip along another dimension")
            raise NotRecognised("rules know a flip before a scan together with one behind it")
        return inner, dim, False, _OPS[expr.op]
    outer = _flipped(expr)
    if outer is None or outer[0].op not in _OPS:
        return None
    scan = outer[0]
    given = dict(zip(("x", "dim"), scan.args, strict=False)) | dict(scan.settings)
    inner, dim = given.get("x"), given.get("dim")
    flipped = _flipped(inner) if isinstance(inner, Expr) else None
    if flipped is None or set(given) != {"x", "dim"} or not flipped[1] == dim == outer[1]:
        raise NotRecognised("rules know a flip before and behind a scan, along its dimension")
    return flipped[0], dim, True, _OPS[scan.op]


def _flipped(expr: Expr) -> tuple[Expr, Value] | None:
    if expr.op != "flip" or not isinstance(expr.args[0], Expr):
        return None
    given = [*expr.args[1:], *(value for _, value in expr.settings)]
    if len(given) != 1:
        return None
    dim = given[0][0] if isinstance(given[0], tuple) and len(given[0]) == 1 else given[0]
    return expr.args[0], dim


def _space(scan: Scan, backend: str) -> Space:
    if backend == "cpu":
        if scan.around.last:
            made = [p.width("8"), p.choice("accumulate", ("double", "lanes"), "how sums are kept",
                                           safe="double")]  # fmt: skip
        else:
            made = [p.width(), p.unroll("4", "vectors side by side", "1", "2", "4", "8")]
        made += [*p.threads(), p.stores()]
        return p.a_space("scan", made, (
            {}, {"width": "16", "accumulate": "lanes"}, {"stores": "stream"},
            {"width": "8", "unroll": "8"}, {"schedule": "dynamic"},
        ))  # fmt: skip
    if scan.around.last:
        made = [
            p.sized("block", "2048", "elements per step", "512", "1024", "2048", "4096", "8192"),
            p.sized("rows", "1", "rows per program", "1", "2", "4"),
            p.sized("split", "16384", "few long rows are cut in pieces of this length",
                    "4096", "16384", "65536"),
        ]  # fmt: skip
        if scan.reverse:
            made.append(p.choice("backwards", ("addresses", "scan"), "read from the end"))
    else:
        made = [
            p.sized("block", "64", "columns per program", "32", "64", "128", "256"),
            p.sized("steps", "32", "elements along the scan per step", "8", "16", "32", "64"),
        ]
    made += [p.warps("4"), p.evict(), p.sized("stages", "1", "loads run ahead", "1", "2", "3")]
    return p.a_space("scan", made, (
        {}, {"block": "4096", "warps": "8"}, {"block": "1024", "stages": "3"},
        {"rows": "4", "block": "1024", "evict": "first"}, {"backwards": "scan"},
        {"block": "128", "steps": "16"},
    ))  # fmt: skip
