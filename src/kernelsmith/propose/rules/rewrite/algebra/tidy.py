"""Work over one element, work that undoes itself, and constants."""

import math
from collections.abc import Callable

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import (
    BINARY,
    NONE,
    Node,
    product,
    reduced,
)

_SAME_TWICE = {"sum", "mean", "amax", "amin", "logsumexp"}


@rule(
    "size-one-reduction",
    "a reduction over axes of size one returns its input, so only the shape is changed",
    tidy=True,
)
def size_one(b: Build, x: int) -> int | None:
    """``r(x)`` over one element is ``x``, for sum, mean, amax, amin and logsumexp.

    log(exp(x - m)) + m with m = x is 0 + x; torch takes m = 0 where x is infinite, and the log of
    exp(+-inf) is +-inf again; NaN stays NaN. Axes of size one beside others are left out of the
    reduction, for the same reason. Holds for all values.
    """
    node = b.arena[x]
    if node.op not in _SAME_TWICE:
        return None
    shape = b.arena.shape(node.inputs[0])
    dims = node.dims("dims")
    real = tuple(d for d in dims if shape[d] != 1)
    if len(real) == len(dims):
        return None
    if not real:
        return b.reshape(node.inputs[0], node.shape)
    return b.reshape(b.reduce(node.op, node.inputs[0], real, keep=True), node.shape)


@rule(
    "size-one-softmax",
    "a softmax over an axis of size one is one everywhere",
    tidy=True, finite=True,
)  # fmt: skip
def size_one_softmax(b: Build, x: int) -> int | None:
    """exp(x - x) / exp(x - x) = 1, and its log is 0. Infinities would give NaN."""
    node = b.arena[x]
    if node.op not in ("softmax", "log_softmax") or node.shape[node.integer("dim")] != 1:
        return None
    return b.full(node.shape, 1.0 if node.op == "softmax" else 0.0, node.dtype)


@rule(
    "softmax-sums-to-one",
    "the values of a softmax sum to one over its own axis",
    tidy=True, finite=True,
)  # fmt: skip
def softmax_total(b: Build, x: int) -> int | None:
    """sum_i e_i / sum_j e_j = 1; the mean is 1 / n; logsumexp of a log_softmax is log 1 = 0.

    Side condition: the reduction is over exactly the softmax's axis.
    """
    node = b.arena[x]
    if node.op not in ("sum", "mean", "logsumexp"):
        return None
    inner = b.arena[node.inputs[0]]
    want = "log_softmax" if node.op == "logsumexp" else "softmax"
    if inner.op != want or node.dims("dims") != (inner.integer("dim"),):
        return None
    count = inner.shape[inner.integer("dim")]
    value = {"sum": 1.0, "mean": 1 / count, "logsumexp": 0.0}[node.op]
    return b.full(node.shape, value, node.dtype)


@rule(
    "minus-itself",
    "a value minus itself is zero, whatever the inputs are",
    tidy=True, finite=True,
)  # fmt: skip
def minus_itself(b: Build, x: int) -> int | None:
    """X - x = 0 for finite x; an infinite or NaN x would give NaN.

    Both sides are one node (equal nodes are made once), up to a change of shape that moves no
    element: one side may be broadcast along axes of size one only.
    """
    node = b.arena[x]
    if node.op != "sub":
        return None
    left, right = (_unshaped(b, each) for each in node.inputs)
    sizes = {b.arena[each].size for each in node.inputs}
    if left != right or sizes != {node.size}:
        return None
    return b.full(node.shape, 0.0, node.dtype)


def _unshaped(b: Build, x: int) -> int:
    while b.arena[x].op == "reshape":
        x = b.arena[x].inputs[0]
    return x


