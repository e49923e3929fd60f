"""Random graphs in which a certain rule has something to do."""

import math

from hypothesis import strategies as st
from rewrite_graphs import Grower

from kernelsmith.propose.rules.rewrite.graph import NONE


class Aimed(Grower):
    """Grows graphs in which a certain rule has something to do."""

    def average(self, x, rank=None):
        assert len(self._shape(x)) > 2 or rank
        rank = len(self._shape(x)) - 2 if rank is None else rank
        kernel = self.each(rank, 1, 3)
        stride = kernel if self.one_of(True, True, False) else self.each(rank, 1, 3)
        return self.build.pool("avg_pool", x, kernel, stride)

    def by_stride(self, x):
        stride = self.arena[x].dims("stride")
        kernel = tuple(s * self.integer(1, 2) for s in stride)
        return self.build.pool("avg_pool", x, kernel, kernel)

    def spatial_mean(self, x, also=()):
        dims = (*also, *range(2, len(self._shape(x))))
        return self.build.reduce(self.one_of("mean", "sum"), x, dims, keep=self.one_of(True, False))

    def affine(self, x):
        shape = self._shape(x)
        one = self.one_of(self._number, self._per_channel)
        return one(x) if len(shape) > 1 else x

    def _per_channel(self, x):
        shape = self._shape(x)
        w = self.weight(shape[1], *(1,) * (len(shape) - 2))
        return self.build.binary(self.one_of("add", "sub", "mul"), x, w)

    def unit(self, x, dim):
        """The same with one axis cut to size one."""
        return self.build.slice(x, dim, 0, 1)

    def aimed(self, name, x):
        b, rank = self.build, len(self._shape(x))
        match name:
            case "size-one-reduction":
                x = self.unit(x, self.integer(0, rank - 1))
                return self._reduce(x)
            case "size-one-softmax":
                dim = self.integer(0, rank - 1)
                return b.softmax(self.one_of("softmax", "log_softmax"), self.unit(x, dim), dim)
            case "softmax-sums-to-one":
                log = self.one_of(True, False)
                soft = b.softmax("log_softmax" if log else "softmax", x, 1)
                op = "logsumexp" if log else self.one_of("sum", "mean")
                return b.reduce(op, soft, (1,), keep=True)
            case "minus-itself":
                return b.binary("sub", x, x)
            case "norm-of-one-element":
                for dim in range(1, rank):
                    x = x if dim == 1 else self.unit(x, dim)
                c = self._shape(x)[1]
                return b.norm("group_norm", (x, self.maybe(c), self.maybe(c)), eps=1e-5, groups=c)
            case "reductions-compose":
                op = self.one_of("sum", "mean", "amax", "amin", "logsumexp")
                x = b.reduce(op, x, (self.integer(0, rank - 1),), keep=self.one_of(True, False))
                return b.reduce(op, x, (0,), keep=self.one_of(True, False))
            case "cancelling-pair":
                op = self.one_of("neg", "abs", "relu", "permute", "number")
                return self._pair(x, op)
            case "constant-folding":
                full = b.full(self._shape(x), self.one_of(0.0, 1.5, -2.0), "float64")
                if self.one_of(True, False):
                    op = self.one_of("add", "sub", "mul", "maximum", "minimum")
                    flat = b.full(self.one_of((1,) * rank, (1, *self._shape(x))), 1.5, "float64")
                    return b.binary(op, x, self.one_of(full, flat))
                return self.one_of(self._unary, self._reduce, self._number, self._clamp)(full)
            case "log-softmax":
                x = b.binary("sub", x, b.reduce("logsumexp", x, (rank - 1,), keep=True))
                return b.unary("exp", x) if self.one_of(True, False) else x
            case "within-bounds" | "forced-constant" | "clamps-compose":
                x = self.one_of(self._clamp, self._clamp, self._positive, self._unary)(x)
                if self.one_of(False, False, True):
                    x = self.one_of(self._number, self._several, self._pool)(x)
                return self.one_of(self._clamp, self._relu, self._straight)(x)
            case "reduce-before-product":
                product = self.one_of(self._conv, self._conv_transpose, self._linear, self._matmul)
                x = product(x)
                for _ in range(self.integer(0, 2)):
                    x = self.one_of(self.affine, self._view, self._permute, self.average)(x)
                dims = self.draw(st.sets(st.integers(0, len(self._shape(x)) - 1), min_size=1))
                return b.reduce(self.one_of("sum", "mean"), x, sorted(dims), keep=True)
            case "pools-compose":
                op = self.one_of("avg_pool", "max_pool")
                for _ in range(2):
                    kernel = self.each(rank - 2, 1, 2)
                    stride = kernel if op == "avg_pool" else self.each(rank - 2, 1, 2)
                    x = b.pool(op, x, kernel, stride)
                return x
            case "pool-is-mean":
                kernel = self._shape(x)[2:]
                return b.pool("avg_pool", x, kernel, self.each(rank - 2, 1, 2))
            case "pool-before-affine":
                return self.average(self.one_of(self.affine, self._batch, self._other)(x))
            case "pool-into-convolution":
                return self.average(self._conv(x))
            case "pool-into-transposed":
                return self.by_stride(self._conv_transpose(x))
            case "pool-into-linear":
                x = self._linear(b.reshape(x, self._rows(x)))
                return self.average(b.reshape(x, (*self._shape(x)[:1], 1, *self._shape(x)[1:])), 1)
            case "fold-bias" | "fold-scale":
                x = self.one_of(self._conv, self._conv_transpose, self._linear)(x)
                if self.arena[x].op == "linear":
                    return self.one_of(self._number, self._last)(x)
                return self.affine(x)
            case "fold-batch-norm":
                return self._batch(self.one_of(self._conv, self._conv_transpose)(x))
            case "numbers-together":
                return self._number(self._number(x))
            case "shift-invariance":
                x = self.one_of(self.affine, self._conv, self._conv, self._linear, self._channel,
                                self._other)(x)  # fmt: skip
                return self.one_of(self._instance, self._norm, self._softmax)(x)
            case "centred-shift":
                x = self.one_of(self.affine, self._conv, self._batch, self._other)(x)
                dims = self.draw(st.sets(st.integers(2, len(self._shape(x)) - 1), min_size=1))
                return b.binary("sub", x, b.reduce("mean", x, sorted(dims), keep=True))
            case "mean-of-norm":
                c = self._shape(x)[1]
                eps = self.one_of(1e-5, 1e-2, 0.0)
                x = b.norm("group_norm", (x, self.maybe(c), self.maybe(c)), eps=eps,
                           groups=self.one_of(1, c, math.gcd(c, 2)))  # fmt: skip
                dims = (*self.one_of((), (1,)), *range(2, rank))
                return b.reduce("mean", x, dims, keep=self.one_of(True, False))
            case "mean-of-instance-norm":
                c = self._shape(x)[1]
                assert self.arena[x].size > self._shape(x)[0] * c
                eps = self.one_of(1e-5, 1e-2, 0.0)
                x = b.norm("instance_norm", (x, self.maybe(c), self.maybe(c)), eps=eps)
                return b.reduce("mean", x, range(2, rank), keep=self.one_of(True, False))
            case "diagonal-product":
                k = self._shape(x)[-1]
                if self.one_of(True, False):
                    return b.matmul(x, b.diag(self.weight(k)))
                return b.matmul(b.diag(self.weight(self._shape(x)[-2])), x)
            case "triangular-product":
                return self._large_triangle()
            case "reassociate":
                if self.one_of(True, False):
                    return self._linear(self._linear(x))
                return self._matmul(self._matmul(b.reshape(x, self._rows(x))))
            case "add-weights-first" | "one-product-for-several":
                return self._twice(x)
            case "masked-product":
                size = self._shape(x)[-2:]
                ones = b.full(size, 1.0, "float64")
                mask = b.tril(ones, self.integer(-1, 1), upper=self.one_of(True, False))
                return b.binary("mul", *self.one_of((x, mask), (mask, x)))
            case "choose-then-compute":
                x = self.one_of(self._unary, self._unary, self._clamp, self._number,
                                self._per_channel, self._other)(x)  # fmt: skip
                if self.one_of(True, False) and rank > 2:
                    return b.pool("max_pool", x, self.each(rank - 2, 1, 3), (2,) * (rank - 2))
                dims = self.draw(st.sets(st.integers(0, rank - 1), min_size=1))
                return b.reduce(self.one_of("amax", "amin"), x, sorted(dims),
                                keep=self.one_of(True, False))  # fmt: skip
        raise LookupError(name)

    def _rows(self, x):
        first = self._shape(x)[0]
        return first, self.arena[x].size // first

    def _pair(self, x, op):
        b = self.build
        if op == "permute":
            order = tuple(self.draw(st.permutations(range(len(self._shape(x))))))
            return self._permute(b.permute(x, order))
        if op == "number":
            return b.binary(*self.one_of(("add", x, b.number(0)), ("mul", x, b.number(1)),
                                         ("mul", b.number(1.0), x), ("div", x, b.number(1)),
                                         ("sub", b.number(0), x)))  # fmt: skip
        return b.unary(op, b.unary(self.one_of(op, "neg"), x))

    def _positive(self, x):
        return self.build.unary(self.one_of("sigmoid", "tanh", "exp", "square"), x)

    def _instance(self, x):
        assert math.prod(self._shape(x)[2:]) > 1
        return self.build.norm("instance_norm", (x, NONE, NONE), eps=self.one_of(1e-5, 0.0))

    def _straight(self, x):
        return self._unary(x, self.one_of("abs", "leaky_relu", "elu"))

    def _relu(self, x):
        return self.build.unary("relu", x)

    def _last(self, x):
        op = self.one_of("add", "sub", "mul")
        return self.build.binary(op, x, self.weight(self._shape(x)[-1]))

    def _batch(self, x):
        c = self._shape(x)[1]
        stats = (self.weight(c), self.weight(c, stem="var"))
        eps = self.one_of(1e-5, 1e-2, 0.0)
        return self.build.norm("batch_norm", (x, *stats, self.maybe(c), self.maybe(c)), eps=eps)

    def _large_triangle(self):
        rows, k = 512 * self.integer(1, 2), self.integer(1, 3)
        columns = self.one_of(512, 640, 1024)
        made = self.build.matmul(self.weight(rows, k), self.weight(k, columns))
        return self.build.tril(made, self.integer(-200, 200), upper=self.one_of(True, False))


@st.composite
def graphs_for(draw, name):
    """An arena, a root, and a graph in which this rule may fit, with other work around it."""
    grower = Aimed(draw)
    x = grower.start(draw(st.sampled_from((3, 4, 5))))
    if draw(st.booleans()):
        more = grower.step(x)
        x = more if len(grower.arena.shape(more)) > 2 else x
    try:
        x = grower.aimed(name, x)
    except (AssertionError, ValueError, IndexError, ZeroDivisionError):
        return grower.arena, (x,)
    if any(not 0 < n <= 2000 for n in grower.arena.shape(x)):
        return grower.arena, (grower.arena.reachable([x])[0],)
    if draw(st.booleans()):
        x = grower.step(x)
    return grower.arena, (x,)
