"""Maxima and minima of monotone functions: choose first, compute once."""

import math

from kernelsmith.propose.rules.rewrite.algebra.ranges import bounds
from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import EPS, Dims, Node, aligned, reduced

_RISING = {"relu", "sigmoid", "tanh", "exp", "erf", "expm1", "clamp", "hardsigmoid", "logsigmoid",
           "selu"}  # fmt: skip
"""Never falling from minus to plus infinity, and a number at both; gelu, silu, mish and hardswish
fall somewhere."""
_FROM = {"log1p": -1.0, "log": 0.0, "sqrt": 0.0}
"""Never falling from here on, and NaN below."""


def _rises(b: Build, node: Node, chosen: str) -> bool:
    """Whether the chosen of ``f(x)`` is ``f`` of the chosen, whatever the values are.

    A function that is NaN below some point gives NaN where any element is below it: the minimum
    is below it exactly then, the maximum says nothing, so that elements must be known to lie above.
    Softsign is inf / inf at both ends, leaky_relu of slope 0 is 0 times inf at one.
    """
    match node.op:
        case "leaky_relu":
            return 1e-30 <= node.number("negative_slope") <= 1e30
        case "elu":
            return 0 <= node.number("alpha") <= 1e30
        case "softplus":
            return _softplus_rises(node)
        case "softsign":
            low, high = bounds(b, node.inputs[0])
            return low > -math.inf and high < math.inf
        case op if op in _FROM:
            return chosen == "amin" or bounds(b, node.inputs[0])[0] >= _FROM[op]
    return node.op in _RISING


def _softplus_rises(node: Node) -> bool:
    """Above ``threshold / beta`` softplus is x, which is less than what it tends to from below.

    With t the threshold it falls there from log(1 + exp t) / beta to t / beta, by log(1 + exp(-t))
    / beta <= exp(-t) / beta. That is no more than the rounding of t / beta if exp(-t) <= eps t (20
    and more in float32, 33 in float64). With t above 80, exp overflows before x takes over: inf,
    then x again. Elsewhere both pieces rise.
    """
    t, beta = node.number("threshold"), node.number("beta")
    return 1e-6 <= beta <= 1e6 and 0 < t <= 80 and math.exp(-t) <= EPS[node.dtype] * t


@rule(
    "choose-then-compute",
    "a maximum (or minimum) of a rising function is the function of the maximum, computed on fewer "
    "elements; a falling one turns maximum into minimum",
)
def chosen(b: Build, x: int) -> int | None:
    """max_i f(x_i) = f(max_i x_i) for f that never falls.

    So max_i (x_i + c) = max_i x_i + c for c the same along the axes, max_i (a x_i) = a max_i x_i
    for a number a > 0, and max_i (-x_i) = -min_i x_i.

    NaN: the maximum hands it on and so does f, and f makes no NaN that the chosen element does not
    show (``_rises``). c is finite (a number, or made of weights): inf + -inf is NaN for an element
    that is not chosen; likewise a is not 0 or infinite. Rounding: floats round monotonously, so
    that both sides agree for +, *, and up to the function's own rounding otherwise. The same for
    max pooling (padding is minus infinity and never chosen where a window holds an element; none
    is used here).
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
    if _rises(b, inner, node.op):
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
            if (b.factor(other) or 0.0) <= 0:
                continue
            return b.binary(inner.op, _picked(b, node, each), other)
        own = aligned(known.shape, len(inner.shape))
        if any(own[d] != 1 for d in dims) or not b.settled(other):
            continue
        picked = _picked(b, node, each)
        if known.op != "number" and node.op != "max_pool" and not node.attr("keep"):
            other = b.reshape(other, reduced(own, dims, keep=False))
        return b.binary(inner.op, picked, other)
    return None


RULES = (chosen,)
