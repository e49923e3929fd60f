"""Small Triton functions that generated kernels call, written out for stand-alone candidates."""

from collections.abc import Iterable

NAMES = {
    "triton_helpers.maximum": "maximum",
    "triton_helpers.minimum": "minimum",
    "triton_helpers.max2": "max_along",
    "triton_helpers.min2": "min_along",
    "triton_helpers.maximum_with_index": "larger_of",
    "triton_helpers.minimum_with_index": "smaller_of",
    "triton_helpers.max_with_index": "argmax_along",
    "triton_helpers.min_with_index": "argmin_along",
    "triton_helpers.prod": "product_along",
    "triton_helpers.any": "any_along",
    "triton_helpers.welford_reduce": "welford_step",
    "triton_helpers.welford_combine": "welford_merge",
    "triton_helpers.welford": "welford_along",
    "triton_helpers.online_softmax_combine": "softmax_step",
    "triton_helpers.online_softmax_combine_with_sum": "softmax_merge",
    "triton_helpers.online_softmax_reduce": "softmax_along",
    "triton_helpers.select_one": "pick_one",
    "triton_helpers.promote_to_tensor": "as_tensor",
    "triton_helpers.div_floor_integer": "floor_divide",
    "triton_helpers.remainder_integer": "floor_remainder",
    "libdevice.exp": "exp",
    "libdevice.tanh": "tanh",
    "libdevice.log1p": "log1p",
    "libdevice.expm1": "expm1",
    "libdevice.isnan": "is_nan",
    "libdevice.isinf": "is_inf",
    "libdevice.trunc": "truncate",
}
"""What the compiler's own library is called here."""

SPEED_FLAG = ("softmax_step", "softmax_merge", "softmax_along")
"""Helpers whose last argument chooses between exponentials; here the text does."""

PUBLIC = {
    "libdevice.sqrt": "tl.sqrt_rn", "libdevice.rsqrt": "tl.rsqrt", "libdevice.erf": "tl.erf",
    "libdevice.floor": "tl.floor", "libdevice.ceil": "tl.ceil", "libdevice.abs": "tl.abs",
    "libdevice.exp2": "tl.exp2", "libdevice.log2": "tl.log2", "libdevice.log": "tl.log",
    "libdevice.sin": "tl.sin", "libdevice.cos": "tl.cos", "libdevice.fma": "tl.fma",
    "tl_math.exp": "tl.exp", "tl_math.log": "tl.log", "tl_math.abs": "tl.abs",
    "tl_math.sin": "tl.sin", "tl_math.cos": "tl.cos", "tl_math.sqrt": "tl.sqrt",
    "tl_math.rsqrt": "tl.rsqrt", "tl_math.exp2": "tl.exp2", "tl_math.log2": "tl.log2",
    "tl_math.floor": "tl.floor", "tl_math.ceil": "tl.ceil", "tl_math.erf": "tl.erf",
    "tl_math.fma": "tl.fma",
}  # fmt: skip
"""The same function under its public name."""

