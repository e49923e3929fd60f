"""From a traced expression to a sort or a selection."""

from collections.abc import Iterator
from dataclasses import dataclass

from kernelsmith.propose.rules.graph import Kind, Node, NotRecognised, Shape
from kernelsmith.propose.rules.kinds.around import Around, around
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.sort.graph import (
    INDICES,
    SORTED,
    Selected,
    Sorted,
    reached,
)
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.promotion import check_types, is_single
from kernelsmith.propose.rules.values import Late
from kernelsmith.propose.rules.values import Value as Read

_NAMES = {
    "sort": "x dim descending stable", "argsort": "x dim descending stable", "msort": "x",
    "topk": "x k dim largest sorted", "kthvalue": "x k dim keepdim", "median": "x dim keepdim",
}  # fmt: skip
_FEW = 16
"""Up to so many of the largest are the kind ``router``'s."""
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//"}
_SAME = {"neg", "abs"}
"""Operators whose results need no rounding."""
_ONCE = {"add", "sub", "mul"}
"""Operators that are rounded as eager rounds them, where there is one of them."""


@dataclass(frozen=True, slots=True)
class _Order:
    """A row put in order, or its first ``count``."""

    score: Expr
    descending: bool
    count: str = ""


@dataclass(frozen=True, slots=True)
class _Pick:
    """One value of a row that is put in order."""

    score: Expr
    rank: str
    keep: bool
    conditions: tuple[str, ...]
    op: str = "kth"


def read(traced: Traced) -> Sorted | Selected:
    """A sort, or what is computed with values of some rank.

    Raises:
        NotRecognised: It is something else.
    """
    outputs = traced.result if isinstance(traced.result, tuple) else (traced.result,)
    wrap = "({},)" if isinstance(traced.result, tuple) and len(outputs) == 1 else "{}"
    match traced.result:
        case Expr(op="sort" | "topk" as op) as whole:
            wrap = f"torch.return_types.{op}(({{}}))"
            outputs = (Expr("item", (whole, 0)), Expr("item", (whole, 1)))
    held = [each for each in outputs if isinstance(each, Expr)]
    if len(held) != len(outputs):
        raise NotRecognised("rules know a sort that returns tensors")
    every = [each for expr in held for each in _walked(expr)]
    if not any(each.op in _NAMES for each in every):
        raise NotRecognised("rules find no sort")
    if any(each.integer for each in traced.inputs):
        raise NotRecognised("rules do not sort beside integer inputs")
    if any(each.op == "item" and _ranked(each.args[0]) and each.args[1] == 1 for each in every):
        raise NotRecognised("rules know the value of a rank, not where it stood")
    reader = _Reader(traced)
    picks = {each: pick for each in every if (pick := reader.pick(each)) is not None}
    return reader.selected(held, picks, wrap) if picks else reader.sorted(held, wrap)


