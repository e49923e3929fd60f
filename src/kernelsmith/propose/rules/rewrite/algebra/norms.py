"""Norms whose values are only averaged: statistics are enough."""

from kernelsmith.propose.rules.rewrite.algebra.rule import rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, product


@rule(
    "mean-of-norm",
    "the mean of a group norm over space needs the statistics alone: the normalised tensor is "
    "never made",
)
def group_mean(b: Build, x: int) -> int | None:
    """mean_s ((x_cs - m_g) r_g w_c + b_c) = (mean_s x_cs - m_g) r_g w_c + b_c.

    m and r do not change along s; m_g is the mean of the channels' means (equally many positions
    each) and r_g = rsqrt(var_g + eps). A mean over channels as well is taken of the result.

    Side conditions: the mean takes all of space, and at most channels besides; eps > 0, so that
    rounding is not divided by zero; gain and bias do not come from inputs. An infinity or NaN in x
    makes its whole group NaN on both sides.
    """
    node = b.arena[x]
    if node.op != "mean":
        return None
    inner = b.arena[node.inputs[0]]
    if inner.op != "group_norm":
        return None
    rank, dims = len(inner.shape), set(node.dims("dims"))
    space = tuple(range(2, rank))
    if not space or not set(space) <= dims or 0 in dims or not b.steady(node.inputs[0]):
        return None
    source, gain, shift = inner.inputs
    if any(b.arena.depends(each) for each in (gain, shift) if each != NONE):
        return None
    batch, channels, groups = inner.shape[0], inner.shape[1], inner.integer("groups")
    each = channels // groups
    means = b.reshape(b.reduce("mean", source, space, keep=False), (batch, groups, each))
    middle = b.reduce("mean", means, (2,), keep=True)
    rows = b.reshape(source, (batch, groups, each * product(inner.shape[2:])))
    var = b.reduce("var", rows, (2,), keep=True)
    scale = b.unary("rsqrt", b.binary("add", var, b.number(inner.number("eps"))))
    made = b.binary("mul", b.binary("sub", means, middle), scale)
    made = b.reshape(made, (batch, channels))
    if gain != NONE:
        made = b.binary("mul", made, gain)
    if shift != NONE:
        made = b.binary("add", made, shift)
    if 1 in dims:
        made = b.reduce("mean", made, (1,), keep=True)
    return b.reshape(made, node.shape)


@rule(
    "mean-of-instance-norm",
    "the mean over space of an instance norm is its bias, as centred values average to zero",
    tidy=True, finite=True,
)  # fmt: skip
def instance_mean(b: Build, x: int) -> int | None:
    """mean_s ((x_s - mean(x)) r w + b) = 0 r w + b.

    Side conditions: all of space is averaged and nothing else; eps > 0, so that r is finite.
    """
    node = b.arena[x]
    if node.op != "mean":
        return None
    inner = b.arena[node.inputs[0]]
    rank = len(inner.shape)
    if inner.op != "instance_norm" or node.dims("dims") != tuple(range(2, rank)) or rank < 3:
        return None
    if not b.steady(node.inputs[0]):
        return None
    bias = inner.inputs[2]
    if bias == NONE:
        return b.full(node.shape, 0.0, node.dtype)
    wide = b.expand(b.reshape(bias, (1, inner.shape[1])), inner.shape[:2])
    return b.reshape(wide, node.shape)


RULES = (group_mean, instance_mean)