@rule(
    "norm-of-one-element",
    "normalising a single element leaves the bias alone, as x minus its own mean is zero",
    tidy=True, finite=True,
)  # fmt: skip
def norm_of_one(b: Build, x: int) -> int | None:
    """(x - mean(x)) * rstd * w + b with mean(x) = x is 0 * rsqrt(eps) * w + b = b.

    Side conditions: a group holds one element, and eps > 0, so that rsqrt(0 + eps) is finite.
    """
    node = b.arena[x]
    if node.op == "layer_norm":
        count = product(node.shape[len(node.shape) - node.integer("rank") :])
    elif node.op == "group_norm":
        count = node.shape[1] // node.integer("groups") * product(node.shape[2:])
    else:
        return None
    if count != 1 or not b.steady(x):
        return None
    bias = node.inputs[2]
    if bias == NONE:
        return b.full(node.shape, 0.0, node.dtype)
    if node.op == "group_norm":
        bias = b.reshape(bias, (1, node.shape[1], *(1,) * (len(node.shape) - 2)))
    return b.expand(bias, node.shape)


@rule(
    "reductions-compose",
    "two reductions of one kind, one after the other, are one over both sets of axes",
    tidy=True,
)
def composed(b: Build, x: int) -> int | None:
    """Sums, maxima, minima and log-sum-exps are associative and commutative over elements.

    For means: the mean of means of equally many elements is the mean of all; the groups of a
    tensor's reduction are equally large. Overflow: for sums the partial sums are among those of
    the inner reduction. Infinities and NaN end up in the same result.
    """
    node = b.arena[x]
    if node.op not in _SAME_TWICE:
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op != node.op:
        return None
    shape = b.arena.shape(inner.inputs[0])
    first = inner.dims("dims")
    left = list(range(len(shape))) if inner.attr("keep") else [
        d for d in range(len(shape)) if d not in first]  # fmt: skip
    both = {*first, *(left[d] for d in node.dims("dims"))}
    return b.reshape(b.reduce(node.op, inner.inputs[0], sorted(both), keep=True), node.shape)


@rule(
    "cancelling-pair",
    "two operations that undo each other are left out",
    tidy=True,
)
def cancelling(b: Build, x: int) -> int | None:
    """Exact inverses: neg(neg x), permutations that compose to one, x * 1, x / 1, x + 0, x - 0.

    x + 0 changes -0.0 to 0.0 and nothing else (no rule keeps the sign of a zero). abs(neg x) =
    abs(x), square(neg x) = square(x), abs(abs x) = abs x, relu(relu x) = relu x. Not used:
    log(exp x), sqrt(x^2) / square(sqrt x), x / y * y, (x + y) - y: they round, or overflow in
    between.
    """
    node = b.arena[x]
    if node.op == "permute":
        inner = b.arena[node.inputs[0]]
        if inner.op == "permute":
            first, then = inner.dims("dims"), node.dims("dims")
            return b.permute(inner.inputs[0], tuple(first[d] for d in then))
        return None
    if node.op in ("neg", "abs", "square", "relu") and len(node.inputs) == 1:
        inner = b.arena[node.inputs[0]]
        if node.op == inner.op and node.op != "square":
            return inner.inputs[0] if node.op == "neg" else node.inputs[0]
        if inner.op == "neg" and node.op in ("abs", "square"):
            return b.unary(node.op, inner.inputs[0])
        return None
    if node.op in BINARY:
        return _neutral(b, node)
    return None


def _neutral(b: Build, node: Node) -> int | None:
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1}.get(node.op)
    if neutral is None:
        return None
    a, c = node.inputs
    for each, other in ((c, a), (a, c)):
        known = b.arena[each]
        if known.op in ("number", "full") and known.number() == neutral:
            if each == a and node.op in ("sub", "div"):
                continue
            if b.arena.shape(other) == node.shape and b.arena[other].dtype == node.dtype:
                return other
    return None


_FOLDED: dict[str, Callable[[float], float]] = {
    "relu": lambda v: max(v, 0.0),
    "neg": lambda v: -v,
    "abs": abs,
    "square": lambda v: v * v,
    "sigmoid": lambda v: 1 / (1 + math.exp(-v)),
    "tanh": math.tanh,
    "exp": math.exp,
    "erf": math.erf,
    "sin": math.sin,
    "cos": math.cos,
    "silu": lambda v: v / (1 + math.exp(-v)),
    "hardswish": lambda v: v * min(max(v + 3, 0.0), 6.0) / 6,
    "hardsigmoid": lambda v: min(max(v + 3, 0.0), 6.0) / 6,
    "mish": lambda v: v * math.tanh(math.log1p(math.exp(v))),
    "log1p": math.log1p,
    "expm1": math.expm1,
}


