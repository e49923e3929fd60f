"""Affine steps behind a product, folded into its weights and bias at call time."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Node, aligned

_PRODUCTS = ("linear", "conv", "conv_transpose")


def _channel(b: Build, node: Node) -> int:
    return len(node.shape) - 1 if node.op == "linear" else 1


def _per_channel(b: Build, x: int, node: Node) -> int | None:
    """``x`` as one value per channel of a product (or one number), if it is made of weights."""
    other = b.arena[x]
    if other.op == "number":
        return x
    if b.arena.depends(x) or other.dtype != node.dtype or len(other.shape) > len(node.shape):
        return None
    channel = _channel(b, node)
    shape = aligned(other.shape, len(node.shape))
    if any(n != 1 for i, n in enumerate(shape) if i != channel):
        return None
    return b.reshape(x, (shape[channel],))


def _product(b: Build, node: Node, w: int, bias: int) -> int:
    inputs = (node.inputs[0], w, bias)
    return b.arena.add(
        Node(op=node.op, inputs=inputs, attrs=node.attrs, shape=node.shape, dtype=node.dtype)
    )


def _biased(b: Build, node: Node, bias: int) -> int:
    """A bias vector of full length."""
    out = node.shape[_channel(b, node)]
    if b.arena[bias].op == "number":
        return b.full((out,), b.arena[bias].number(), node.dtype)
    return b.expand(bias, (out,))


def _matched(b: Build, x: int, ops: tuple[str, ...]) -> tuple[Node, Node, int, bool] | None:
    """The step, the product before it, the other operand, and whether the product comes first."""
    node = b.arena[x]
    if node.op not in ops:
        return None
    for place in (0, 1):
        inner = b.arena[node.inputs[place]]
        if inner.op in _PRODUCTS and inner.shape == node.shape:
            other = _per_channel(b, node.inputs[1 - place], inner)
            if other is not None:
                return node, inner, other, place == 0
    return None


@rule(
    "fold-bias",
    "a shift per channel behind a product joins its bias",
)
def bias(b: Build, x: int) -> int | None:
    """(x w + b) + c = x w + (b + c), and (x w + b) - c = x w + (b - c), per channel.

    Side conditions: c is made of weights and numbers only and has one value per output channel. A
    number is not so large that b would be rounded away beside it.
    """
    found = _matched(b, x, ("add", "sub"))
    if found is None:
        return None
    node, inner, other, first = found
    if (not first and node.op == "sub") or not b.settled(other):
        return None
    old = inner.inputs[2]
    if old == NONE:
        number = b.arena[other].op == "number"
        if node.op == "sub":
            other = b.number(-b.arena[other].number()) if number else b.unary("neg", other)
        return _product(b, inner, inner.inputs[1], _biased(b, inner, other))
    return _product(b, inner, inner.inputs[1], b.binary(node.op, old, other))


def _weight_scale(b: Build, inner: Node, factor: int, op: str) -> int | None:
    """The weights, each output channel multiplied (or divided) by its factor."""
    w = inner.inputs[1]
    shape = b.arena.shape(w)
    if b.arena[factor].op == "number":
        return b.binary(op, w, factor)
    axis = 1 if inner.op == "conv_transpose" else 0
    size = b.arena.shape(factor)[0]
    if inner.op == "conv_transpose" and inner.integer("groups") != 1 and size != 1:
        return None
    to = tuple(size if i == axis else 1 for i in range(len(shape)))
    return b.binary(op, w, b.reshape(factor, to))


@rule(
    "fold-scale",
    "a scale per channel behind a product joins its weights, folded anew at each call",
)
def scale(b: Build, x: int) -> int | None:
    """(x w_c + b_c) a_c = x (w_c a_c) + b_c a_c. A divisor must be a number other than 0.

    Side conditions: a is made of weights and numbers only, one value per output channel, neither
    infinite nor zero to a narrow dtype. Rounding: one more in each weight, one fewer in each
    result.
    """
    found = _matched(b, x, ("mul", "div"))
    if found is None:
        return None
    node, inner, other, first = found
    known = b.arena[other]
    if node.op == "div" and (not first or known.op != "number"):
        return None
    if known.op == "number" and b.factor(other) is None:
        return None
    w = _weight_scale(b, inner, other, node.op)
    if w is None:
        return None
    old = inner.inputs[2]
    return _product(b, inner, w, old if old == NONE else b.binary(node.op, old, other))


@rule(
    "fold-batch-norm",
    "batch norm in eval mode is a scale and a shift per channel, and both join the product "
    "before it",
)
def batch_norm(b: Build, x: int) -> int | None:
    """(y - m) / sqrt(v + e) g + h = y a + (h - m a) with a = g / sqrt(v + e), for y = x w + b.

    So w becomes w a and b becomes (b - m) a + h; running statistics are buffers, read at call time.
    Side conditions: eval mode (the graph has no other), channels of the norm are the product's,
    eps > 0, so that a is finite.
    """
    node = b.arena[x]
    if node.op != "batch_norm":
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op not in _PRODUCTS or _channel(b, inner) != 1 or not b.steady(x) or any(
        b.arena.depends(each) for each in node.inputs[1:] if each != NONE
    ):  # fmt: skip
        return None
    _, mean, var, gain, shift = node.inputs
    factor = b.unary("rsqrt", b.binary("add", var, b.number(node.number("eps"))))
    if gain != NONE:
        factor = b.binary("mul", gain, factor)
    w = _weight_scale(b, inner, factor, "mul")
    if w is None:
        return None
    old = inner.inputs[2]
    moved = b.unary("neg", mean) if old == NONE else b.binary("sub", old, mean)
    return _product(b, inner, w, b.add(b.binary("mul", moved, factor), shift))


@rule(
    "numbers-together",
    "two shifts or two scales by numbers, one after the other, are one",
)
def numbers(b: Build, x: int) -> int | None:
    """(x + u) + v = x + (u + v) and (x u) v = x (u v), u and v known numbers; (x / u) / v alike.

    Rounding: one operation fewer. Side conditions: |u + v| <= 1e6, and |u| at most four times
    that, because (x + u) - u rounds x to the digits of u, sometimes on purpose; |u v| and |u|
    between 1e-6 and 1e6, so that no intermediate value that was finite becomes infinite for inputs
    within 1e30.
    """
    node = b.arena[x]
    if node.op not in ("add", "sub", "mul", "div") or b.arena[node.inputs[1]].op != "number":
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op not in ("add", "sub", "mul", "div") or b.arena[inner.inputs[1]].op != "number":
        return None
    u, v = b.arena[inner.inputs[1]].number(), b.arena[node.inputs[1]].number()
    if {node.op, inner.op} <= {"add", "sub"}:
        total = (u if inner.op == "add" else -u) + (v if node.op == "add" else -v)
        if not abs(u) <= 4 * abs(total) <= 4e6:
            return None
        return b.binary("add", inner.inputs[0], b.number(total))
    if {node.op, inner.op} <= {"mul", "div"} and u != 0 and v != 0:
        total = (u if inner.op == "mul" else 1 / u) * (v if node.op == "mul" else 1 / v)
        if 1e-6 <= abs(total) <= 1e6 and 1e-6 <= abs(u) <= 1e6:
            return b.binary("mul", inner.inputs[0], b.number(total))
    return None


RULES = (bias, scale, batch_norm, numbers)
