"""Torch's functions as graphs of the few operators that the templates know."""

import math
from collections.abc import Callable

from kernelsmith.propose.rules.graph import Builder, Kind, Node, NotRecognised, Shape


class Operators:
    """Composes activations, reductions, norms and losses on a builder; numbers in, numbers out."""

    def __init__(self, build: Builder) -> None:
        self.b = build

    def affine(self, x: int, scale: int | None, shift: int | None) -> int:
        """``x * scale + shift``, either left out where there is none."""
        if scale is not None:
            x = self.b.binary("mul", x, scale)
        return x if shift is None else self.b.binary("add", x, shift)

    def _c(self, value: float) -> int:
        return self.b.constant(value)

    def clamp(self, x: int, low: int | None, high: int | None) -> int:
        """Both bounds may be absent."""
        if low is not None:
            x = self.b.binary("max", x, low)
        return x if high is None else self.b.binary("min", x, high)

    def relu(self, x: int) -> int:
        """Negative values become 0."""
        return self.b.binary("max", x, self._c(0.0))

    def leaky_relu(self, x: int, slope: int) -> int:
        """Negative values are scaled."""
        return self.b.select(
            self.b.binary("gt", x, self._c(0.0)), x, self.b.binary("mul", x, slope)
        )

    def expm1(self, x: int) -> int:
        """Exact near 0: ``tanh(x / 2) * (exp(x) + 1)``."""
        half = self.b.unary("tanh", self.b.binary("mul", x, self._c(0.5)))
        grown = self.b.binary("add", self.b.unary("exp", x), self._c(1.0))
        return self.b.binary("mul", half, grown)

    def elu(self, x: int, alpha: int, scale: int | None = None) -> int:
        """Negative values approach ``-alpha``."""
        below = self.expm1(self.b.binary("min", x, self._c(0.0)))
        chosen = self.b.select(
            self.b.binary("gt", x, self._c(0.0)), x, self.b.binary("mul", below, alpha)
        )
        return self.affine(chosen, scale, None)

    def silu(self, x: int) -> int:
        """Also called swish."""
        return self.b.binary("mul", x, self.b.unary("sigmoid", x))

    def gelu(self, x: int, approximate: str) -> int:
        """By erf, or by tanh where the task asks for that."""
        half = self.b.binary("mul", x, self._c(0.5))
        if approximate == "tanh":
            cube = self.b.binary("mul", self.b.binary("mul", x, x), x)
            inner = self.b.binary("add", x, self.b.binary("mul", cube, self._c(0.044715)))
            inner = self.b.binary("mul", inner, self._c(math.sqrt(2 / math.pi)))
            grown = self.b.unary("tanh", inner)
        else:
            grown = self.b.unary("erf", self.b.binary("mul", x, self._c(math.sqrt(0.5))))
        return self.b.binary("mul", half, self.b.binary("add", grown, self._c(1.0)))

    def softplus(self, x: int, beta: int | None = None, threshold: int | None = None) -> int:
        """Linear above the threshold."""
        scaled = x if beta is None else self.b.binary("mul", x, beta)
        limit = self._c(20.0) if threshold is None else threshold
        soft = self.b.unary("log1p", self.b.unary("exp", self.b.binary("min", scaled, limit)))
        if beta is not None:
            soft = self.b.binary("div", soft, beta)
        return self.b.select(self.b.binary("gt", scaled, limit), x, soft)

    def mish(self, x: int) -> int:
        """``x * tanh(softplus(x))``."""
        return self.b.binary("mul", x, self.b.unary("tanh", self.softplus(x)))

    def hardsigmoid(self, x: int) -> int:
        """``clamp(x / 6 + 1/2, 0, 1)``."""
        moved = self.b.binary("add", self.b.binary("div", x, self._c(6.0)), self._c(0.5))
        return self.clamp(moved, self._c(0.0), self._c(1.0))

    def power(self, x: int, exponent: int) -> int:
        """Small whole and half powers without ``pow``."""
        node = self.b.nodes[exponent]
        simple: dict[float, Callable[[], int]] = {
            1.0: lambda: x,
            2.0: lambda: self.b.binary("mul", x, x),
            3.0: lambda: self.b.binary("mul", self.b.binary("mul", x, x), x),
            0.5: lambda: self.b.unary("sqrt", x),
            -0.5: lambda: self.b.unary("rsqrt", x),
            -1.0: lambda: self.b.unary("reciprocal", x),
        }
        if node.kind is Kind.CONSTANT and node.value in simple:
            return simple[node.value]()
        return self.b.binary("pow", x, exponent)

    def mean(self, x: int, *, keep: bool) -> int:
        """Over a row."""
        return self.b.binary("div", self.b.reduce("sum", x, keep=keep), self.b.count("dim"))

    def total_mean(self, x: int) -> int:
        """Over everything."""
        count = self.b.count("rows")
        if self.b.shape(x) is Shape.FULL:
            length = self.b.add(Node(kind=Kind.COUNT, shape=Shape.SCALAR, text="dim", op="all"))
            count = self.b.binary("mul", count, length)
        return self.b.binary("div", self.b.total(x), count)

    def variance(self, x: int, *, keep: bool, unbiased: bool) -> int:
        """Two passes: about the mean, which is exact.

        One element or none has no unbiased variance. What is computed again in the second pass may
        differ by a rounding from what the mean was taken of, and that over zero would be infinite.
        """
        off = self.b.binary("sub", x, self.mean(x, keep=True))
        summed = self.b.reduce("sum", self.b.binary("mul", off, off), keep=keep)
        count = self.b.count("dim")
        if not unbiased:
            return self.b.binary("div", summed, count)
        others = self.b.binary("sub", count, self._c(1.0))
        none = self.b.binary(
            "div", self.b.binary("sub", summed, summed), self.b.binary("mul", others, count)
        )
        several = self.b.binary("gt", others, self._c(0.0))
        return self.b.select(several, self.b.binary("div", summed, others), none)

    def norm(self, x: int, order: float, *, keep: bool) -> int:
        """Over a row: 1-norm, 2-norm or the largest magnitude."""
        if order == 1:
            return self.b.reduce("sum", self.b.unary("abs", x), keep=keep)
        if order == 2:
            squares = self.b.binary("mul", x, x)
            return self.b.unary("sqrt", self.b.reduce("sum", squares, keep=keep))
        if order == math.inf:
            return self.b.reduce("max", self.b.unary("abs", x), keep=keep)
        raise NotRecognised(f"rules do not know the {order}-norm")

    def logsumexp(self, x: int, *, keep: bool) -> int:
        """Shifted by the maximum, as torch does."""
        shift = self.b.unary("or_zero", self.b.reduce("max", x))
        summed = self.b.reduce("sum", self.b.unary("exp", self.b.binary("sub", x, shift)))
        result = self.b.binary("add", self.b.unary("log", summed), shift)
        return result if keep else self.b.view(result, Shape.SQUEEZED)

    def softmax(self, x: int) -> int:
        """Over a row."""
        grown = self.b.unary("exp", self.b.binary("sub", x, self.b.reduce("max", x)))
        summed = self.b.reduce("sum", grown)
        return self.b.binary("mul", grown, self.b.unary("reciprocal", summed))

    def log_softmax(self, x: int) -> int:
        """Over a row."""
        moved = self.b.binary("sub", x, self.b.reduce("max", x))
        summed = self.b.reduce("sum", self.b.unary("exp", moved))
        return self.b.binary("sub", moved, self.b.unary("log", summed))

    def layer_norm(self, x: int, eps: int, weight: int | None, bias: int | None) -> int:
        """Mean and variance of each row taken out."""
        mean = self.mean(x, keep=True)
        var = self.variance(x, keep=True, unbiased=False)
        scale = self.b.unary("rsqrt", self.b.binary("add", var, eps))
        return self.affine(self.b.binary("mul", self.b.binary("sub", x, mean), scale), weight, bias)

    def rms_norm(self, x: int, eps: int, weight: int | None) -> int:
        """Root mean square of each row taken out."""
        square = self.mean(self.b.binary("mul", x, x), keep=True)
        scale = self.b.unary("rsqrt", self.b.binary("add", square, eps))
        return self.affine(self.b.binary("mul", x, scale), weight, None)

    def normalize(self, x: int, order: float, eps: int) -> int:
        """Each row over its norm, which is at least ``eps``."""
        length = self.b.binary("max", self.norm(x, order, keep=True), eps)
        return self.b.binary("mul", x, self.b.unary("reciprocal", length))

    def cosine_similarity(self, x: int, y: int, eps: int) -> int:
        """Of each pair of rows; either norm is at least ``eps``, as torch has it."""
        dot = self.b.reduce("sum", self.b.binary("mul", x, y))
        floor = self.b.binary("mul", eps, eps)
        squares = [
            self.b.binary("max", self.b.reduce("sum", self.b.binary("mul", each, each)), floor)
            for each in (x, y)
        ]
        lengths = [self.b.unary("sqrt", each) for each in squares]
        result = self.b.binary("div", dot, self.b.binary("mul", lengths[0], lengths[1]))
        return self.b.view(result, Shape.SQUEEZED)

    def smooth_l1(self, x: int, y: int, beta: int) -> int:
        """Quadratic below beta, linear above: the loss per element."""
        off = self.b.unary("abs", self.b.binary("sub", x, y))
        near = self.b.binary(
            "div", self.b.binary("mul", self.b.binary("mul", off, off), self._c(0.5)), beta
        )
        far = self.b.binary("sub", off, self.b.binary("mul", beta, self._c(0.5)))
        return self.b.select(self.b.binary("lt", off, beta), near, far)

    def huber(self, x: int, y: int, delta: int) -> int:
        """Like smooth_l1, scaled by delta."""
        return self.b.binary("mul", self.smooth_l1(x, y, delta), delta)

    def kl_div(self, log_x: int, y: int, *, log_target: bool) -> int:
        """``y log y - y log_x`` per element, the first 0 where y is."""
        if log_target:
            return self.b.binary("mul", self.b.unary("exp", y), self.b.binary("sub", y, log_x))
        zero = self._c(0.0)
        none = self.b.binary("le", self.b.unary("abs", y), zero)  # NaN is something
        own = self.b.select(none, zero, self.b.binary("mul", y, self.b.unary("log", y)))
        return self.b.binary("sub", own, self.b.binary("mul", y, log_x))

    def cross(self, x: int, y: int) -> int:
        """Cross entropy of probabilities, whose logarithms are at least -100, as torch has it."""
        least, one = self._c(-100.0), self._c(1.0)
        hit = self.b.binary("max", self.b.unary("log", x), least)
        miss = self.b.binary("max", self.b.unary("log1p", self.b.unary("neg", x)), least)
        rest = self.b.binary("mul", self.b.binary("sub", y, one), miss)
        return self.b.binary("sub", rest, self.b.binary("mul", y, hit))

    def cross_of_logits(self, x: int, y: int, positive: int | None) -> int:
        """Cross entropy of sigmoids: ``(1 - y) x - (1 + (positive - 1) y) logsigmoid(x)``."""
        one = self._c(1.0)
        far = self.b.unary("exp", self.b.unary("neg", self.b.unary("abs", x)))
        low = self.b.binary("min", x, self._c(0.0))
        log = self.b.binary("sub", low, self.b.unary("log1p", far))
        if positive is not None:
            more = self.b.binary("mul", self.b.binary("sub", positive, one), y)
            log = self.b.binary("mul", self.b.binary("add", more, one), log)
        return self.b.binary("sub", self.b.binary("mul", self.b.binary("sub", one, y), x), log)
