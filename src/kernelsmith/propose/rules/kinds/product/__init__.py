"""Products of matrices on the CPU: one or several, one behind another, with elementwise work."""

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Kind,
    Node,
    NotRecognised,
    Shape,
)
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.product.cpu import render_cpu
from kernelsmith.propose.rules.kinds.product.graph import (
    Products,
    Stage,
    Term,
    a_stage,
    sum_text,
)
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.space import Space

_PRODUCTS = {"matmul", "mm", "bmm"}
_MOST = 8
"""Products in one kernel; each adds to what must be compiled."""


def recognise(traced: Traced, backend: str) -> Written:
    """Products of inputs, weights and other products, and what is elementwise behind each.

    Raises:
        NotRecognised: It is something else, or not for the CPU.
    """
    if backend != "cpu":
        raise NotRecognised("rules leave products to the library here")
    products = _Reader(traced.module.task).read(traced.result)
    return Written(
        backend=backend, module=traced.module, space=_space(products),
        render=lambda chosen: render_cpu(products, chosen),
        does="Products whose sums stay in registers until what follows is done to them.",
    )  # fmt: skip


class _Reader:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._stages: list[Stage] = []
        self._known: dict[Expr, int] = {}
        self._ranks: set[int] = set()
        self._batched: set[bool] = set()

    def read(self, result: Value) -> Products:
        if not isinstance(result, Expr):
            raise NotRecognised("rules find no product")
        self._stage(result)
        if len(self._ranks) != 1 or len(self._batched) != 1:
            raise NotRecognised("rules know products of inputs of one rank")
        batched, terms = self._batched.pop(), [t for each in self._stages for t in each.terms]
        if batched and len(terms) > 1:
            raise NotRecognised("rules know one product of two rows of matrices at a time")
        if len(terms) > _MOST:
            raise NotRecognised(f"rules know at most {_MOST} products at a time")
        return Products(stages=tuple(self._stages), rank=self._ranks.pop(), batched=batched)

    def _stage(self, expr: Expr) -> int:
        """The number of the stage that computes this."""
        if expr in self._known:
            return self._known[expr]
        terms: list[Term] = []

        def leaf(lowering: Lowering, each: Expr) -> int | None:
            build = lowering.build
            held = self._product(each)
            if held is not None:
                term, bias = held
                if term not in terms:
                    terms.append(term)
                node = Node(kind=Kind.INPUT, text=sum_text(terms.index(term)), shape=Shape.FULL)
                made = build.add(node)
                if bias is None:
                    return made
                column = Node(kind=Kind.PARAMETER, text=bias, shape=Shape.COLUMN)
                return build.binary("add", made, build.add(column))
            if each.op == "input":
                return build.add(Node(kind=Kind.INPUT, text=each.text, shape=Shape.FULL))
            if each.op == "parameter":
                if each.dims is None or len(each.dims) > 1:
                    raise NotRecognised(f"rules cannot tell how {each.text} broadcasts")
                one = all(size == "1" for size in each.dims)
                shape = Shape.SCALAR if one else Shape.COLUMN
                return build.add(Node(kind=Kind.PARAMETER, text=each.text, shape=shape))
            return None

        lowering = Lowering(leaf)
        output = lowering.lower(expr)
        if not terms:
            raise NotRecognised("rules find no product")
        nodes, output = lowering.needed(output, self._task)
        self._stages.append(a_stage(nodes, output, terms))
        self._known[expr] = len(self._stages) - 1
        return self._known[expr]

    def _product(self, expr: Expr) -> tuple[Term, str | None] | None:
        """A product and its bias; none: it is something else."""
        if expr.op == "layer" and expr.setting("kind") == "Linear":
            if len(expr.args) != 1:
                raise NotRecognised("rules know a linear layer of a matrix of inputs")
            has_bias = plain_of(expr.setting("bias", True)) is not False
            term = self._term(expr.args[0], f"{expr.text}.weight", rank=2, turned=True)
            return term, f"{expr.text}.bias" if has_bias else None
        if expr.op == "linear":
            return self._linear(expr)
        if expr.op not in _PRODUCTS:
            return None
        if len(expr.args) != 2 or expr.settings:
            raise NotRecognised("rules do not know these arguments of a product")
        right, turned = _turned(expr.args[1])
        if expr.op != "matmul":  # the others take nothing else
            self._ranks.add(2 if expr.op == "mm" else 3)
            if right.rank not in self._ranks:
                raise NotRecognised("rules do not know these arguments of a product")
        return self._term(expr.args[0], right.text, rank=right.rank, turned=turned), None

    def _linear(self, expr: Expr) -> tuple[Term, str | None]:
        given = dict(zip(("x", "weight", "bias"), expr.args, strict=False)) | dict(expr.settings)
        if not {"x", "weight"} <= set(given) <= {"x", "weight", "bias"}:
            raise NotRecognised("rules do not know these arguments of a product")
        weight, bias = _operand(given["weight"]), given.get("bias")
        if bias is not None and not (
            isinstance(bias, Expr) and bias.op == "parameter" and bias.rank == 1
        ):
            raise NotRecognised("rules know a linear function with a parameter as its bias")
        term = self._term(given["x"], weight.text, rank=weight.rank, turned=True)
        return term, bias.text if isinstance(bias, Expr) else None

    def _term(self, left: Value, right: str, *, rank: int | None, turned: bool) -> Term:
        if not isinstance(left, Expr):
            raise NotRecognised("rules know products of inputs")
        if left.op == "input" and not left.integer:
            if left.rank is None or left.rank < 2:
                raise NotRecognised("rules know products of a matrix of inputs")
            self._ranks.add(left.rank)
            batched = rank == left.rank == 3
            if not batched and rank != 2:
                raise NotRecognised("rules know products of two matrices, or of two rows of them")
            self._batched.add(batched)
            return Term(left=left.text, right=right, turned=turned)
        if left.op in ("input", "parameter", "number") or rank != 2:
            raise NotRecognised("rules know products of inputs and of other products' results")
        return Term(left=self._stage(left), right=right, turned=turned)


