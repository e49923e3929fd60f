"""Makes nodes of each kind with the shapes that follow."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.propose.rules.rewrite.graph import (
    NONE,
    Arena,
    Dims,
    Node,
    Value,
    broadcast,
    product,
    reduced,
    windows,
)


@dataclass(frozen=True, slots=True)
class Build:
    """Writes expressions over an arena; what is the same value is not made twice."""

    arena: Arena

    def _add(self, op: str, inputs: Dims, shape: Dims, dtype: str, **attrs: Value) -> int:
        return self.arena.add(
            Node(op=op, inputs=inputs, attrs=tuple(sorted(attrs.items())), shape=shape, dtype=dtype)
        )

    def _of(self, x: int) -> tuple[Dims, str]:
        node = self.arena[x]
        return node.shape, node.dtype

    def input(self, name: str, shape: Dims, dtype: str) -> int:
        """An argument of ``forward``."""
        return self._add("input", (), shape, dtype, name=name)

    def weight(self, path: str, shape: Dims, dtype: str) -> int:
        """A parameter or buffer, by the expression that reads it."""
        return self._add("weight", (), shape, dtype, path=path)

    def number(self, value: float | int) -> int:
        """A Python number; it takes the dtype of what it meets."""
        return self._add("number", (), (), "number", value=value)

    def full(self, shape: Dims, value: float, dtype: str) -> int:
        """A tensor of one value."""
        return self._add("full", (), shape, dtype, value=value)

    def unary(self, op: str, x: int, **attrs: Value) -> int:
        """An operator on each value."""
        shape, dtype = self._of(x)
        return self._add(op, (x,), shape, dtype, **attrs)

    def clamp(self, x: int, low: float | None, high: float | None) -> int:
        """Values kept within bounds."""
        return self.unary("clamp", x, low=low, high=high)

    def binary(self, op: str, a: int, b: int) -> int:
        """An operator on each pair of values."""
        (left, first), (right, second) = self._of(a), self._of(b)
        dtype = second if first == "number" else first
        assert "number" in (first, second) or first == second, (first, second)
        return self._add(op, (a, b), broadcast(left, right), dtype)

    def factor(self, x: int) -> float | None:
        """The number that this is, if it multiplies without losing anything, and nothing if not.

        An infinite one, or one that a narrow dtype takes for zero or infinity, makes NaN of some
        values and not of others.
        """
        node = self.arena[x]
        if node.op != "number" or not 1e-30 <= abs(node.number()) <= 1e30:
            return None
        return node.number()

    def steady(self, norm: int) -> bool:
        """Whether a norm divides by more than zero, whatever is normalised.

        An eps that float32 takes for zero does not help where a variance is zero.
        """
        return self.arena[norm].number("eps") >= 1e-30

    def settled(self, x: int) -> bool:
        """Whether this is made of weights and of numbers alone, neither huge nor infinite.

        A value that comes from inputs may be infinite, and then what is done with it cannot be
        moved. A huge number is added to round away digits; that is no shift.
        """
        node = self.arena[x]
        if node.op == "number":
            return abs(node.number()) <= 1e6
        return not self.arena.depends(x)

    def add(self, a: int, b: int) -> int:
        """The sum, with ``NONE`` as nothing."""
        return b if a == NONE else a if b == NONE else self.binary("add", a, b)

    def scale(self, a: int, by: float) -> int:
        """A multiple of it."""
        return a if by == 1 else self.binary("mul", a, self.number(by))

    def reduce(self, op: str, x: int, dims: Sequence[int], *, keep: bool, **attrs: Value) -> int:
        """A reduction over some dimensions."""
        shape, dtype = self._of(x)
        over = tuple(sorted(d % len(shape) for d in dims))
        to = reduced(shape, over, keep=keep)
        return self._add(op, (x,), to, dtype, dims=over, keep=keep, **attrs)

    def softmax(self, op: str, x: int, dim: int) -> int:
        """``softmax`` or ``log_softmax`` over one dimension."""
        shape, dtype = self._of(x)
        return self._add(op, (x,), shape, dtype, dim=dim % len(shape))

    def reshape(self, x: int, shape: Dims) -> int:
        """The same values in the same order under another shape."""
        old, dtype = self._of(x)
        assert product(old) == product(shape), (old, shape)
        if old == shape:
            return x
        node = self.arena[x]
        if node.op == "reshape":
            return self.reshape(node.inputs[0], shape)
        if node.op == "full":
            return self.full(shape, node.number(), dtype)
        return self._add("reshape", (x,), shape, dtype)

    def permute(self, x: int, dims: Dims) -> int:
        """Dimensions in another order."""
        shape, dtype = self._of(x)
        if dims == tuple(range(len(shape))):
            return x
        return self._add("permute", (x,), tuple(shape[d] for d in dims), dtype, dims=dims)

    def expand(self, x: int, shape: Dims) -> int:
        """A broadcast copy, never made."""
        old, dtype = self._of(x)
        if old == shape:
            return x
        assert broadcast(old, shape) == shape, (old, shape)
        return self._add("expand", (x,), shape, dtype)

    def slice(self, x: int, dim: int, start: int, stop: int, step: int = 1) -> int:
        """Every ``step``-th position of one dimension between two."""
        shape, dtype = self._of(x)
        assert 0 <= start < stop <= shape[dim], (shape, dim, start, stop)
        if (start, stop, step) == (0, shape[dim], 1):
            return x
        length = -(-(stop - start) // step)
        to = (*shape[:dim], length, *shape[dim + 1 :])
        return self._add("slice", (x,), to, dtype, dim=dim, start=start, stop=stop, step=step)

    def cat(self, parts: Sequence[int], dim: int) -> int:
        """Tensors one after another along a dimension."""
        if len(parts) == 1:
            return parts[0]
        shape, dtype = self._of(parts[0])
        total = sum(self.arena.shape(each)[dim] for each in parts)
        return self._add("cat", tuple(parts), (*shape[:dim], total, *shape[dim + 1 :]), dtype,
                         dim=dim)  # fmt: skip

    def stack(self, parts: Sequence[int], dim: int) -> int:
        """Tensors along a new dimension."""
        shape, dtype = self._of(parts[0])
        to = (*shape[:dim], len(parts), *shape[dim:])
        return self._add("stack", tuple(parts), to, dtype, dim=dim)

    def pad(self, x: int, pads: tuple[tuple[int, int], ...]) -> int:
        """Zeros before and after each of the last dimensions; negative ones cut away."""
        shape, dtype = self._of(x)
        if all(each == (0, 0) for each in pads):
            return x
        lead = len(shape) - len(pads)
        to = shape[:lead] + tuple(n + a + b for n, (a, b) in zip(shape[lead:], pads, strict=True))
        return self._add("pad", (x,), to, dtype, pads=pads)

    def tril(self, x: int, diagonal: int = 0, *, upper: bool = False) -> int:
        """Zeros beyond a diagonal."""
        return self.unary("triu" if upper else "tril", x, diagonal=diagonal)

    def diag(self, x: int) -> int:
        """A matrix with a vector on its diagonal."""
        (n,), dtype = self._of(x)
        return self._add("diag", (x,), (n, n), dtype)

    def linear(self, x: int, w: int, b: int = NONE) -> int:
        """``x @ w.T + b``."""
        shape, dtype = self._of(x)
        out = self.arena.shape(w)
        assert shape[-1] == out[-1], (shape, out)
        return self._add("linear", (x, w, b), (*shape[:-1], *out[:-1]), dtype)

    def matmul(self, a: int, b: int) -> int:
        """A product of matrices, batched by broadcasting."""
        (left, dtype), (right, _) = self._of(a), self._of(b)
        if len(left) == 1 or len(right) == 1:
            assert left[-1] == right[0 if len(right) == 1 else -2]
            head = left[:-1] if len(right) == 1 else (*right[:-2], right[-1])
            return self._add("matmul", (a, b), head, dtype)
        assert left[-1] == right[-2], (left, right)
        to = (*broadcast(left[:-2], right[:-2]), left[-2], right[-1])
        return self._add("matmul", (a, b), to, dtype)

    def conv(
        self, x: int, w: int, b: int = NONE, *, stride: Dims, padding: Dims, dilation: Dims,
        groups: int = 1,
    ) -> int:  # fmt: skip
        """A convolution over all trailing dimensions; weights are (out, in / groups, ...)."""
        shape, dtype = self._of(x)
        kernel = self.arena.shape(w)
        assert 3 <= len(kernel) <= 5, kernel
        space = tuple(
            windows(*each)
            for each in zip(shape[2:], kernel[2:], stride, padding, dilation, strict=True)
        )
        return self._add("conv", (x, w, b), (shape[0], kernel[0], *space), dtype, stride=stride,
                         padding=padding, dilation=dilation, groups=groups)  # fmt: skip

    def conv_transpose(
        self, x: int, w: int, b: int = NONE, *, stride: Dims, padding: Dims, dilation: Dims,
        output_padding: Dims, groups: int = 1,
    ) -> int:  # fmt: skip
        """A transposed convolution; weights are (in, out / groups, ...)."""
        shape, dtype = self._of(x)
        kernel = self.arena.shape(w)
        assert 3 <= len(kernel) <= 5, kernel
        space = tuple(
            (n - 1) * s - 2 * p + d * (k - 1) + more + 1
            for n, k, s, p, d, more in zip(
                shape[2:], kernel[2:], stride, padding, dilation, output_padding, strict=True
            )
        )
        return self._add("conv_transpose", (x, w, b), (shape[0], kernel[1] * groups, *space),
                         dtype, stride=stride, padding=padding, dilation=dilation,
                         output_padding=output_padding, groups=groups)  # fmt: skip

    def pool(
        self, op: str, x: int, kernel: Dims, stride: Dims, padding: Dims | None = None,
    ) -> int:  # fmt: skip
        """``avg_pool`` or ``max_pool`` over the last dimensions; padding is not averaged over."""
        shape, dtype = self._of(x)
        pads = padding or (0,) * len(kernel)
        assert 1 <= len(kernel) <= 3, kernel
        lead = len(shape) - len(kernel)
        space = tuple(
            windows(*each) for each in zip(shape[lead:], kernel, stride, pads, strict=True)
        )
        return self._add(op, (x,), (*shape[:lead], *space), dtype, kernel=kernel, stride=stride,
                         padding=pads)  # fmt: skip

    def norm(self, op: str, inputs: Dims, **attrs: Value) -> int:
        """``batch_norm``, ``group_norm``, ``layer_norm`` or ``instance_norm`` of the first."""
        shape, dtype = self._of(inputs[0])
        return self._add(op, inputs, shape, dtype, **attrs)

    def call(self, name: str, inputs: Dims, form: Value, shape: Dims, dtype: str) -> int:
        """Anything else, called by its public name as the task does."""
        return self._add("call", inputs, shape, dtype, name=name, form=form)

    def item(self, x: int, index: int, shape: Dims, dtype: str) -> int:
        """One of several results of a call."""
        return self._add("item", (x,), shape, dtype, index=index)
