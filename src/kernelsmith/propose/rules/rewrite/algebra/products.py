"""Products in another order, in one piece, or in the part that is asked for."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Node, aligned

_BLOCKS = 8


@rule(
    "diagonal-product",
    "a product with a diagonal matrix scales rows or columns: the matrix is never made",
    finite=True,
)
def diagonal(b: Build, x: int) -> int | None:
    """(diag(a) c)_ij = sum_k a_i [i = k] c_kj = a_i c_ij, and (c diag(a))_ij = c_ij a_j.

    Finite values only: the matrix's zeros times an infinity would be NaN.
    """
    node = b.arena[x]
    if node.op != "matmul" or len(node.shape) < 2:
        return None
    left, right = (b.arena[each] for each in node.inputs)
    if left.op == "diag" and len(right.shape) >= 2:
        column = b.reshape(left.inputs[0], (left.shape[0], 1))
        return b.binary("mul", column, node.inputs[1])
    if right.op == "diag" and len(left.shape) >= 2:
        return b.binary("mul", node.inputs[0], right.inputs[0])
    return None


@rule(
    "triangular-product",
    "only the triangle of a product that a mask keeps is computed, in blocks",
)
def triangular(b: Build, x: int) -> int | None:
    """A lower triangle keeps entries with j <= i + k: rows [p, q) need columns below q + k alone.

    What is right of that is zero by the mask; an upper triangle dually.

    Side conditions: a product of two matrices (batched or not), a diagonal within the matrix, both
    sides at least 8 blocks of 64. The mask is applied again to what was computed.
    """
    node = b.arena[x]
    if node.op not in ("tril", "triu"):
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op != "matmul" or len(inner.shape) < 2:
        return None
    rows, columns = inner.shape[-2:]
    left, right = inner.inputs
    lead = len(inner.shape) - 2
    if len(b.arena.shape(left)) != lead + 2 or len(b.arena.shape(right)) != lead + 2:
        return None
    if min(rows, columns) < _BLOCKS * 64 or rows % _BLOCKS:
        return None
    size, offset, parts = rows // _BLOCKS, node.integer("diagonal"), []
    if abs(offset) >= min(rows, columns) // 2:
        return None
    for start in range(0, rows, size):
        mine = b.slice(left, lead, start, start + size)
        if node.op == "tril":
            stop = min(max(start + size + offset, 1), columns)
            pads = ((0, 0), (0, columns - stop))
            part = b.matmul(mine, b.slice(right, lead + 1, 0, stop))
        else:
            first = min(max(start + offset, 0), columns - 1)
            pads = ((0, 0), (first, 0))
            part = b.matmul(mine, b.slice(right, lead + 1, first, columns))
        parts.append(b.pad(part, pads))
    return b.tril(b.cat(parts, lead), offset, upper=node.op == "triu")


@rule(
    "reassociate",
    "a chain of products is multiplied in the order that takes fewer operations",
    finite=True,
)
def reassociated(b: Build, x: int) -> int | None:
    """(A B) C = A (B C), for matrices.

    Two linear layers with nothing between them are one: (x w1' + b1) w2' + b2 = x (w2 w1)' +
    (w2 b1 + b2). The cost model decides.

    Side conditions: plain matrices (or a vector last); both products of one dtype. Rounding is that
    of sums of the same terms in another order. Finite values only: an infinity times numbers of
    both signs sums to NaN, and times their sum it does not.
    """
    node = b.arena[x]
    if node.op == "linear":
        inner = b.arena[node.inputs[0]]
        if inner.op != "linear":
            return None
        source, w1, b1 = inner.inputs
        _, w2, b2 = node.inputs
        whole = b.matmul(w2, w1)
        bias = b2 if b1 == NONE else b.add(b.matmul(w2, b1), b2)
        return b.linear(source, whole, bias)
    if node.op != "matmul":
        return None
    left, right = node.inputs
    inner = b.arena[left]
    if inner.op == "matmul" and _matrices(b, inner) and len(b.arena.shape(right)) in (1, 2):
        first, second = inner.inputs
        return b.matmul(first, b.matmul(second, right))
    inner = b.arena[right]
    if inner.op == "matmul" and _matrices(b, inner) and len(b.arena.shape(left)) == 2:
        first, second = inner.inputs
        return b.matmul(b.matmul(left, first), second)
    return None


def _matrices(b: Build, node: Node) -> bool:
    return all(len(b.arena.shape(each)) == 2 for each in node.inputs)


@rule(
    "add-weights-first",
    "the sum of two products of one input is one product with the sum of their weights",
    finite=True,
)
def merged(b: Build, x: int) -> int | None:
    """(x w1 + b1) + (x w2 + b2) = x (w1 + w2) + (b1 + b2).

    The same for differences and for convolutions of equal kernel, stride, padding, dilation and
    groups. Side conditions: one input, weights of one shape, nothing broadcast. Finite values only:
    an infinity times w1 and w2 of unlike signs is NaN, and times their sum it is not.
    """
    node = b.arena[x]
    if node.op not in ("add", "sub"):
        return None
    first, second = (b.arena[each] for each in node.inputs)
    if first.op not in ("linear", "conv", "conv_transpose") or first.op != second.op:
        return None
    if first.inputs[0] != second.inputs[0] or first.attrs != second.attrs:
        return None
    (_, w1, b1), (_, w2, b2) = first.inputs, second.inputs
    if b.arena.shape(w1) != b.arena.shape(w2) or first.shape != second.shape or w1 == w2:
        return None
    if NONE in (b1, b2) and b1 != b2:
        if node.op == "sub" and b1 == NONE:
            b2 = b.unary("neg", b2)
        bias = b2 if b1 == NONE else b1
    else:
        bias = NONE if b1 == NONE else b.binary(node.op, b1, b2)
    return b.arena.add(Node(op=first.op, inputs=(first.inputs[0], b.binary(node.op, w1, w2), bias),
                            attrs=first.attrs, shape=first.shape, dtype=first.dtype))  # fmt: skip


@rule(
    "one-product-for-several",
    "several products of one input, joined afterwards, are one product with joined weights",
)
def joined(b: Build, x: int) -> int | None:
    """cat(x w1', x w2') = x cat(w1, w2)', features by features.

    The same for convolutions of equal kernel, stride, padding and dilation, one group each, along
    channels.

    Side conditions: neighbours in the concatenation, which is along features (channels); all with
    a bias or none.
    """
    node = b.arena[x]
    if node.op != "cat":
        return None
    parts: list[int] = []
    changed = False
    for each in node.inputs:
        both = _together(b, parts[-1], each, node.integer("dim")) if parts else None
        if both is None:
            parts.append(each)
        else:
            parts[-1] = both
            changed = True
    return b.cat(parts, node.integer("dim")) if changed else None


def _together(b: Build, one: int, two: int, dim: int) -> int | None:
    first, second = b.arena[one], b.arena[two]
    if first.op != second.op or first.op not in ("linear", "conv"):
        return None
    channel = len(first.shape) - 1 if first.op == "linear" else 1
    if dim != channel or first.inputs[0] != second.inputs[0] or first.attrs != second.attrs:
        return None
    (source, w1, b1), (_, w2, b2) = first.inputs, second.inputs
    if (b1 == NONE) is not (b2 == NONE) or b.arena.shape(w1)[1:] != b.arena.shape(w2)[1:]:
        return None
    w, bias = b.cat((w1, w2), 0), NONE if b1 == NONE else b.cat((b1, b2), 0)
    if first.op == "linear":
        return b.linear(source, w, bias)
    if first.integer("groups") != 1:
        return None
    return b.conv(source, w, bias, stride=first.dims("stride"), padding=first.dims("padding"),
                  dilation=first.dims("dilation"))  # fmt: skip


@rule(
    "masked-product",
    "a triangular mask of ones that is multiplied in is applied by tril or triu instead of being "
    "read",
    finite=True,
)
def masked(b: Build, x: int) -> int | None:
    """X * tril(1) = tril(x): kept entries times 1, the others times 0.

    Finite values only: 0 times an infinity would be NaN. Side condition: the mask has the
    result's last two axes.
    """
    node = b.arena[x]
    if node.op != "mul":
        return None
    for each, other in (node.inputs, node.inputs[::-1]):
        mask = b.arena[other]
        if mask.op not in ("tril", "triu") or b.arena.shape(each) != node.shape:
            continue
        ones = b.arena[mask.inputs[0]]
        own = aligned(mask.shape, len(node.shape))
        if not _is_ones(ones) or own[-2:] != node.shape[-2:]:
            continue
        return b.tril(each, mask.integer("diagonal"), upper=mask.op == "triu")
    return None


def _is_ones(node: Node) -> bool:
    if node.op == "full":
        return node.number() == 1
    return node.op == "call" and node.attr("name") in ("torch.ones", "torch.ones_like")


RULES = (diagonal, triangular, reassociated, merged, joined, masked)
