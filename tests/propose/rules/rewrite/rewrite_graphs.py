"""Random small graphs: every operator that a rule's tables name, attributes at odd values too."""

import math

from hypothesis import strategies as st

from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, UNARY, Arena

SMOOTH = ("relu", "sigmoid", "tanh", "neg", "abs", "square", "hardswish", "gelu", "silu", "mish",
          "leaky_relu", "exp", "softplus", "elu", "selu", "erf", "sin", "cos", "softsign",
          "logsigmoid", "hardsigmoid")  # fmt: skip
"""Operators that do not blow up the rounding of what comes before them."""
ANY = tuple(sorted(UNARY - {"clamp"}))
ATTRIBUTES = {
    "gelu": {"approximate": ("none", "tanh")},
    "leaky_relu": {"negative_slope": (0.1, 0.0, 1.0, 2.0, -0.5)},
    "elu": {"alpha": (1.0, 0.5, 0.0, -1.0)},
    "softplus": {"beta": (1.0, 3.0, 0.1, -1.0), "threshold": (20.0, 40.0, 0.5, 0.0, -1.0)},
}
NUMBERS = (0.5, -2.0, 3, 0, 1, 0.1, 1e30, math.inf, -math.inf)


class Grower:
    """Grows a random graph step by step, from draws of hypothesis."""

    def __init__(self, draw, unary=ANY):
        self.draw, self.arena = draw, Arena()
        self.build = Build(self.arena)
        self._unaries = unary
        self._weights = self._inputs = 0

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def weight(self, *shape, stem="w"):
        self._weights += 1
        return self.build.weight(f"self.{stem}{self._weights}", tuple(shape), "float64")

    def maybe(self, *shape):
        return self.weight(*shape) if self.draw(st.booleans()) else NONE

    def start(self, rank):
        return self.input(*(self.integer(1, 5 if i < 2 else 9) for i in range(rank)))

    def input(self, *shape):
        self._inputs += 1
        return self.build.input(f"x{self._inputs}", tuple(shape), "float64")

    def each(self, rank, low, high):
        return tuple(self.integer(low, high) for _ in range(rank))

    def step(self, x):
        """One more operation on ``x``, or ``x`` where the drawn one does not fit."""
        if len(self._shape(x)) < 2:
            return self._unary(x)
        kind = self.one_of(
            "conv", "conv_transpose", "linear", "pool", "norm", "reduce", "reduce", "unary",
            "unary", "clamp", "number", "number", "channel", "mean away", "softmax", "view",
            "permute", "twice", "matmul", "other", "other", "several", "pad", "triangle",
        )  # fmt: skip
        try:
            return getattr(self, f"_{kind.replace(' ', '_')}")(x)
        except (AssertionError, ValueError, IndexError, ZeroDivisionError):
            return x

    def _shape(self, x):
        return self.arena.shape(x)

    def _conv(self, x):
        _, c, *space = self._shape(x)
        rank = len(space)
        groups = c if rank and self.one_of(0, 0, 1) else 1
        out = groups * self.integer(1, 3)
        kernel = self.each(rank, 1, 3)
        given = {"stride": self.each(rank, 1, 3), "padding": self.each(rank, 0, 2),
                 "dilation": self.each(rank, 1, 2)}  # fmt: skip
        w = self.weight(out, c // groups, *kernel)
        made = self.build.conv(x, w, self.maybe(out), groups=groups, **given)
        assert 1 <= rank <= 3
        assert min(self._shape(made)) > 0
        return made

    def _conv_transpose(self, x):
        _, c, *space = self._shape(x)
        rank = len(space)
        groups = c if self.one_of(0, 0, 1) else 1
        out = self.integer(1, 3)
        stride, dilation = self.each(rank, 1, 3), self.each(rank, 1, 2)
        more = tuple(self.integer(0, max(pair) - 1) for pair in zip(stride, dilation, strict=True))
        given = {"stride": stride, "padding": self.each(rank, 0, 1), "dilation": dilation,
                 "output_padding": more}  # fmt: skip
        w = self.weight(c, out, *self.each(rank, 1, 4))
        made = self.build.conv_transpose(x, w, self.maybe(out * groups), groups=groups, **given)
        assert 1 <= rank <= 3
        assert all(0 < n < 40 for n in self._shape(made))
        return made

    def _linear(self, x):
        features = self._shape(x)[-1]
        out = self.integer(1, 6)
        return self.build.linear(x, self.weight(out, features), self.maybe(out))

    def _matmul(self, x):
        k = self._shape(x)[-1]
        other = self.weight(k, self.integer(1, 4))
        if self.one_of(0, 1):
            other = self.build.diag(self.weight(k))
        return self.build.matmul(x, other)

    def _pool(self, x):
        rank = min(len(self._shape(x)) - 2, 3) or 1
        kernel = self.each(rank, 1, 3)
        stride = kernel if self.one_of(1, 1, 0) else self.each(rank, 1, 3)
        op = self.one_of("avg_pool", "avg_pool", "max_pool")
        pads = tuple(self.integer(0, k // 2) for k in kernel) if op == "max_pool" else None
        made = self.build.pool(op, x, kernel, stride, pads)
        assert min(self._shape(made)) > 0
        return made

    def _norm(self, x):
        shape = self._shape(x)
        c = shape[1]
        eps = self.one_of(1e-5, 1e-5, 1e-2, 0.0)
        match self.one_of("batch", "group", "layer", "instance"):
            case "batch":
                stats = (self.weight(c), self.weight(c, stem="var"))
                return self.build.norm("batch_norm", (x, *stats, self.maybe(c), self.maybe(c)),
                                       eps=eps)  # fmt: skip
            case "group":
                groups = self.one_of(1, c, math.gcd(c, 2))
                return self.build.norm("group_norm", (x, self.maybe(c), self.maybe(c)), eps=eps,
                                       groups=groups)  # fmt: skip
            case "layer":
                rank = self.integer(1, len(shape) - 1)
                tail = shape[-rank:]
                return self.build.norm("layer_norm", (x, self.maybe(*tail), self.maybe(*tail)),
                                       eps=eps, rank=rank)  # fmt: skip
        assert len(shape) > 2
        assert math.prod(shape[2:]) > 1
        return self.build.norm("instance_norm", (x, self.maybe(c), self.maybe(c)), eps=eps)

    def _reduce(self, x):
        rank = len(self._shape(x))
        dims = self.draw(st.sets(st.integers(0, rank - 1), min_size=1))
        op = self.one_of("sum", "mean", "mean", "amax", "amin", "logsumexp", "var")
        return self.build.reduce(op, x, sorted(dims), keep=self.one_of(True, True, False))

    def _unary(self, x, op=None):
        op = op or self.one_of(*self._unaries)
        attrs = {name: self.one_of(*of) for name, of in ATTRIBUTES.get(op, {}).items()}
        return self.build.unary(op, x, **attrs)

    def _clamp(self, x):
        low, high = self.one_of(None, -1.0, 0.0, 0.5, 2.0), self.one_of(1.0, 0.0, 2.0, None)
        assert (low, high) != (None, None)
        return self.build.clamp(x, low, high)

    def _number(self, x):
        op = self.one_of("add", "sub", "mul", "div")
        number = self.build.number(self.one_of(*NUMBERS[: 9 if self._unaries is ANY else 6]))
        first = self.one_of(True, True, False)
        assert not (op == "div" and first and self.arena[number].number() == 0)
        return self.build.binary(op, *((x, number) if first else (number, x)))

    def _other(self, x):
        """Joined with something that comes from inputs too, of its shape or broadcast to it."""
        shape = self._shape(x)
        kind = self.one_of("itself", "its mean", "its maximum", "another", "another", "another")
        dims = sorted(self.draw(st.sets(st.integers(0, len(shape) - 1), min_size=1)))
        match kind:
            case "itself":
                other = x
            case "its mean" | "its maximum":
                op = "mean" if kind == "its mean" else "amax"
                other = self.build.reduce(op, x, dims, keep=True)
            case "another":
                flat = dims if self.one_of(True, True, False) else ()
                other = self.input(*(1 if i in flat else n for i, n in enumerate(shape)))
        op = self.one_of("add", "add", "sub", "sub", "mul", "div", "maximum", "minimum")
        assert op != "div" or self._unaries is ANY
        pair = (x, other) if self.one_of(True, True, False) else (other, x)
        return self.build.binary(op, *pair)

    def _several(self, x):
        """The same side by side with what was made of it."""
        if self.one_of(True, False):
            return self.build.stack((x, self._unary(x)), self.integer(0, 1))
        return self.build.cat((x, self._unary(x)), self.integer(0, len(self._shape(x)) - 1))

    def _pad(self, x):
        assert min(self._shape(x)[-1:]) > 2
        return self.build.pad(x, ((self.integer(-1, 2), self.integer(-1, 2)),))

    def _triangle(self, x):
        return self.build.tril(x, self.integer(-2, 2), upper=self.one_of(True, False))

    def _channel(self, x):
        shape = self._shape(x)
        kind = self.one_of("channel", "last", "one", "full")
        size = {"channel": (shape[1], *(1,) * (len(shape) - 2)), "last": (shape[-1],),
                "one": (1,), "full": shape}[kind]  # fmt: skip
        op = self.one_of("add", "sub", "mul")
        pair = (x, self.weight(*size))
        return self.build.binary(op, *(pair if self.one_of(True, True, False) else pair[::-1]))

    def _mean_away(self, x):
        rank = len(self._shape(x))
        dims = sorted(self.draw(st.sets(st.integers(0, rank - 1), min_size=1)))
        op = self.one_of("mean", "mean", "amax", "logsumexp")
        return self.build.binary("sub", x, self.build.reduce(op, x, dims, keep=True))

    def _softmax(self, x):
        op = self.one_of("softmax", "log_softmax")
        return self.build.softmax(op, x, self.integer(0, len(self._shape(x)) - 1))

    def _view(self, x):
        shape = self._shape(x)
        at = self.integer(0, len(shape))
        to = (*shape[:at], 1, *shape[at:]) if self.one_of(0, 1) else (
            shape[0], math.prod(shape[1:]))  # fmt: skip
        assert len(to) <= 5
        return self.build.reshape(x, to)

    def _permute(self, x):
        rank = len(self._shape(x))
        return self.build.permute(x, tuple(self.draw(st.permutations(range(rank)))))

    def _twice(self, x):
        """Two products of one input, side by side."""
        rank = len(self._shape(x)) - 2
        if rank in (1, 2):
            c = self._shape(x)[1]
            same = {"stride": (1,) * rank, "padding": (0,) * rank, "dilation": (1,) * rank}
            one, two = (self.build.conv(x, self.weight(2, c, *(1,) * rank), NONE, **same)
                        for _ in range(2))  # fmt: skip
        else:
            f = self._shape(x)[-1]
            one, two = (self.build.linear(x, self.weight(2, f), self.weight(2)) for _ in range(2))
        if self.one_of(0, 1):
            return self.build.binary(self.one_of("add", "sub"), one, two)
        dim = 1 if rank in (1, 2) else len(self._shape(one)) - 1
        return self.build.cat((one, two), dim)


@st.composite
def graphs(draw, ranks=(2, 3, 4, 5), steps=(1, 6), unary=ANY):
    """An arena and its root: an input, then a few operations."""
    grower = Grower(draw, unary)
    x = grower.start(draw(st.sampled_from(ranks)))
    for _ in range(draw(st.integers(*steps))):
        x = grower.step(x)
    return grower.arena, (x,)
