"""Sums and means of products: reduce the factors first, multiply less."""

from collections.abc import Callable

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.algebra.taps import (
    conv_ranges,
    summed,
    transposed_ranges,
)
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Dims, Node, aligned, product, reduced


@rule(
    "reduce-before-product",
    "a sum or mean of a product or convolution is a smaller product of sums: the factors are "
    "reduced first, through biases, scales, batch norm and average pooling on the way",
    finite=True,
)
def shrunk(b: Build, x: int) -> int | None:
    """Linearity: sum_j (sum_k x_ik w_jk + b_j) = sum_k x_ik (sum_j w_jk) + sum_j b_j.

    The same over rows of x, over channels and batch of a convolution, and over its positions: there
    the sum over outputs of x[o s + k d - p] is, for each tap k, a sum over the positions that tap
    meets (``taps``). The reduction is carried inwards through operations that are affine in the
    element and the same along the reduced axes (each case of ``_inner`` says why). Side condition:
    it must arrive at a product; else nothing is gained. Finite values only: an infinity times
    weights of both signs sums to NaN, and times their sum it does not; and partial sums of x or w
    may overflow where eager's products do not, at magnitudes above 1e30.
    """
    node = b.arena[x]
    if node.op not in ("sum", "mean"):
        return None
    found = _inner(b, node.op, node.inputs[0], node.dims("dims"))
    return None if found is None else b.reshape(found, node.shape)


def _inner(b: Build, op: str, x: int, dims: Dims) -> int | None:
    """The reduction of ``x``, its axes kept, without making ``x``; nothing where no product is."""
    node = b.arena[x]
    dims = tuple(d for d in dims if node.shape[d] != 1)
    if not dims:
        return None
    case = _CASES.get(node.op)
    return None if case is None else case(b, op, node, dims)


def _count(node: Node, dims: Dims) -> int:
    return product(node.shape[d] for d in dims)


