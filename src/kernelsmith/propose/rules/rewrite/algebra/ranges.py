"""Bounds that follow from the operations alone, and what they make superfluous."""

import math

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Node

_INF = math.inf
_OWN: dict[str, tuple[float, float]] = {
    "relu": (0, _INF), "sigmoid": (0, 1), "tanh": (-1, 1), "exp": (0, _INF), "abs": (0, _INF),
    "square": (0, _INF), "sqrt": (0, _INF), "softmax": (0, 1),
    "log_softmax": (-_INF, 0), "erf": (-1, 1), "sin": (-1, 1), "cos": (-1, 1),
    "hardsigmoid": (0, 1), "var": (0, _INF), "logsigmoid": (-_INF, 0),
    "gelu": (-0.18, _INF), "silu": (-0.28, _INF), "mish": (-0.31, _INF), "softsign": (-1, 1),
    "hardswish": (-0.376, _INF), "expm1": (-1, _INF),
}  # fmt: skip
"""What an operator can return at all, rounding included (tanh and erf are at most 1 in floats)."""
_HANDED = {"reshape", "permute", "expand", "slice", "amax", "amin", "mean", "max_pool",
           "avg_pool"}  # fmt: skip
_SLACK = 1e-2
"""Bounds computed here are widened by this much of themselves: floats round, bfloat16 most."""
_LARGEST = 6e4
"""What is computed to be larger may be infinite in float16."""


def bounds(b: Build, x: int, depth: int = 12) -> tuple[float, float]:
    """An interval that holds every value that is not NaN."""
    if x == NONE or depth == 0:
        return -_INF, _INF
    node = b.arena[x]
    if node.op in ("number", "full"):
        return node.number(), node.number()
    low, high = _OWN.get(node.op, (-_INF, _INF))
    if node.op in _HANDED:
        return bounds(b, node.inputs[0], depth - 1)
    if node.op == "clamp":
        return _clamped(node, bounds(b, node.inputs[0], depth - 1))
    if node.op in ("softplus", "rsqrt"):
        # softplus of beta < 0 is negative and one of threshold < 0 is x; 1 / sqrt(-0.0) is -inf
        inner = bounds(b, node.inputs[0], depth - 1)
        rises = node.op == "softplus" and node.number("beta") > 0 and node.number("threshold") >= 0
        return (0 if rises or (node.op == "rsqrt" and inner[0] > 0) else -_INF), _INF
    if node.op in ("leaky_relu", "elu", "selu"):
        inner = bounds(b, node.inputs[0], depth - 1)
        return (0 if inner[0] >= 0 else -_INF), _INF
    if node.op in ("gelu", "silu", "mish", "hardswish"):
        inner = bounds(b, node.inputs[0], depth - 1)
        # all of them lie between 0 and x for positive x, and below 0 for negative x
        return (0 if inner[0] >= 0 else low), max(inner[1], 0)
    if node.op in ("tanh", "relu"):
        inner = bounds(b, node.inputs[0], depth - 1)
        if inner[0] >= 0 and node.op == "tanh":
            low = 0
        if node.op == "relu":
            high = max(inner[1], 0)
    if node.op in ("sum", "cat", "stack"):
        parts = [bounds(b, each, depth - 1) for each in node.inputs]
        if node.op != "sum":
            return min(p[0] for p in parts), max(p[1] for p in parts)
        return (0 if parts[0][0] >= 0 else -_INF), (0 if parts[0][1] <= 0 else _INF)
    if node.op in ("add", "mul", "sub", "div", "maximum", "minimum"):
        return _combined(node.op, *(bounds(b, each, depth - 1) for each in node.inputs))
    return low, high


def _clamped(node: Node, inner: tuple[float, float]) -> tuple[float, float]:
    low, high = (_bound(node, "low"), _bound(node, "high"))
    # torch takes the minimum last, so that the upper bound wins where they cross
    return (min(max(inner[0], low), high), min(max(inner[1], low), high))


def _bound(node: Node, name: str) -> float:
    value = node.attr(name)
    if value is None:
        return -_INF if name == "low" else _INF
    assert isinstance(value, int | float)
    return float(value)


