"""The few best of each row (top-k), chosen among scores and weighed: routers, samplers."""

from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.router.cpu import render_cpu
from kernelsmith.propose.rules.kinds.router.graph import Router
from kernelsmith.propose.rules.kinds.router.triton import render_triton
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.space import Space
from kernelsmith.propose.rules.values import Late
from kernelsmith.propose.rules.values import Value as Read

_MOST = 16
_RISING = ("softmax", "log_softmax")


def recognise(traced: Traced, backend: str) -> Written:
    """``topk`` of scores over the last dimension, its values weighed, its indices as they are.

    Raises:
        NotRecognised: It is something else.
    """
    router = _read(traced)
    render = render_cpu if backend == "cpu" else render_triton
    return Written(
        backend=backend, module=traced.module, space=_space(backend),
        render=lambda chosen: render(router, chosen),
        does=f"Scores, the {router.k} best of them and their weights in one kernel, row by row.",
    )  # fmt: skip


def _read(traced: Traced) -> Router:
    outputs = traced.result if isinstance(traced.result, tuple) else (traced.result,)
    picked = _topk(outputs)
    given = dict(zip(("x", "k", "dim", "largest", "sorted"), picked.args, strict=False))
    given |= dict(picked.settings)
    k, scores = plain_of(given.get("k")), given.get("x")
    if not isinstance(k, int) or not 0 < k <= _MOST or not isinstance(scores, Expr):
        raise NotRecognised(f"rules know the best of a row up to {_MOST}")
    if not (plain_of(given.get("largest", True)) and plain_of(given.get("sorted", True))):
        raise NotRecognised("rules know the largest of a row, in order")
    if len(traced.inputs) != 1 or traced.inputs[0].integer:
        raise NotRecognised("rules know a router of one tensor")
    rank = traced.inputs[0].rank

    def axis(dim: Read) -> None:
        known = dim.known if isinstance(dim, Late) else dim
        if known != -1 and (rank is None or known != rank - 1):
            raise NotRecognised("rules know a router along the last dimension")

    axis(-1 if given.get("dim") is None else plain_of(given["dim"]))
    if scores.op in ("sigmoid", "tanh"):
        raise NotRecognised("rules cannot tell which of many scores that round to 1 is the best")
    before = Lowering(_input, axis)
    score = before.lower(scores)
    after = Lowering(lambda lowering, expr: _chosen(lowering, expr, picked), axis)
    weights, order = None, []
    for each in outputs:
        if each == Expr("item", (picked, 1)):
            order.append("indices")
        elif isinstance(each, Expr) and weights is None:
            weights = after.lower(each)
            order.append("weights")
        else:
            raise NotRecognised("rules know a router that returns weights and indices")
    scored, score = before.needed(score, traced.module.task)
    if weights is None:  # only the indices are asked for
        weights = after.lower(Expr("item", (picked, 0)))
    weighed, weights = after.needed(weights, traced.module.task)
    if scored[score].shape is not Shape.FULL or weighed[weights].shape is not Shape.FULL:
        raise NotRecognised("rules know a router with one weight for each of the best")
    for node in (*scored, *weighed):
        if node.kind in (Kind.TOTAL, Kind.NUMBER) or node.op in ("pow", "prod"):
            raise NotRecognised("rules do not know these scores")
    return Router(
        x=traced.inputs[0].text, k=k, order=tuple(order), scored=scored, score=score,
        weighed=weighed, weights=weights,
        rising=scores.op in _RISING and scores.args[:1] == traced.inputs,
    )  # fmt: skip


def _topk(outputs: tuple[Value, ...]) -> Expr:
    """The one ``topk`` that the outputs come from."""
    found: list[Expr] = []
    stack = [each for each in outputs if isinstance(each, Expr)]
    while stack:
        expr = stack.pop()
        if expr.op == "topk":
            found.append(expr)
        else:
            stack += [each for each in expr.args if isinstance(each, Expr)]
            stack += [each for _, each in expr.settings if isinstance(each, Expr)]
    if not found or any(each != found[0] for each in found):
        raise NotRecognised("rules find no topk, or more than one")
    return found[0]


def _input(lowering: Lowering, expr: Expr) -> int | None:
    if expr.op == "input":
        return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
    return None


def _chosen(lowering: Lowering, expr: Expr, picked: Expr) -> int | None:
    if expr == Expr("item", (picked, 0)):
        return lowering.build.add(Node(kind=Kind.INPUT, text="<best>", shape=Shape.FULL))
    if expr.op == "input" or expr == picked:
        raise NotRecognised("rules know weights that are made of the best alone")
    return None


def _space(backend: str) -> Space:
    if backend == "cpu":
        made = [p.width("8"), p.math(), *p.threads("4096")]
        return p.a_space("router", made, (
            {}, {"width": "16"}, {"schedule": "dynamic"}, {"serial_below": "65536"},
        ))  # fmt: skip
    made = [
        p.sized("block", "2048", "scores per program", "256", "512", "1024", "2048", "4096"),
        p.warps("4"),
    ]
    return p.a_space("router", made, (
        {}, {"block": "1024"}, {"block": "4096", "warps": "8"}, {"block": "512", "warps": "2"},
    ))  # fmt: skip