def _linear(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Over features the weights are reduced, over rows the inputs; a bias counts once per row."""
    x, w, bias = node.inputs
    last = len(node.shape) - 1
    rows = tuple(d for d in dims if d != last)
    if rows:
        if not set(rows) <= set(range(len(b.arena.shape(x)) - 1)):
            return None
        x = b.reduce(op, x, rows, keep=True)
        if bias != NONE and op == "sum":
            bias = b.scale(bias, _count(node, rows))
    if last in dims:
        w = b.reduce(op, w, (0,), keep=True)
        bias = bias if bias == NONE else b.reduce(op, bias, (0,), keep=True)
    return b.linear(x, w, bias)


def _matmul(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Columns reduce the right factor, rows the left one; batches stay."""
    left, right = node.inputs
    rank = len(node.shape)
    if len(b.arena.shape(left)) != rank or len(b.arena.shape(right)) != rank or rank < 2:
        return None
    if not set(dims) <= {rank - 1, rank - 2}:
        return None
    if rank - 2 in dims:
        left = b.reduce(op, left, (rank - 2,), keep=True)
    if rank - 1 in dims:
        right = b.reduce(op, right, (rank - 1,), keep=True)
    return b.matmul(left, right)


def _convolution(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Batch: the inputs are reduced. Channels: the weights. Space: sums for each tap."""
    x, w, bias = node.inputs
    space = tuple(d - 2 for d in dims if d >= 2)
    groups = node.integer("groups")
    if 0 in dims:
        x = b.reduce(op, x, (0,), keep=True)
    if bias != NONE and op == "sum":
        bias = b.scale(bias, _count(node, tuple(d for d in dims if d != 1)))
    if 1 in dims:
        if groups != 1:
            return None
        w = b.reduce(op, w, (1 if node.op == "conv_transpose" else 0,), keep=True)
        bias = bias if bias == NONE else b.reduce(op, bias, (0,), keep=True)
    if not space:
        return _again(b, node, x, w, bias, keep=tuple(range(len(node.shape) - 2)))
    ranges = transposed_ranges if node.op == "conv_transpose" else conv_ranges
    for axis in space:
        kernel = b.arena.shape(w)[2 + axis]
        of = ranges(node, b.arena.shape(x)[2 + axis], kernel, axis)
        taps = summed(b, x, 2 + axis, of)
        if taps is None:
            return None
        if b.arena.shape(taps)[2 + axis] != kernel:  # every tap meets the same positions
            w = b.reduce("sum", w, (2 + axis,), keep=True)
        x = taps
    if op == "mean":
        x = b.scale(x, 1 / _count(node, tuple(2 + a for a in space)))
    return _contracted(b, node, x, w, bias, space)


def _contracted(
    b: Build, node: Node, x: int, w: int, bias: int, space: Dims
) -> int:  # fmt: skip
    """The product of taps and weights: taps are more channels of a smaller convolution."""
    shape, kernel = b.arena.shape(x), b.arena.shape(w)
    rest = tuple(a for a in range(len(shape) - 2) if a not in space)
    transposed, groups = node.op == "conv_transpose", node.integer("groups")
    taps = tuple(shape[2 + a] for a in space)
    order = (0, 1, *(2 + a for a in space), *(2 + a for a in rest))
    x = b.reshape(
        b.permute(x, order),
        (shape[0], shape[1] * product(taps), *(shape[2 + a] for a in rest)),
    )
    if transposed:
        turned = b.permute(w, (0, *(2 + a for a in space), 1, *(2 + a for a in rest)))
        w = b.reshape(turned, (kernel[0] * product(taps), kernel[1],
                               *(kernel[2 + a] for a in rest)))  # fmt: skip
    else:
        w = b.reshape(b.permute(w, order), (kernel[0], kernel[1] * product(taps),
                                            *(kernel[2 + a] for a in rest)))  # fmt: skip
    if rest:
        made = _again(b, node, x, w, bias, keep=rest)
    else:
        if transposed:
            inner, out = b.arena.shape(w)
            w = b.reshape(
                b.permute(b.reshape(w, (groups, inner // groups, out)), (0, 2, 1)),
                (groups * out, inner // groups),
            )
        made = _grouped(b, x, w, bias, groups)
    size = b.arena.shape(made)
    kept = iter(size[2:])
    to = (*size[:2], *(1 if a in space else next(kept) for a in range(len(shape) - 2)))
    return b.reshape(made, to)


def _grouped(b: Build, x: int, w: int, bias: int, groups: int) -> int:
    """(rows, groups * in) by (groups * out, in): a product for each group."""
    if groups == 1:
        return b.linear(x, w, bias)
    rows, out = b.arena.shape(x)[0], b.arena.shape(w)[0]
    left = b.permute(b.reshape(x, (rows, groups, -(-b.arena.shape(x)[1] // groups))), (1, 0, 2))
    right = b.permute(b.reshape(w, (groups, out // groups, b.arena.shape(w)[1])), (0, 2, 1))
    made = b.reshape(b.permute(b.matmul(left, right), (1, 0, 2)), (rows, out))
    return b.add(made, bias)


def _again(b: Build, node: Node, x: int, w: int, bias: int, *, keep: Dims) -> int:
    """The same convolution over some of its axes."""
    given = {
        each: tuple(node.dims(each)[a] for a in keep) for each in ("stride", "padding", "dilation")
    }
    groups = node.integer("groups")
    if node.op == "conv":
        return b.conv(x, w, bias, groups=groups, stride=given["stride"],
                      padding=given["padding"], dilation=given["dilation"])  # fmt: skip
    more = tuple(node.dims("output_padding")[a] for a in keep)
    return b.conv_transpose(x, w, bias, groups=groups, output_padding=more, stride=given["stride"],
                            padding=given["padding"], dilation=given["dilation"])  # fmt: skip


def _batch_norm(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """In eval mode a map a_c x + c_c per channel: the mean over other axes goes inside."""
    if 1 in dims or node.number("eps") < 1e-30:
        return None
    inner = _inner(b, "mean", node.inputs[0], dims)
    if inner is None:
        return None
    made = b.norm("batch_norm", (inner, *node.inputs[1:]), **dict(node.attrs))
    return made if op == "mean" else b.scale(made, _count(node, dims))


def _sum_of_two(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Of a sum or difference, each side by itself; one side must hold a product."""
    parts, gained = [], False
    for each in node.inputs:
        part, pushed = _term(b, op, each, node.shape, dims)
        gained = gained or pushed
        parts.append(part)
    return b.binary(node.op, *parts) if gained else None


def _term(b: Build, op: str, x: int, shape: Dims, dims: Dims) -> tuple[int, bool]:
    """One side, broadcast to ``shape``: axes that it lacks count it that many times."""
    own = aligned(b.arena.shape(x), len(shape))
    real = tuple(d for d in dims if own[d] != 1)
    times = product(shape[d] for d in dims if own[d] == 1)
    pushed = False
    if real:
        x = b.reshape(x, own)
        found = _inner(b, op, x, real)
        pushed = found is not None
        x = b.reduce(op, x, real, keep=True) if found is None else found
    if op == "sum" and times != 1:
        if b.arena[x].op == "number":
            return b.number(b.arena[x].number() * times), pushed
        x = b.scale(x, times)
    return x, pushed


def _scaled(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """A factor that is the same along the reduced axes comes out; a divisor if it is a number.

    Another divisor may be zero: the sum of infinities of both signs is NaN.
    """
    left, right = node.inputs
    for place, (each, other) in enumerate(((left, right), (right, left))):
        own = aligned(b.arena.shape(other), len(node.shape))
        if any(own[d] != 1 for d in dims) or (node.op == "div" and place == 1):
            continue
        if node.op == "div" and b.factor(other) is None:
            continue
        if aligned(b.arena.shape(each), len(node.shape)) != node.shape:
            continue
        inner = _inner(b, op, b.reshape(each, node.shape), dims)
        if inner is not None:
            return b.binary(node.op, *((inner, other) if place == 0 else (other, inner)))
    return None


def _negated(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """-(a + b) = (-a) + (-b)."""
    inner = _inner(b, op, node.inputs[0], dims)
    return None if inner is None else b.unary("neg", inner)


def _reshaped(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """The same elements are summed if every stretch of axes is reduced as a whole or not at all."""
    old, new = b.arena.shape(node.inputs[0]), node.shape
    inside: list[int] = []
    for first, second in _stretches(old, new):
        taken = [d for d in second if d in dims]
        if taken and any(new[d] != 1 for d in second if d not in dims):
            return None
        if taken:
            inside += first
    inner = _inner(b, op, node.inputs[0], tuple(inside))
    return None if inner is None else b.reshape(inner, reduced(new, dims, keep=True))


def _stretches(old: Dims, new: Dims) -> list[tuple[list[int], list[int]]]:
    """Pairs of runs of axes that hold the same elements."""
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second, a, c = [], [], 1, 1
        while True:
            if a <= c and i < len(old):
                first.append(i)
                a *= old[i]
                i += 1
            elif j < len(new):
                second.append(j)
                c *= new[j]
                j += 1
            elif i < len(old):
                first.append(i)
                a *= old[i]
                i += 1
            if a == c and ((first and second) or (i == len(old) and j == len(new))):
                break
        found.append((first, second))
    return found


def _permuted(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Order of axes does not matter to a sum."""
    order = node.dims("dims")
    inner = _inner(b, op, node.inputs[0], tuple(order[d] for d in dims))
    return None if inner is None else b.permute(inner, order)


def _pooled(b: Build, op: str, node: Node, dims: Dims) -> int | None:
    """Averages over disjoint windows, averaged: each element that a window covers counts alike.

    Side conditions: stride equals kernel, no padding, all pooled axes are reduced.
    """
    kernel = node.dims("kernel")
    lead = len(node.shape) - len(kernel)
    if node.dims("stride") != kernel or any(node.dims("padding")):
        return None
    pooled = {lead + i for i, k in enumerate(kernel) if k != 1}
    if any(node.shape[d] != 1 for d in pooled - set(dims)):
        return None
    x = node.inputs[0]
    inner_dims = tuple(sorted({*dims, *pooled}))
    if any(b.arena.shape(x)[lead + i] != node.shape[lead + i] * k for i, k in enumerate(kernel)):
        return None
    inner = _inner(b, "mean", x, inner_dims)
    if inner is None:
        return None
    return inner if op == "mean" else b.scale(inner, _count(node, dims))


_CASES: dict[str, Callable[[Build, str, Node, Dims], int | None]] = {
    "linear": _linear,
    "matmul": _matmul,
    "conv": _convolution,
    "conv_transpose": _convolution,
    "batch_norm": _batch_norm,
    "add": _sum_of_two,
    "sub": _sum_of_two,
    "mul": _scaled,
    "div": _scaled,
    "neg": _negated,
    "reshape": _reshaped,
    "permute": _permuted,
    "avg_pool": _pooled,
}

RULES = (shrunk,)
