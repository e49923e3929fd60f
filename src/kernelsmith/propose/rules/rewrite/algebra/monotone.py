"""Maxima and minima of monotone functions: choose first, compute once."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import Dims, Node, aligned, reduced

_RISING = {"relu", "sigmoid", "tanh", "exp", "erf", "softplus", "softsign", "log1p", "expm1",
           "clamp", "hardsigmoid", "logsigmoid", "selu"}  # fmt: skip
"""Never falling on all of their domain; gelu, silu, mish and hardswish fall somewhere."""


def _rises(node: Node) -> bool:
    if node.op == "leaky_relu":
        return node.number("negative_slope") >= 0
    if node.op == "elu":
        return node.number("alpha") >= 0
    return node.op in _RISING


@rule(
    "choose-then-compute",
    "a maximum (or minimum) of a rising function is the function of the maximum, computed on fewer "
    "elements; a falling one turns maximum into minimum",
)
def chosen(b: Build, x: int) -> int | None:
    """max_i f(x_i) = f(max_i x_i) for f that never falls.

    So max_i (x_i + c) = max_i x_i + c for c the same along the axes, max_i (a x_i) = a max_i x_i
    for a number a > 0, and max_i (-x_i) = -min_i x_i.

    NaN: the maximum hands it on and so does f. Rounding: floats round monotonously, so that both
    sides agree for +, *, and up to the function's own rounding otherwise. The same for max pooling
    (padding is minus infinity and never chosen where a window holds an element; none is used here).
    """
    node = b.arena[x]
    if node.op == "max_pool":
        if any(node.dims("padding")):
            return None
        lead = len(node.shape) - len(node.dims("kernel"))
        dims = tuple(range(lead, len(node.shape)))
    elif node.op in ("amax", "amin"):
        dims = node.dims("dims")
    else:
        return None
    value = node.inputs[0]
    inner = b.arena[value]
    if _rises(inner):
        picked = _picked(b, node, inner.inputs[0])
        return b.unary(inner.op, picked, **dict(inner.attrs))
    if inner.op == "neg" and node.op != "max_pool":
        other = b.reduce("amin" if node.op == "amax" else "amax", inner.inputs[0], dims,
                         keep=bool(node.attr("keep")))  # fmt: skip
        return b.unary("neg", other)
    if inner.op in ("add", "sub", "mul", "div"):
        return _affine(b, node, inner, dims)
    return None


def _picked(b: Build, node: Node, x: int) -> int:
    if node.op == "max_pool":
        return b.pool("max_pool", x, node.dims("kernel"), node.dims("stride"))
    return b.reduce(node.op, x, node.dims("dims"), keep=bool(node.attr("keep")))


def _affine(b: Build, node: Node, inner: Node, dims: Dims) -> int | None:
    for place, (each, other) in enumerate((inner.inputs, inner.inputs[::-1])):
        if b.arena.shape(each) != inner.shape or (place == 1 and inner.op in ("sub", "div")):
            continue
        known = b.arena[other]
        if inner.op in ("mul", "div"):
            if known.op != "number" or known.number() <= 0:
                continue
            return b.binary(inner.op, _picked(b, node, each), other)
        own = aligned(known.shape, len(inner.shape))
        if any(own[d] != 1 for d in dims):
            continue
        picked = _picked(b, node, each)
        if known.op != "number" and node.op != "max_pool" and not node.attr("keep"):
            other = b.reshape(other, reduced(own, dims, keep=False))
        return b.binary(inner.op, picked, other)
    return None


RULES = (chosen,)