class _Reader:
    """Reads one task."""

    def __init__(self, traced: Traced) -> None:
        self._traced = traced
        ranks = {each.rank for each in traced.inputs}
        self._rank = ranks.pop() if len(ranks) == 1 else None

    def _bound(self, expr: Expr) -> dict[str, Value]:
        names = _NAMES[expr.op].split()
        given = dict(zip(names, expr.args, strict=False)) | dict(expr.settings)
        if len(expr.args) > len(names) or set(given) - set(names):
            raise NotRecognised(f"rules do not know these arguments of {expr.op}")
        if not isinstance(given["x"], Expr):
            raise NotRecognised(f"rules do not know what {expr.op} puts in order")
        self._last(0 if expr.op == "msort" else plain_of(given.get("dim", -1)))
        return given

    def _last(self, dim: Read) -> None:
        known = dim.known if isinstance(dim, Late) else dim
        if isinstance(known, bool) or (
            known != -1 and (self._rank is None or known != self._rank - 1)
        ):
            raise NotRecognised("rules sort along the last dimension")

    def _order(self, expr: Expr) -> _Order:
        """What a call puts in order."""
        given = self._bound(expr)
        score = given["x"]
        assert isinstance(score, Expr)
        if expr.op != "topk":
            return _Order(score, bool(plain_of(given.get("descending", False))))
        if plain_of(given.get("sorted", True)) is not True:
            raise NotRecognised("rules know the best of a row in order")
        largest = bool(plain_of(given.get("largest", True)))
        return _Order(score, largest, self._whole(given.get("k")))

    def _whole(self, value: Value) -> str:
        """A whole number as Python: of sizes of inputs and numbers known at call time."""
        match value:
            case bool():
                pass
            case int():
                return str(value)
            case Expr(op="number", text=text):
                return text
            case Expr(
                op="item", args=(Expr(op="shape", args=(Expr(op="input", text=text),)), int() as at)
            ):
                return f"{text}.shape[{at}]"
            case Expr(op="size", args=(Expr(op="input", text=text), int() as at)):
                return f"{text}.shape[{at}]"
            case Expr(op=op, args=(a, b)) if op in _SIGNS:
                return f"({self._whole(a)} {_SIGNS[op]} {self._whole(b)})"
        raise NotRecognised("rules must know how many of a row, or which of them")

    def pick(self, expr: Expr) -> _Pick | None:
        """The value of some rank that an expression is; none where it is something else."""
        match expr:
            case Expr(op="item", args=(Expr(op="kthvalue" | "median" as op) as call, 0)):
                given = self._bound(call)
                score, keep = given["x"], bool(plain_of(given.get("keepdim", False)))
                assert isinstance(score, Expr)
                size = _size(score)
                if op == "median" and given.get("dim") is None:
                    raise NotRecognised("rules know the median along a dimension")
                rank = self._whole(given.get("k")) if op == "kthvalue" else f"({size} + 1) // 2"
                held = (f"0 < {rank} <= {size}",) if op == "kthvalue" else ()
                return _Pick(score, rank, keep, held, "kth" if op == "kthvalue" else "median")
            case Expr(op="sliced", args=(Expr(op="item", args=(Expr() as call, 0)), *pieces)) if (
                call.op in ("sort", "topk")
            ):
                order = self._order(call)
                at, keep = self._place(pieces)
                size = _size(order.score)
                count = order.count or size
                nth = f"{at + 1}" if at >= 0 else f"({count} - {-at - 1})" if at < -1 else count
                rank = f"({size} - {nth} + 1)" if order.descending else nth
                held = (f"0 < {nth} <= {count} <= {size}",)
                return _Pick(order.score, rank, keep, held)
        return None

    def _place(self, pieces: list[Value]) -> tuple[int, bool]:
        """Which one of the last dimension, and whether that stays."""
        if len(pieces) > 1 and pieces[-1] is None and type(pieces[-2]) is int:
            return self._place(pieces[:-1])[0], True
        *front, last = pieces
        if any(each not in (":", "...") for each in front) or front.count("...") > 1:
            raise NotRecognised("rules know a place in the last dimension")
        if "..." not in front and len(pieces) != self._rank:
            raise NotRecognised("rules cannot tell whether this is the last dimension")
        if type(last) is int:
            return last, False
        if isinstance(last, str) and ":" in last:
            low, high = (int(each) if each else None for each in last.split(":"))
            if (low == -1 and high is None) or (low == 0 and high == 1):
                return low, True
            if low is not None and high is not None and high == low + 1 and high != 0:
                return low, True
            if low is None and high == 1:
                return 0, True
        raise NotRecognised("rules know one value of a row that is put in order")

    def sorted(self, outputs: list[Expr], wrap: str) -> Sorted:
        """Values, indices or both."""
        found: set[_Order] = set()

        def leaf(lowering: Lowering, expr: Expr) -> int | None:
            if expr.op == "input":
                return lowering.build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
            call = _called(expr, 0)
            if call is None:
                return None
            found.add(self._order(call))
            return lowering.build.add(Node(kind=Kind.INPUT, text=SORTED, shape=Shape.FULL))

        lowering = Lowering(leaf)
        made = []
        for expr in outputs:
            call = _called(expr, 1)
            if call is not None:
                found.add(self._order(call))
            made.append(INDICES if call is not None else lowering.lower(expr))
        if len(found) != 1:
            raise NotRecognised("rules know one sort at a time")
        (order,) = found
        if order.count.isdigit() and int(order.count) <= _FEW and order.descending:
            raise NotRecognised(f"rules leave the {_FEW} largest to the kind `router`")
        score = lowering.lower(order.score)
        nodes = tuple(lowering.build.nodes)
        self._check_behind(nodes, made)
        if any(nodes[n].shape is not Shape.FULL for n in (score, *made) if n != INDICES):
            raise NotRecognised("rules know a sort with one result for each value of a row")
        behind = reached(nodes, [n for n in made if n != INDICES])
        front = reached(nodes, [score])
        if any(nodes[n].text == SORTED for n in front):
            raise NotRecognised("rules know one sort at a time")
        if any(nodes[n].kind is Kind.INPUT and nodes[n].text != SORTED for n in behind):
            raise NotRecognised("rules know work behind a sort on what was sorted alone")
        if INDICES in made and not self._as_eager(nodes, front):
            raise NotRecognised(
                "rules cannot tell the order of values that are rounded otherwise than eager's, "
                "unless the task says what its indices point to (index_scores)"
            )
        return Sorted(
            around=self._around(nodes), nodes=nodes, outputs=tuple(made), wrap=wrap, score=score,
            descending=order.descending, count=order.count,
        )  # fmt: skip

    def _as_eager(self, nodes: tuple[Node, ...], front: set[int]) -> bool:
        """Whether what is put in order is what eager has, bit for bit, or need not be."""
        ops = [nodes[n].op for n in front if nodes[n].op]
        if all(op in _SAME or op in _ONCE for op in ops) and sum(op in _ONCE for op in ops) <= 1:
            return True
        functions = self._traced.module.tree.body
        return any(getattr(each, "name", "") == "index_scores" for each in functions)

    def selected(self, outputs: list[Expr], picks: dict[Expr, _Pick], wrap: str) -> Selected:
        """What is computed with values of some rank, row by row."""
        scores = {pick.score for pick in picks.values()}
        inside: set[Expr] = set()

        def leaf(lowering: Lowering, expr: Expr) -> int | None:
            build = lowering.build
            if expr.op == "input":
                return build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
            if expr in scores and expr not in inside:
                inside.add(expr)
                number = lowering.lower(expr)
                return _rounded(lowering, number)
            if expr in picks:
                pick = picks[expr]
                score = lowering.lower(pick.score)
                if build.shape(score) is not Shape.FULL:
                    raise NotRecognised("rules select among the values of rows")
                made = build.add(Node(kind=Kind.REDUCE, op=pick.op, args=(score,),
                                      shape=Shape.ROW, text=pick.rank))  # fmt: skip
                return made if pick.keep else build.view(made, Shape.SQUEEZED)
            if expr.op == "masked_fill":
                return _filled(lowering, expr)
            return self._unsqueezed(lowering, expr)

        lowering = Lowering(leaf, self._last)
        made = [lowering.lower(expr) for expr in outputs]
        needed = sorted(reached(lowering.build.nodes, made))
        place = {old: new for new, old in enumerate(needed)}
        nodes = tuple(
            Node(kind=n.kind, shape=n.shape, op=n.op, text=n.text, value=n.value,
                 args=tuple(place[a] for a in n.args))
            for n in (lowering.build.nodes[i] for i in needed)
        )  # fmt: skip
        numbers = [place[n] for n in made]
        self._check_behind(nodes, numbers)
        if any(nodes[n].shape in (Shape.SCALAR, Shape.COLUMN) for n in numbers) or any(
            n.kind is Kind.TOTAL or (n.kind is Kind.COUNT and n.text != "dim") for n in nodes
        ):
            raise NotRecognised("rules know selections with results per row or per element")
        conditions = [each for pick in picks.values() for each in pick.conditions]
        return Selected(
            around=self._around(nodes), nodes=nodes, outputs=tuple(numbers), wrap=wrap,
            conditions=tuple(dict.fromkeys(conditions)),
        )  # fmt: skip

    def _unsqueezed(self, lowering: Lowering, expr: Expr) -> int | None:
        """One value per row with its dimension back: ``unsqueeze(-1)``, ``[:, None]``."""
        if expr.op not in ("unsqueeze", "index") or not isinstance(expr.args[0], Expr):
            return None
        rest = expr.args[1:] or (expr.setting("dim"),)
        whole = (":",) * ((self._rank or 0) - 1)
        behind = (-1,) if self._rank is None else (-1, self._rank - 1)
        if rest != ("...", None) and not (
            rest == (*whole, None) if expr.op == "index" else rest[0] in behind
        ):
            return None
        number = lowering.lower(expr.args[0])
        if lowering.build.shape(number) is not Shape.SQUEEZED:
            return None
        return lowering.build.view(number, Shape.ROW)

    def _check_behind(self, nodes: tuple[Node, ...], outputs: list[int]) -> None:
        for n in outputs:
            if n != INDICES:
                check_types(nodes, n, single=is_single(self._traced.module.task))
        if any(node.op == "pow" for node in nodes):
            raise NotRecognised("rules do not know a general power here")

    def _around(self, nodes: tuple[Node, ...]) -> Around:
        texts = {node.text for node in nodes if node.kind is Kind.INPUT}
        return around([each for each in self._traced.inputs if each.text in texts], -1)


