"""Pooling: windows of windows, and convolutions that are averaged afterwards."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Dims, Node, aligned, product

_LARGEST = 32
"""A composed kernel is at most this long on each axis."""


def _disjoint(node: Node) -> bool:
    return node.dims("stride") == node.dims("kernel") and not any(node.dims("padding"))


@rule(
    "pools-compose",
    "two poolings of one kind, one after the other, are one with larger windows",
    tidy=True,
)
def composed(b: Build, x: int) -> int | None:
    """Windows of windows are windows of length (k2 - 1) s1 + k1 and stride s1 s2.

    Window q of the outer holds windows q s2 .. q s2 + k2 - 1 of the inner: positions
    q s1 s2 .. q s1 s2 + (k2 - 1) s1 + k1 - 1.

    The maximum of maxima is the maximum, if the inner windows leave no gaps (s1 <= k1). For
    averages every element must count alike as well, so they must not overlap (s1 = k1). No padding
    on either; as many windows fit, as q s2 + k2 <= floor((n - k1) / s1) + 1 says (q s2 + k2 - 1) s1
    + k1 <= n. Kernels of size one go.
    """
    node = b.arena[x]
    if node.op not in ("avg_pool", "max_pool") or any(node.dims("padding")):
        return None
    kernel, stride = node.dims("kernel"), node.dims("stride")
    if kernel == stride == (1,) * len(kernel):
        return node.inputs[0]
    inner = b.arena[node.inputs[0]]
    if inner.op != node.op or len(inner.dims("kernel")) != len(kernel):
        return None
    first, step = inner.dims("kernel"), inner.dims("stride")
    if any(inner.dims("padding")) or (node.op == "avg_pool" and first != step):
        return None
    if any(s > k for s, k in zip(step, first, strict=True)):
        return None
    whole = tuple((k2 - 1) * s1 + k1 for k1, s1, k2 in zip(first, step, kernel, strict=True))
    strides = tuple(s1 * s2 for s1, s2 in zip(step, stride, strict=True))
    return b.pool(node.op, inner.inputs[0], whole, strides)


@rule(
    "pool-is-mean",
    "an average pooling whose window is the whole input is a mean",
    tidy=True,
)
def whole(b: Build, x: int) -> int | None:
    """One window that covers all positions of every pooled axis averages all of them."""
    node = b.arena[x]
    if node.op != "avg_pool" or any(node.dims("padding")):
        return None
    kernel = node.dims("kernel")
    if b.arena.shape(node.inputs[0])[-len(kernel) :] != kernel:
        return None
    rank = len(node.shape)
    return b.reduce("mean", node.inputs[0], range(rank - len(kernel), rank), keep=True)


@rule(
    "pool-before-affine",
    "an average pooling commutes with scales, shifts and batch norm that are the same over its "
    "windows, so that they run on the smaller tensor",
)
def before_affine(b: Build, x: int) -> int | None:
    """mean_w (a x + c) = a mean_w(x) + c where a and c do not change along the pooled axes.

    Side conditions: the other operand has size one along every pooled axis (or is a number, or is
    a per-channel value of an eval-mode batch norm and the channel axis is not pooled); no padding,
    so that each window has as many elements as its divisor says. A factor is finite (made of
    weights, or a number) and a divisor is a number: infinities of both signs would average to NaN.
    """
    node = b.arena[x]
    if node.op != "avg_pool" or any(node.dims("padding")):
        return None
    kernel, stride = node.dims("kernel"), node.dims("stride")
    inner = b.arena[node.inputs[0]]
    lead = len(node.shape) - len(kernel)
    if inner.op == "batch_norm" and lead >= 2:
        statistics = [each for each in inner.inputs[1:] if each != NONE]
        if not b.steady(node.inputs[0]) or any(b.arena.depends(each) for each in statistics):
            return None
        pooled = b.pool("avg_pool", inner.inputs[0], kernel, stride)
        return b.norm("batch_norm", (pooled, *inner.inputs[1:]), **dict(inner.attrs))
    if inner.op == "neg":
        return b.unary("neg", b.pool("avg_pool", inner.inputs[0], kernel, stride))
    if inner.op not in ("add", "sub", "mul", "div"):
        return None
    for place, (each, other) in enumerate((inner.inputs, inner.inputs[::-1])):
        own = aligned(b.arena.shape(other), len(inner.shape))
        if any(n != 1 for n in own[lead:]) or (inner.op == "div" and place == 1):
            continue
        if b.arena.shape(each) != inner.shape or not _moves(b, inner.op, other):
            continue
        pooled = b.pool("avg_pool", each, kernel, stride)
        return b.binary(inner.op, *((pooled, other) if place == 0 else (other, pooled)))
    return None


def _moves(b: Build, op: str, other: int) -> bool:
    if op == "div":
        return b.factor(other) is not None
    return op != "mul" or b.factor(other) is not None or (
        b.arena[other].op != "number" and b.settled(other))  # fmt: skip


@rule(
    "pool-into-convolution",
    "a convolution followed by average pooling is one convolution with a larger kernel and stride: "
    "the pooled values alone are computed",
    finite=True,
)
def into_convolution(b: Build, x: int) -> int | None:
    """The mean of P neighbours of a convolution has taps at u = j t + k d and stride s t.

    mean_j y[q s + j] with y[o] = sum_k w[k] x[o t + k d - p] + c is sum_(j, k) w[k] / P x[q s t +
    (j t + k d) - p] + c. The composed kernel W[u] = sum_(j t + k d = u) w[k] / P is a
    transposed convolution of w with a window of 1 / P (stride d, dilation t). Padding stays p:
    zeros outside are zeros in both. As many windows fit (see ``pools-compose``). Side
    conditions: pooling without padding over exactly the convolution's axes. Finite values only: an
    infinity times weights of both signs sums to NaN, and times their sum it does not.
    """
    node = b.arena[x]
    if node.op != "avg_pool" or any(node.dims("padding")):
        return None
    inner = b.arena[node.inputs[0]]
    kernel, stride = node.dims("kernel"), node.dims("stride")
    if inner.op != "conv" or len(kernel) != len(inner.shape) - 2:
        return None
    source, w, bias = inner.inputs
    taps = b.arena.shape(w)
    t, d = inner.dims("stride"), inner.dims("dilation")
    if all(k == 1 for k in taps[2:]) and set(t) == {1} and not any(inner.dims("padding")):
        return b.conv(b.pool("avg_pool", source, kernel, stride), w, bias, stride=t,
                      padding=inner.dims("padding"), dilation=d,
                      groups=inner.integer("groups"))  # fmt: skip
    whole_kernel = tuple(
        (p - 1) * s + (k - 1) * e + 1 for p, s, k, e in zip(kernel, t, taps[2:], d, strict=True)
    )
    if max(whole_kernel) > _LARGEST:
        return None
    rank = len(kernel)
    window = b.full((1, 1, *kernel), 1 / product(kernel), node.dtype)
    spread = b.conv_transpose(
        b.reshape(w, (taps[0] * taps[1], 1, *taps[2:])), window, stride=d, dilation=t,
        padding=(0,) * rank, output_padding=(0,) * rank,
    )  # fmt: skip
    made = b.reshape(spread, (taps[0], taps[1], *whole_kernel))
    return b.conv(
        source, made, bias, stride=tuple(s * e for s, e in zip(stride, t, strict=True)),
        padding=inner.dims("padding"), dilation=(1,) * rank, groups=inner.integer("groups"),
    )  # fmt: skip


@rule(
    "pool-into-transposed",
    "a strided transposed convolution followed by average pooling over windows of its stride is a "
    "small ordinary convolution: the upsampled tensor is never made",
    finite=True,
)
def into_transposed(b: Build, x: int) -> int | None:
    """Each input reaches a window of s outputs by the taps whose floor((k d - p) / s) points there.

    With y[o] = sum_(i s + k d - p = o) x[i] w[k] the sum over a window o = q s + j, 0 <= j < s,
    takes from x[i] the taps with k d - p = (q - i) s + j: those with floor((k d - p) / s) = q - i.

    So mean_j y[q s + j] = sum_i x[i] W[q - i] / P with W[t] = sum of w[k] over floor((k d - p) / s)
    = t: a convolution with the few taps t, zeros outside of x. The bias is averaged over as many
    equal values. Windows of a multiple of s are pooled once more. Side conditions: window = stride
    of the pooling, a multiple of the convolution's stride on each axis; no pooling padding; one
    group. y has floor(length / s) whole windows of size s, and floors compose. Finite values only.
    """
    node = b.arena[x]
    if node.op != "avg_pool" or not _disjoint(node):
        return None
    inner = b.arena[node.inputs[0]]
    kernel = node.dims("kernel")
    if inner.op != "conv_transpose" or len(kernel) != len(inner.shape) - 2:
        return None
    strides = inner.dims("stride")
    if inner.integer("groups") != 1 or set(strides) == {1}:
        return None
    if any(k % s for k, s in zip(kernel, strides, strict=True)):
        return None
    source, w, bias = inner.inputs
    pads = []
    for axis, s in enumerate(strides):
        w, low, count = _regrouped(b, w, axis, s, inner)
        n, q = b.arena.shape(source)[2 + axis], inner.shape[2 + axis] // s
        # output q reads x[q - t] for t = low .. low + count - 1, the last tap first
        pads.append((low + count - 1, q - n - low))
    made = _correlated(b, source, w, bias, tuple(pads), product(strides))
    left = tuple(k // s for k, s in zip(kernel, strides, strict=True))
    return made if set(left) == {1} else b.pool("avg_pool", made, left, left)


def _regrouped(b: Build, w: int, axis: int, s: int, node: Node) -> tuple[int, int, int]:
    """Taps of equal floor((k d - p) / s) summed; the first such value, and how many there are."""
    d, p = node.dims("dilation")[axis], node.dims("padding")[axis]
    taps = [(k * d - p) // s for k in range(b.arena.shape(w)[2 + axis])]
    low, high = taps[0], taps[-1]
    parts = []
    for t in range(high, low - 1, -1):  # a convolution runs the other way
        mine = [k for k, each in enumerate(taps) if each == t]
        if mine:
            part = b.slice(w, 2 + axis, mine[0], mine[-1] + 1)
            parts.append(b.reduce("sum", part, (2 + axis,), keep=True) if len(mine) > 1 else part)
        else:
            shape = b.arena.shape(w)
            none = (*shape[: 2 + axis], 1, *shape[3 + axis :])
            parts.append(b.full(none, 0.0, b.arena[w].dtype))
    return b.cat(parts, 2 + axis), low, high - low + 1


def _correlated(
    b: Build, x: int, w: int, bias: int, pads: tuple[tuple[int, int], ...], count: int
) -> int:  # fmt: skip
    rank = len(pads)
    padding: Dims = (0,) * rank
    if all(first == second >= 0 for first, second in pads):
        padding = tuple(first for first, _ in pads)
    else:
        x = b.pad(x, pads)
    turned = b.scale(b.permute(w, (1, 0, *range(2, 2 + rank))), 1 / count)
    return b.conv(x, turned, bias, stride=(1,) * rank, padding=padding, dilation=(1,) * rank)


@rule(
    "pool-into-linear",
    "an average pooling over the features of a linear layer averages its weights first: fewer "
    "products",
    finite=True,
)
def into_linear(b: Build, x: int) -> int | None:
    """mean_j (x w_(qP+j) + c_(qP+j)) = x mean_j w_(qP+j) + mean_j c_(qP+j).

    Side conditions: the pooled axis is the feature axis (views in between only add axes of size
    one before it), window = stride, no padding; features beyond the last whole window are cut.
    Finite values only: an infinity times weights of both signs sums to NaN.
    """
    node = b.arena[x]
    if node.op != "avg_pool" or not _disjoint(node) or len(node.dims("kernel")) != 1:
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op == "reshape":
        under = b.arena[inner.inputs[0]]
        same = [n for n in inner.shape if n != 1] == [n for n in under.shape if n != 1]
        if not same or inner.shape[-1] != under.shape[-1]:
            return None
        inner = under
    if inner.op != "linear":
        return None
    source, w, bias = inner.inputs
    (size,) = node.dims("kernel")
    out, features = b.arena.shape(w)
    whole_windows = out // size
    cut = b.slice(w, 0, 0, whole_windows * size)
    mean = b.reduce("mean", b.reshape(cut, (whole_windows, size, features)), (1,), keep=False)
    if bias != NONE:
        bias = b.slice(bias, 0, 0, whole_windows * size)
        bias = b.reduce("mean", b.reshape(bias, (whole_windows, size)), (1,), keep=False)
    return b.reshape(b.linear(source, mean, bias), node.shape)


RULES = (composed, whole, before_affine, into_convolution, into_transposed, into_linear)