@rule(
    "constant-folding",
    "an operation on a constant is a constant",
    tidy=True,
)
def folded(b: Build, x: int) -> int | None:
    """f(c) for a tensor filled with c is a tensor filled with f(c), computed in float64.

    Reductions: the sum of n values c is n c; mean, amax and amin are c. A constant that is added
    to (or multiplied with) a tensor of the result's shape becomes a number. Functions outside the
    table, and results that are not finite, are left as they are.
    """
    node = b.arena[x]
    if not node.inputs or node.inputs[0] == NONE:
        return None
    first = b.arena[node.inputs[0]]
    try:
        if len(node.inputs) == 1 and first.op == "full":
            return _folded_unary(b, node, first.number(), first)
        if node.op in BINARY:
            return _folded_binary(b, node)
    except (ArithmeticError, ValueError):
        pass
    return None


def _folded_unary(b: Build, node: Node, value: float, inner: Node) -> int | None:
    match node.op:
        case "clamp":
            low, high = node.attr("low"), node.attr("high")
            assert not isinstance(low, str | tuple)
            assert not isinstance(high, str | tuple)
            if any(each is not None and math.isnan(each) for each in (low, high)):
                return None
            value = max(value, low) if low is not None else value
            value = min(value, high) if high is not None else value
        case "gelu":
            if node.attr("approximate") != "none":
                return None
            value = value * 0.5 * (1 + math.erf(value / math.sqrt(2)))
        case "leaky_relu":
            value = value if value > 0 else value * node.number("negative_slope")
        case "sum":
            value *= inner.size // max(node.size, 1)
        case "mean" | "amax" | "amin" | "reshape" | "permute" | "expand" | "slice":
            pass
        case "softmax":
            value = 1 / node.shape[node.integer("dim")]
        case op if op in _FOLDED:
            value = _FOLDED[op](value)
        case _:
            return None
    return b.full(node.shape, value, node.dtype) if math.isfinite(value) else None


def _folded_binary(b: Build, node: Node) -> int | None:
    left, right = (b.arena[each] for each in node.inputs)
    known = [each.op in ("full", "number") for each in (left, right)]
    if all(known):
        u, v = left.number(), right.number()
        value = {"add": u + v, "sub": u - v, "mul": u * v, "maximum": max(u, v),
                 "minimum": min(u, v)}.get(node.op, u / v if node.op == "div" else 0.0)  # fmt: skip
        return b.full(node.shape, value, node.dtype) if math.isfinite(value) else None
    if node.op in ("maximum", "minimum"):
        return None  # torch's functions of that name take no numbers
    for place, (each, other) in enumerate(((left, right), (right, left))):
        if each.op == "full" and other.shape == node.shape:
            inputs = list(node.inputs)
            inputs[place] = b.number(each.number())
            return b.binary(node.op, *inputs)
    return None


@rule(
    "log-softmax",
    "x minus its own log-sum-exp is log_softmax, and its exponential is softmax",
    finite=True,
)
def log_softmax(b: Build, x: int) -> int | None:
    """By definition: the logarithm of a softmax over one axis is x minus its log-sum-exp.

    Finite values only: beside +inf the difference is -inf, and log_softmax is NaN everywhere.
    Not used: log(softmax x) and log(sum(exp x)): they become -inf or inf on finite inputs where
    the fused forms do not, and what the reference gives must stay what it is.
    """
    node = b.arena[x]
    if node.op == "exp":
        inner = b.arena[node.inputs[0]]
        if inner.op == "log_softmax":
            return b.softmax("softmax", inner.inputs[0], inner.integer("dim"))
    if node.op == "sub":
        value, lse = node.inputs
        other = b.arena[lse]
        if other.op != "logsumexp" or other.inputs[0] != value or not other.attr("keep"):
            return None
        dims = other.dims("dims")
        shape = b.arena.shape(value)
        if (
            len(dims) == 1
            and shape == node.shape
            and other.shape == reduced(shape, dims, keep=True)
        ):
            return b.softmax("log_softmax", value, dims[0])
    return None


RULES = (size_one, size_one_softmax, softmax_total, minus_itself, norm_of_one, composed,
         cancelling, folded, log_softmax)  # fmt: skip