def _ranked(value: Value) -> bool:
    return isinstance(value, Expr) and value.op in ("kthvalue", "median")


def _size(score: Expr) -> str:
    """The length of a row, in Python: all inputs are of one shape."""
    texts = [each.text for each in _walked(score) if each.op == "input"]
    if not texts:
        raise NotRecognised("rules sort what is made of inputs")
    return f"{min(texts)}.shape[-1]"


def _called(expr: Expr, which: int) -> Expr | None:
    """The call whose values (0) or indices (1) an expression is."""
    match expr:
        case Expr(op="item", args=(Expr(op="sort" | "topk") as call, int() as at)) if at == which:
            return call
        case Expr(op="msort" | "argsort" as op) if op == ("msort", "argsort")[which]:
            return expr
    return None


def _rounded(lowering: Lowering, number: int) -> int:
    """A value as eager would have stored it, to be compared with others of its row."""
    nodes = lowering.build.nodes
    if all(nodes[n].kind is Kind.INPUT or nodes[n].op in _SAME for n in reached(nodes, [number])):
        return number
    return lowering.build.add(
        Node(kind=Kind.UNARY, op="rounded", args=(number,), shape=nodes[number].shape)
    )


def _filled(lowering: Lowering, expr: Expr) -> int:
    given = dict(zip(("x", "mask", "value"), expr.args, strict=False)) | dict(expr.settings)
    return lowering.lower(Expr("where", (given.get("mask"), given.get("value"), given.get("x"))))


def _walked(expr: Expr) -> Iterator[Expr]:
    """An expression and all that it is computed from, each once."""
    seen: set[Expr] = set()
    stack = [expr]
    while stack:
        each = stack.pop()
        if each not in seen:
            seen.add(each)
            yield each
            for part in (*each.args, *(value for _, value in each.settings)):
                if isinstance(part, Expr):
                    stack.append(part)
