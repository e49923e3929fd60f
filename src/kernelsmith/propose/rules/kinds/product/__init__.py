"""Small products of matrices on the CPU, one or many, with elementwise work on each result."""

from kernelsmith.propose.rules.graph import (
    POLYNOMIAL,
    Kind,
    Node,
    NotRecognised,
    Shape,
    pruned,
)
from kernelsmith.propose.rules.kinds import parameters as p
from kernelsmith.propose.rules.kinds.candidate import Written
from kernelsmith.propose.rules.kinds.lowering import Lowering
from kernelsmith.propose.rules.kinds.product.cpu import render_cpu
from kernelsmith.propose.rules.kinds.product.graph import Product
from kernelsmith.propose.rules.kinds.trace import Expr, Traced, Value, plain_of
from kernelsmith.propose.rules.space import Space

_PRODUCTS = {"matmul", "mm", "bmm"}


def recognise(traced: Traced, backend: str) -> Written:
    """One product of inputs or of an input and a layer's weights, and what follows elementwise.

    Raises:
        NotRecognised: It is something else, or not for the CPU.
    """
    if backend != "cpu":
        raise NotRecognised("rules leave products to the library here")
    product = _read(traced)
    return Written(
        backend=backend, module=traced.module, space=_space(product),
        render=lambda chosen: render_cpu(product, chosen),
        does="A product whose tiles stay in registers until what follows is done to them.",
    )  # fmt: skip


def _read(traced: Traced) -> Product:
    found: list[Expr] = []

    def leaf(lowering: Lowering, expr: Expr) -> int | None:
        build = lowering.build
        layer = expr.op == "layer" and expr.setting("kind") == "Linear"
        if expr.op in _PRODUCTS or layer:
            if found and found[0] != expr:
                raise NotRecognised("rules know one product at a time")
            found.append(expr)
            made = build.add(Node(kind=Kind.INPUT, text="<product>", shape=Shape.FULL))
            if layer and plain_of(expr.setting("bias", True)) is not False:
                bias = Node(kind=Kind.PARAMETER, text=f"{expr.text}.bias", shape=Shape.COLUMN)
                return build.binary("add", made, build.add(bias))
            return made
        if expr.op == "input":
            return build.add(Node(kind=Kind.INPUT, text=expr.text, shape=Shape.FULL))
        if expr.op == "parameter":
            if expr.dims is None or len(expr.dims) > 1:
                raise NotRecognised(f"rules cannot tell how {expr.text} broadcasts")
            one = all(each == "1" for each in expr.dims)
            shape = Shape.SCALAR if one else Shape.COLUMN
            return build.add(Node(kind=Kind.PARAMETER, text=expr.text, shape=shape))
        return None

    if not isinstance(traced.result, Expr):
        raise NotRecognised("rules find no product")
    lowering = Lowering(leaf)
    output = lowering.lower(traced.result)
    if not found:
        raise NotRecognised("rules find no product")
    nodes, output = pruned(lowering.build.nodes, output)
    expr = found[0]
    if expr.op == "layer":
        a, b = _input(expr.args[0]), f"{expr.text}.weight"
        if len(expr.args) != 1 or a.rank is None or a.rank < 2:
            raise NotRecognised("rules know a linear layer of a matrix of inputs")
        return Product(a=a.text, b=b, ranks=(a.rank, 2), turned=True, nodes=nodes, output=output)
    if len(expr.args) != 2 or expr.settings:
        raise NotRecognised("rules do not know these arguments of a product")
    a, (b_, turned) = _input(expr.args[0]), _turned(expr.args[1])
    if a.rank != b_.rank or a.rank not in (2, 3):
        raise NotRecognised("rules know products of two matrices, or of two rows of them")
    return Product(
        a=a.text, b=b_.text, ranks=(a.rank, a.rank), turned=turned, nodes=nodes, output=output
    )


def _input(value: Value) -> Expr:
    if isinstance(value, Expr) and value.op == "input" and not value.integer:
        return value
    raise NotRecognised("rules know products of inputs")


def _turned(value: Value) -> tuple[Expr, bool]:
    """The second operand, and whether it is transposed first."""
    if isinstance(value, Expr) and value.op in ("T", "mT", "t"):
        inner = _input(value.args[0])
        if value.op != "mT" and inner.rank != 2:
            raise NotRecognised("rules do not know this transposition")
        return inner, True
    if isinstance(value, Expr) and value.op == "transpose":
        inner = _input(value.args[0])
        dims = {each for each in value.args[1:] if isinstance(each, int)}
        rank = inner.rank or 0
        if {each % rank if rank else each for each in dims} != {rank - 1, rank - 2}:
            raise NotRecognised("rules do not know this transposition")
        return inner, True
    return _input(value), False


def _space(product: Product) -> Space:
    made = [
        p.width(), p.unroll("2", "vectors of columns in registers", "1", "2", "3", "4"),
        p.sized("rows", "8", "rows in registers", "4", "6", "8", "12"),
        p.sized("strip", "64", "rows per task", "16", "32", "64", "128", "256"),
        *p.threads("16384"),
    ]  # fmt: skip
    if {n.op for n in product.nodes} & POLYNOMIAL:
        made.append(p.math())
    return p.a_space("product", made, (
        {}, {"rows": "12"}, {"rows": "6", "unroll": "4"}, {"rows": "4", "unroll": "4"},
        {"strip": "256"}, {"rows": "8", "unroll": "3", "strip": "128"},
        {"width": "8", "rows": "4"},
    ))  # fmt: skip
