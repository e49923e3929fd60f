"""Shifts that what follows takes away again."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Dims, Node, aligned


def _stripped(b: Build, x: int, dims: Dims, own_op: str) -> int | None:
    """``x`` without a summand that is constant along all of ``dims``.

    A summand that comes from inputs may be infinite where the rest is not: inf - inf is NaN, and
    without it there would be numbers. What ``x`` itself has along these axes (its mean, for those
    who normalise by it; its maximum, for a softmax) is infinite only where the result is NaN in
    any case.
    """
    node = b.arena[x]
    if node.op in ("add", "sub"):
        for place, (each, other) in enumerate((node.inputs, node.inputs[::-1])):
            own = aligned(b.arena.shape(other), len(node.shape))
            if any(own[d] != 1 for d in dims) or b.arena.shape(each) != node.shape:
                continue
            if node.op == "sub" and place == 1:
                continue
            known = b.arena[other]
            itself = node.op == "sub" and known.op == own_op and known.inputs[0] == each
            if b.settled(other) or (itself and known.dims("dims") == dims):
                return each
    if node.op in ("conv", "conv_transpose", "linear") and node.inputs[2] != NONE:
        channel = len(node.shape) - 1 if node.op == "linear" else 1
        if channel in dims or not b.settled(node.inputs[2]):
            return None
        return b.arena.add(Node(op=node.op, inputs=(*node.inputs[:2], NONE), attrs=node.attrs,
                                shape=node.shape, dtype=node.dtype))  # fmt: skip
    return None


def _averaged(b: Build, node: Node) -> Dims | None:
    """The axes whose mean a norm takes away, where groups are whole channels."""
    rank = len(node.shape)
    match node.op:
        case "layer_norm":
            return tuple(range(rank - node.integer("rank"), rank))
        case "instance_norm":
            return tuple(range(2, rank))
        case "group_norm":
            if node.integer("groups") == node.shape[1]:
                return tuple(range(2, rank))
            return tuple(range(1, rank))
        case "softmax" | "log_softmax":
            return (node.integer("dim"),)
    return None


@rule(
    "shift-invariance",
    "a shift that is the same along the normalised axes drops out of a norm or a softmax, which "
    "take the mean (or the maximum) away",
)
def invariant(b: Build, x: int) -> int | None:
    """(x + c) - mean(x + c) = x - mean(x) and var(x + c) = var(x) for c constant along the axes.

    Also exp(x + c) / sum exp(x + c) = exp(x) / sum exp(x).

    Layer norm: the normalised axes; instance norm: space; group norm: channels and space (space
    alone where each group is one channel); softmax: its axis. A product's bias is such a shift
    where its channel axis is not among them. Rounding gets better: c is not added at all.

    Side conditions: c is made of weights and numbers, or is x's own mean (maximum) along the axes,
    see ``_stripped``; eps > 0: what c rounds away would else be blown up.
    """
    node = b.arena[x]
    dims = _averaged(b, node)
    if not dims:
        return None
    soft = node.op in ("softmax", "log_softmax")
    if not soft and not b.steady(x):
        return None
    found = _stripped(b, node.inputs[0], dims, "amax" if soft else "mean")
    if found is None:
        return None
    return b.arena.add(Node(op=node.op, inputs=(found, *node.inputs[1:]), attrs=node.attrs,
                            shape=node.shape, dtype=node.dtype))  # fmt: skip


@rule(
    "centred-shift",
    "a shift that is the same along the averaged axes drops out of x minus its own mean",
)
def centred(b: Build, x: int) -> int | None:
    """(y + c) - mean(y + c) = y - mean(y) for c constant along the axes of the mean.

    For an eval-mode batch norm of y, a y + c per channel, the scale comes out:
    a y + c - mean(a y + c) = a (y - mean(y)), if the channel axis is not averaged. Side
    conditions: c and the norm are made of weights and numbers alone; a is finite (eps > 0).
    """
    node = b.arena[x]
    if node.op != "sub":
        return None
    value, mean = node.inputs
    other = b.arena[mean]
    if other.op != "mean" or other.inputs[0] != value or not other.attr("keep"):
        return None
    dims = other.dims("dims")
    if b.arena.shape(value) != node.shape:
        return None
    found = _stripped(b, value, dims, own_op="")
    if found is not None:
        return b.binary("sub", found, b.reduce("mean", found, dims, keep=True))
    inner = b.arena[value]
    if inner.op != "batch_norm" or 1 in dims or not b.steady(value):
        return None
    if any(b.arena.depends(each) for each in inner.inputs[1:] if each != NONE):
        return None
    source, _, var, gain, _ = inner.inputs
    factor = b.unary("rsqrt", b.binary("add", var, b.number(inner.number("eps"))))
    factor = factor if gain == NONE else b.binary("mul", gain, factor)
    factor = b.reshape(factor, (1, inner.shape[1], *(1,) * (len(inner.shape) - 2)))
    around = b.binary("sub", source, b.reduce("mean", source, dims, keep=True))
    return b.binary("mul", around, factor)


RULES = (invariant, centred)