def _operand(value: Value) -> Expr:
    if isinstance(value, Expr) and value.op in ("input", "parameter") and not value.integer:
        return value
    raise NotRecognised("rules know products of inputs")


def _turned(value: Value) -> tuple[Expr, bool]:
    """The second operand, and whether it is transposed first."""
    if isinstance(value, Expr) and value.op in ("T", "mT", "t"):
        inner = _operand(value.args[0])
        if value.op != "mT" and inner.rank != 2:
            raise NotRecognised("rules do not know this transposition")
        return inner, True
    if isinstance(value, Expr) and value.op == "transpose":
        inner = _operand(value.args[0])
        dims = {each for each in value.args[1:] if isinstance(each, int)}
        rank = inner.rank or 0
        if {each % rank if rank else each for each in dims} != {rank - 1, rank - 2}:
            raise NotRecognised("rules do not know this transposition")
        return inner, True
    return _operand(value), False


def _space(products: Products) -> Space:
    made = [
        p.width(), p.unroll("2", "vectors of columns in registers", "1", "2", "3", "4"),
        p.sized("rows", "8", "rows in registers", "4", "6", "8", "12"),
        p.sized("strip", "64", "rows per task", "16", "32", "64", "128", "256"),
    ]  # fmt: skip
    if any(each.turned for stage in products.stages for each in stage.terms):
        made += [
            p.sized("few", "4096", "rows up to which weights are read as they lie",
                    "0", "16", "64", "256", "4096"),
            p.sized("outputs", "8", "weights that few rows are multiplied by at a time",
                    "2", "4", "8"),
        ]  # fmt: skip
    made += p.threads("16384")
    if {n.op for stage in products.stages for n in stage.nodes} & POLYNOMIAL:
        made.append(p.math())
    return p.a_space("product", made, (
        {}, {"outputs": "4"}, {"rows": "12", "few": "0"}, {"rows": "6", "unroll": "4", "few": "64"},
        {"rows": "4", "unroll": "4", "few": "16"}, {"strip": "256", "few": "256"},
        {"rows": "8", "unroll": "3", "strip": "128", "few": "0"}, {"width": "8", "rows": "4"},
    ))  # fmt: skip