def _combined(op: str, a: tuple[float, float], c: tuple[float, float]) -> tuple[float, float]:
    match op:
        case "add":
            return _widened(a[0] + c[0], a[1] + c[1])
        case "sub":
            return _widened(a[0] - c[1], a[1] - c[0])
        case "maximum":
            return max(a[0], c[0]), max(a[1], c[1])
        case "minimum":
            return min(a[0], c[0]), min(a[1], c[1])
        case "mul":
            if a[0] >= 0 and c[0] >= 0:
                return 0.0, _widened(0, a[1] * c[1])[1]
        case "div":
            if a[0] >= 0 and c[0] == c[1] and 0 < c[0] < _INF:
                return _widened(a[0] / c[0], a[1] / c[0])
    return -_INF, _INF


def _widened(low: float, high: float) -> tuple[float, float]:
    """Rounding must not cross a bound, but zero is kept: signs are exact."""
    down = low - abs(low) * _SLACK if -_LARGEST <= low <= _LARGEST else -_INF
    up = high + abs(high) * _SLACK if -_LARGEST <= high <= _LARGEST else _INF
    return down, up


@rule(
    "within-bounds",
    "a clamp, relu or abs that its input's range makes superfluous is left out",
    tidy=True,
)
def superfluous(b: Build, x: int) -> int | None:
    """If lo <= x <= hi holds by construction, max(x, a) = x for a <= lo, min(x, c) = x for c >= hi.

    relu and abs are the identity for x >= 0, and so are leaky_relu and elu (with a finite slope,
    which is multiplied with 0); NaN passes through all of them as before, and the sign of a zero
    may change. One side of a clamp goes if only that is superfluous. Ranges come from the
    operators (``bounds``), never from the inputs. A bound that is NaN makes everything NaN.
    """
    node = b.arena[x]
    if node.op not in ("clamp", "relu", "abs", "leaky_relu", "elu"):
        return None
    low, high = bounds(b, node.inputs[0])
    if node.op != "clamp":
        slopes = [v for _, v in node.attrs if isinstance(v, int | float)]
        return node.inputs[0] if low >= 0 and all(map(math.isfinite, slopes)) else None
    below, above = _bound(node, "low"), _bound(node, "high")
    if not below <= above:
        return None
    free_low, free_high = low >= below, high <= above
    if free_low and free_high:
        return node.inputs[0]
    if free_low and below > -_INF:
        return b.clamp(node.inputs[0], None, above)
    if free_high and above < _INF:
        return b.clamp(node.inputs[0], below, None)
    return None


@rule(
    "forced-constant",
    "the range of its input forces a clamp to one value, whatever the inputs are",
    tidy=True, finite=True,
)  # fmt: skip
def forced(b: Build, x: int) -> int | None:
    """If x <= a by construction, clamp(x, a, c) = min(max(x, a), c) = min(a, c); dually above.

    relu(x) = 0 for x <= 0. Holds for infinities too; a NaN would have passed through, and can
    arise from finite inputs only by overflow on the way (or from a bound that is NaN).
    """
    node = b.arena[x]
    if node.op == "relu" and bounds(b, node.inputs[0])[1] <= 0:
        return b.full(node.shape, 0.0, node.dtype)
    if node.op != "clamp" or any(map(math.isnan, _limits(node))):
        return None
    low, high = _clamped(node, bounds(b, node.inputs[0]))
    if low == high and math.isfinite(low):
        return b.full(node.shape, low, node.dtype)
    return None


@rule(
    "clamps-compose",
    "two clamps, one after the other, are one with the tighter bounds",
    tidy=True,
)
def clamps(b: Build, x: int) -> int | None:
    """min(max(min(max(x, a), c), d), e) = clamp(x, clamp(a, d, e), clamp(c, d, e)) for a <= c.

    A composition of monotone maps that are the identity between their bounds: the result is the
    identity between the clamped bounds and constant outside. relu is a clamp with lower bound 0.
    NaN passes through both. Side conditions: a <= c and d <= e, so that none of them is NaN.
    """
    node = b.arena[x]
    if node.op not in ("clamp", "relu"):
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op not in ("clamp", "relu") or (node.op == inner.op == "relu"):
        return None
    (a, c), (d, e) = (_limits(each) for each in (inner, node))
    if not (a <= c and d <= e):
        return None
    low, high = (min(max(each, d), e) for each in (a, c))
    if low == -_INF and high == _INF:
        return None
    return b.clamp(inner.inputs[0], None if low == -_INF else low, None if high == _INF else high)


def _limits(node: Node) -> tuple[float, float]:
    if node.op == "relu":
        return 0.0, _INF
    return _bound(node, "low"), _bound(node, "high")


RULES = (forced, superfluous, clamps)