_TEXTS = {
    "maximum": """
def maximum(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "minimum": """
def minimum(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)
""",
    "max_along": """
def max_along(x, axis):
    return tl.reduce(x, axis, maximum)
""",
    "min_along": """
def min_along(x, axis):
    return tl.reduce(x, axis, minimum)
""",
    "larger_of": """
def larger_of(a, at_a, b, at_b):
    # A NaN is larger than all; of equals, the first.
    first = (a > b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    first = first | (same & (at_a < at_b))
    return tl.where(first, a, b), tl.where(first, at_a, at_b)
""",
    "smaller_of": """
def smaller_of(a, at_a, b, at_b):
    # A NaN is smaller than all; of equals, the first.
    first = (a < b) | ((a != a) & (b == b))
    same = (a == b) | ((a != a) & (b != b))
    first = first | (same & (at_a < at_b))
    return tl.where(first, a, b), tl.where(first, at_a, at_b)
""",
    "argmax_along": """
def argmax_along(x, at, axis):
    return tl.reduce((x, at), axis, larger_of)
""",
    "argmin_along": """
def argmin_along(x, at, axis):
    return tl.reduce((x, at), axis, smaller_of)
""",
    "times": """
def times(a, b):
    return a * b
""",
    "product_along": """
def product_along(x, axis):
    return tl.reduce(x, axis, times)
""",
    "either": """
def either(a, b):
    return a | b
""",
    "any_along": """
def any_along(x, axis):
    return tl.reduce(x, axis, either)
""",
    "welford_step": """
def welford_step(x, mean, squares, count, first):
    if first:
        new_mean, new_squares = x, tl.zeros_like(squares)
        new_count = tl.full(count.shape, 1, count.dtype)
    else:
        new_count = count + 1
        new_mean = mean + (x - mean) / new_count
        new_squares = squares + (x - mean) * (x - new_mean)
    return new_mean, new_squares, new_count
""",
    "welford_merge": """
def welford_merge(mean_a, squares_a, count_a, mean_b, squares_b, count_b):
    apart = mean_b - mean_a
    count = count_a + count_b
    share = tl.where(count == 0.0, 0.0, count_b / count)
    squares = squares_a + squares_b + apart * apart * count_a * share
    return mean_a + apart * share, squares, count
""",
    "welford_along": """
def welford_along(mean, squares, count, axis):
    return tl.reduce((mean, squares, count), axis, welford_merge)
""",
    "softmax_step": """
def softmax_step(top, total, x):
    # The largest so far, and the sum of exponentials relative to it.
    new_top = maximum(top, x)
    empty = new_top == float("-inf")
    kept = tl.where(empty, 1.0, exp(top - new_top))
    added = tl.where(empty, 1.0, exp(x - new_top))
    return new_top, total * kept + added
""",
    "softmax_merge": """
def softmax_merge(top_a, total_a, top_b, total_b):
    top = maximum(top_a, top_b)
    empty = top == float("-inf")
    share_a = tl.where(empty, 1.0, exp(top_a - top))
    share_b = tl.where(empty, 1.0, exp(top_b - top))
    return top, total_a * share_a + total_b * share_b
""",
    "softmax_along": """
def softmax_along(tops, totals, axis):
    top = max_along(tops, axis)
    spread = tl.expand_dims(top, axis)
    below = tl.where(spread == float("-inf"), 0, tops - spread)
    return top, tl.sum(totals * exp(below), axis)
""",
    "pick_one": """
def pick_one(x, mask, dim, keep_dims=False):
    return tl.sum(tl.where(mask, x, tl.zeros_like(x)), dim, keep_dims=keep_dims)
""",
    "as_tensor": """
def as_tensor(x):
    return x + tl.zeros((1,), tl.int1)
""",
    "floor_divide": """
def floor_divide(a, b):
    quotient = a // b
    lower = tl.where(a % b != 0, quotient - 1, quotient)
    return tl.where((a < 0) != (b < 0), lower, quotient)
""",
    "floor_remainder": """
def floor_remainder(a, b):
    left = a % b
    return tl.where((left != 0) & ((a < 0) != (b < 0)), left + b, left)
""",
    "exp": """
def exp(x):
    # x = n ln 2 + r with r small: the device's own exp2 is exact enough there.
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    n = tl.minimum(tl.maximum(n, -126.0), 127.0)
    r = tl.fma(n, -0.693359375, x)
    r = tl.fma(n, 2.12194440e-4, r)
    return tl.exp2(r * 1.4426950408889634) * tl.exp2(n)
""",
    "tanh": """
def tanh(x):
    z = x * x  # odd polynomial near 0, where the other form cancels
    p = 2.1475370e-3 * z - 8.1826737e-3
    p = ((p * z + 2.1702968e-2) * z - 5.3947203e-2) * z + 1.3333210e-1
    near = x + x * z * (p * z - 3.3333331e-1)
    far = 1.0 - 2.0 / (tl.exp(2.0 * tl.abs(x)) + 1.0)
    return tl.where(tl.abs(x) < 0.625, near, tl.where(x < 0, -far, far))
""",
    "log1p": """
def log1p(x):
    u = 1.0 + x  # log(u) + what 1 + x lost in rounding, over u
    lost = tl.where(u > 0.0, (x - (u - 1.0)) / u, 0.0)
    return tl.where(u < float("inf"), tl.log(u) + lost, x)
""",
    "expm1": """
def expm1(x):
    p = (x * (1 / 40320) + 1 / 5040) * x + 1 / 720  # near 0, where the other form cancels
    near = x + x * x * ((((p * x + 1 / 120) * x + 1 / 24) * x + 1 / 6) * x + 0.5)
    return tl.where(tl.abs(x) < 0.5, near, exp(x) - 1.0)
""",
    "is_nan": """
def is_nan(x):
    return x != x
""",
    "is_inf": """
def is_inf(x):
    return tl.abs(x) == float("inf")
""",
    "truncate": """
def truncate(x):
    return tl.where(x < 0, tl.ceil(x), tl.floor(x))
""",
}
_NEEDS = {
    "max_along": ("maximum",), "min_along": ("minimum",), "argmax_along": ("larger_of",),
    "argmin_along": ("smaller_of",), "product_along": ("times",), "any_along": ("either",),
    "welford_along": ("welford_merge",), "softmax_step": ("maximum", "exp"),
    "softmax_merge": ("maximum", "exp"), "softmax_along": ("max_along", "exp"),
    "expm1": ("exp",),
}  # fmt: skip

REPLACED = ("exp", "expm1", "log1p", "tanh")
"""Functions that are written out here, and that the device's library has as well."""


def function(name: str, math: str, text: str) -> str:
    """A helper by one of the ways to compute it: as written out here, or by what the device has.

    Args:
        name: Of the helper.
        math: ``exact``: as written out. ``library``: the device's library, as eager uses it, with a
            third fewer instructions where it can skip some. ``native``: that, and exponentials by
            the instruction, a few units in the last place less exact.
        text: As written out.
    """
    if math == "native" and name == "exp":
        return f"@triton.jit\ndef {name}(x):\n    return tl.exp(x)"
    if math == "exact" or name not in REPLACED:
        return text
    return f"@triton.jit\ndef {name}(x):\n    return libdevice.{name}(x)"


def written(names: Iterable[str]) -> list[str]:
    """The text of these helpers and of those that they need, each once, in order."""
    wanted: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in wanted:
            wanted.add(name)
            stack += _NEEDS.get(name, ())
    order = sorted(wanted, key=lambda name: (_depth(name), name))
    return ["@triton.jit" + _TEXTS[name].rstrip() for name in order]


def _depth(name: str) -> int:
    return 1 + max((_depth(each) for each in _NEEDS.get(name, ())), default=0)


def merged(preludes: Iterable[str]) -> list[str]:
    """The functions of several preludes, each once."""
    return list(dict.fromkeys(each for text in preludes for each in text.split("\n\n\n") if each))
