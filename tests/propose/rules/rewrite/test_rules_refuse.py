"""Where a side condition fails, the rule keeps its hands off."""

import math

import pytest

from kernelsmith.propose.rules.rewrite.algebra.catalogue import RULES
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.graph import NONE, Arena
from kernelsmith.propose.rules.rewrite.search import apply

BY_NAME = {rule.name: rule for rule in RULES}
PLAIN = {"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1)}


def a_build():
    b = Build(Arena())
    return b, b.input("x", (2, 4, 6, 6), "float32")


def weight(b, *shape, name="w"):
    return b.weight(f"self.{name}", shape, "float32")


def refuses(name, b, x):
    arena = b.arena
    return all(apply(arena, (x,), BY_NAME[name], n) is None for n in arena.reachable([x]))


def conv(b, x, **changes):
    given = {**PLAIN, **changes}
    return b.conv(x, weight(b, 4, 4, 3, 3), weight(b, 4, name="b"), **given)


def average(b, x, *, kernel=(2, 2), stride=(2, 2)):
    return b.pool("avg_pool", x, kernel, stride)


def row(b):
    return b.input("row", (2, 1, 1, 1), "float32")


def _without_mean(b, x, dims):
    return b.binary("sub", x, b.reduce("mean", x, dims, keep=True))


CASES = {
    "size-one-reduction: several elements": lambda b, x: b.reduce("sum", x, (1,), keep=True),
    "size-one-softmax: several elements": lambda b, x: b.softmax("softmax", x, 1),
    "softmax-sums-to-one: another axis": lambda b, x: b.reduce(
        "sum", b.softmax("softmax", x, 1), (2,), keep=True),
    "softmax-sums-to-one: more axes": lambda b, x: b.reduce(
        "sum", b.softmax("softmax", x, 1), (1, 2), keep=True),
    "minus-itself: its mean": lambda b, x: b.binary("sub", x, b.reduce("mean", x, (1,), keep=True)),
    "minus-itself: its transpose": lambda b, x: b.binary("sub", x, b.permute(x, (0, 1, 3, 2))),
    "norm-of-one-element: several": lambda b, x: b.norm(
        "group_norm", (x, NONE, NONE), eps=1e-5, groups=4),
    "reductions-compose: sum of a mean": lambda b, x: b.reduce(
        "sum", b.reduce("mean", x, (1,), keep=True), (2,), keep=True),
    "reductions-compose: maximum of a minimum": lambda b, x: b.reduce(
        "amax", b.reduce("amin", x, (1,), keep=True), (2,), keep=True),
    "cancelling-pair: nothing divided by it": lambda b, x: b.binary("div", b.number(1), x),
    "cancelling-pair: square twice": lambda b, x: b.unary("square", b.unary("square", x)),
    "constant-folding: log of zero": lambda b, x: b.unary("log", b.full((2,), 0.0, "float32")),
    "constant-folding: division by zero": lambda b, x: b.binary(
        "div", b.full((2,), 1.0, "float32"), b.number(0)),
    "log-softmax: of another axis": lambda b, x: b.binary(
        "sub", x, b.reduce("logsumexp", b.unary("neg", x), (1,), keep=True)),
    "log-softmax: log of a softmax overflows": lambda b, x: b.unary(
        "log", b.softmax("softmax", x, 1)),
    "within-bounds: tanh is below one, not below a half": lambda b, x: b.clamp(
        b.unary("tanh", x), -0.5, 0.5),
    "within-bounds: gelu is negative somewhere": lambda b, x: b.unary(
        "relu", b.unary("gelu", x, approximate="none")),
    "within-bounds: rounding may cross": lambda b, x: b.clamp(
        b.binary("add", b.unary("sigmoid", x), b.number(1.0)), None, 2.0),
    "forced-constant: bounds that leave room": lambda b, x: b.clamp(
        b.clamp(x, None, 0.5), 0.0, 1.0),
    "clamps-compose: bounds that cross": lambda b, x: b.clamp(b.clamp(x, 1.0, 0.0), 0.0, 2.0),
    "reduce-before-product: a relu between": lambda b, x: b.reduce(
        "sum", b.unary("relu", conv(b, x)), (2, 3), keep=True),
    "reduce-before-product: a factor that varies": lambda b, x: b.reduce(
        "sum", b.binary("mul", conv(b, x), weight(b, 4, 4, name="v")), (3,), keep=True),
    "reduce-before-product: a maximum": lambda b, x: b.reduce("amax", conv(b, x), (1,), keep=True),
    "reduce-before-product: half of a merged axis": lambda b, x: b.reduce(
        "sum", b.reshape(b.linear(x, weight(b, 6, 6)), (2, 4, 6, 2, 3)), (4,), keep=True),
    "reduce-before-product: channels of a grouped convolution": lambda b, x: b.reduce(
        "sum", b.conv(x, weight(b, 4, 1, 3, 3), NONE, groups=4, **PLAIN), (1,), keep=True),
    "reduce-before-product: batch norm over channels": lambda b, x: b.reduce(
        "mean", b.norm("batch_norm", (conv(b, x), weight(b, 4, name="m"), weight(b, 4, name="v"),
                                      NONE, NONE), eps=1e-5), (1,), keep=True),
    "reduce-before-product: overlapping windows": lambda b, x: b.reduce(
        "mean", average(b, conv(b, x), stride=(1, 1)), (2, 3), keep=True),
    "reduce-before-product: nothing to gain": lambda b, x: b.reduce("mean", x, (2,), keep=True),
    "pools-compose: averages of overlapping windows": lambda b, x: average(
        b, average(b, x, stride=(1, 1))),
    "pools-compose: windows with gaps": lambda b, x: b.pool(
        "max_pool", b.pool("max_pool", x, (1, 1), (2, 2)), (2, 2), (1, 1)),
    "pools-compose: padding": lambda b, x: b.pool(
        "max_pool", b.pool("max_pool", x, (2, 2), (2, 2), (1, 1)), (2, 2), (2, 2)),
    "pools-compose: average of maxima": lambda b, x: average(
        b, b.pool("max_pool", x, (2, 2), (2, 2))),
    "pool-is-mean: part of the input": lambda b, x: average(b, x),
    "pool-before-affine: a shift that varies": lambda b, x: average(
        b, b.binary("add", x, weight(b, 6, 6))),
    "pool-before-affine: a divisor": lambda b, x: average(b, b.binary("div", b.number(1), x)),
    "pool-into-convolution: a maximum": lambda b, x: b.pool(
        "max_pool", conv(b, x), (2, 2), (2, 2)),
    "pool-into-convolution: fewer axes": lambda b, x: b.pool("avg_pool", conv(b, x), (2,), (2,)),
    "pool-into-transposed: windows that cut strides": lambda b, x: average(
        b, b.conv_transpose(x, weight(b, 4, 4, 3, 3), stride=(3, 3), padding=(0, 0),
                            dilation=(1, 1), output_padding=(0, 0))),
    "pool-into-transposed: overlapping windows": lambda b, x: average(
        b, b.conv_transpose(x, weight(b, 4, 4, 3, 3), stride=(2, 2), padding=(0, 0),
                            dilation=(1, 1), output_padding=(0, 0)), stride=(1, 1)),
    "pool-into-linear: rows are pooled": lambda b, x: b.pool(
        "avg_pool", b.permute(b.linear(x, weight(b, 6, 6)), (0, 1, 3, 2)), (2,), (2,)),
    "fold-bias: a shift that comes from the inputs": lambda b, x: b.binary(
        "add", conv(b, x), b.reduce("mean", x, (0, 2, 3), keep=True)),
    "fold-bias: a shift per position": lambda b, x: b.binary(
        "add", conv(b, x), weight(b, 4, 4, name="v")),
    "fold-bias: subtracted from": lambda b, x: b.binary("sub", weight(b, 1, name="v"), conv(b, x)),
    "fold-scale: a divisor that may be zero": lambda b, x: b.binary(
        "div", conv(b, x), weight(b, 4, 1, 1, name="v")),
    "fold-scale: divided by zero": lambda b, x: b.binary("div", conv(b, x), b.number(0)),
    "fold-scale: the product is the divisor": lambda b, x: b.binary(
        "div", b.number(2), conv(b, x)),
    "fold-batch-norm: statistics of the inputs": lambda b, x: b.norm(
        "batch_norm", (conv(b, x), b.reduce("mean", x, (0, 2, 3), keep=False),
                       weight(b, 4, name="v"), NONE, NONE), eps=1e-5),
    "numbers-together: a product that overflows": lambda b, x: b.binary(
        "mul", b.binary("mul", x, b.number(1e30)), b.number(1e-30)),
    "numbers-together: a number in front": lambda b, x: b.binary(
        "sub", b.binary("sub", b.number(1), x), b.number(2)),
    "shift-invariance: a shift per channel in one group": lambda b, x: b.norm(
        "group_norm", (b.binary("add", x, weight(b, 4, 1, 1)), NONE, NONE), eps=1e-5, groups=2),
    "shift-invariance: a bias along the softmax": lambda b, x: b.softmax(
        "softmax", b.binary("add", x, weight(b, 4, 1, 1)), 1),
    "shift-invariance: batch norm has fixed statistics": lambda b, x: b.norm(
        "batch_norm", (conv(b, x), weight(b, 4, name="m"), weight(b, 4, name="v"), NONE, NONE),
        eps=1e-5),
    "shift-invariance: subtracted from": lambda b, x: b.norm(
        "instance_norm", (b.binary("sub", weight(b, 4, 1, 1), x), NONE, NONE), eps=1e-5),
    "centred-shift: a maximum": lambda b, x: b.binary(
        "sub", conv(b, x), b.reduce("amax", conv(b, x), (2, 3), keep=True)),
    "centred-shift: channels are averaged": lambda b, x: b.binary(
        "sub", conv(b, x), b.reduce("mean", conv(b, x), (1,), keep=True)),
    "mean-of-norm: part of space": lambda b, x: b.reduce(
        "mean", b.norm("group_norm", (x, NONE, NONE), eps=1e-5, groups=2), (2,), keep=True),
    "mean-of-norm: the batch as well": lambda b, x: b.reduce(
        "mean", b.norm("group_norm", (x, NONE, NONE), eps=1e-5, groups=2), (0, 2, 3), keep=True),
    "mean-of-instance-norm: part of space": lambda b, x: b.reduce(
        "mean", b.norm("instance_norm", (x, NONE, NONE), eps=1e-5), (3,), keep=True),
    "diagonal-product: a full matrix": lambda b, x: b.matmul(x, weight(b, 6, 6)),
    "triangular-product: a small one": lambda b, x: b.tril(b.matmul(x, weight(b, 6, 6))),
    "triangular-product: no product": lambda b, x: b.tril(weight(b, 1024, 1024)),
    "reassociate: something between": lambda b, x: b.linear(
        b.unary("relu", b.linear(x, weight(b, 6, 6))), weight(b, 6, 6, name="v")),
    "add-weights-first: another input": lambda b, x: b.binary(
        "add", b.linear(x, weight(b, 6, 6)), b.linear(b.unary("neg", x), weight(b, 6, 6))),
    "add-weights-first: another stride": lambda b, x: b.binary(
        "add", b.slice(conv(b, x), 2, 0, 2), conv(b, x, stride=(2, 1))),
    "one-product-for-several: along another axis": lambda b, x: b.cat(
        (conv(b, x), conv(b, x)), 2),
    "masked-product: a mask of other numbers": lambda b, x: b.binary(
        "mul", x, b.tril(weight(b, 6, 6))),
    "choose-then-compute: gelu falls first": lambda b, x: b.reduce(
        "amax", b.unary("gelu", x, approximate="none"), (1,), keep=True),
    "choose-then-compute: a scale of unknown sign": lambda b, x: b.reduce(
        "amax", b.binary("mul", x, weight(b, 1)), (1,), keep=True),
    "choose-then-compute: a negative number": lambda b, x: b.reduce(
        "amax", b.binary("mul", x, b.number(-1.0)), (1,), keep=True),
    "choose-then-compute: a shift that varies": lambda b, x: b.reduce(
        "amax", b.binary("add", x, weight(b, 4, 1, 1)), (1,), keep=True),
    "choose-then-compute: a negative slope": lambda b, x: b.reduce(
        "amax", b.unary("leaky_relu", x, negative_slope=-0.1), (1,), keep=True),
    "choose-then-compute: no slope, and minus infinity is NaN": lambda b, x: b.reduce(
        "amax", b.unary("leaky_relu", x, negative_slope=0.0), (1,), keep=True),
    "choose-then-compute: softplus falls at a low threshold": lambda b, x: b.reduce(
        "amax", b.unary("softplus", x, beta=1.0, threshold=0.5), (1,), keep=True),
    "choose-then-compute: softplus overflows below a high threshold": lambda b, x: b.reduce(
        "amax", b.unary("softplus", x, beta=1.0, threshold=100.0), (1,), keep=True),
    "choose-then-compute: log1p of less than minus one": lambda b, x: b.reduce(
        "amax", b.unary("log1p", x), (1,), keep=True),
    "choose-then-compute: softsign of infinities": lambda b, x: b.reduce(
        "amin", b.unary("softsign", x), (1,), keep=True),
    "choose-then-compute: a shift from inputs": lambda b, x: b.reduce(
        "amax", b.binary("add", x, row(b)), (1,), keep=True),
    "within-bounds: softplus of negative beta": lambda b, x: b.unary(
        "relu", b.unary("softplus", x, beta=-1.0, threshold=20.0)),
    "within-bounds: softplus of a negative threshold is x": lambda b, x: b.unary(
        "relu", b.unary("softplus", x, beta=1.0, threshold=-1.0)),
    "within-bounds: rsqrt of a negative zero": lambda b, x: b.unary("relu", b.unary("rsqrt", x)),
    "within-bounds: what float16 takes for infinite": lambda b, x: b.clamp(
        b.binary("mul", b.clamp(x, 0.0, 6e4), b.number(2.0)), None, 2e5),
    "forced-constant: a bound that is NaN": lambda b, x: b.clamp(
        b.unary("tanh", x), math.nan, -1.0),
    "clamps-compose: a bound that is NaN": lambda b, x: b.clamp(
        b.clamp(x, 0.0, 1.0), 0.5, math.nan),
    "shift-invariance: a shift from inputs": lambda b, x: b.softmax(
        "softmax", b.binary("add", x, row(b)), 1),
    "shift-invariance: the maximum of all": lambda b, x: b.softmax(
        "softmax", b.binary("sub", x, b.reduce("amax", x, (1, 2), keep=True)), 1),
    "shift-invariance: nothing added to the variance": lambda b, x: b.norm(
        "instance_norm", (conv(b, x), NONE, NONE), eps=0.0),
    "centred-shift: a shift from inputs": lambda b, x: _without_mean(
        b, b.binary("add", x, row(b)), (1,)),
    "fold-batch-norm: a variance of zero": lambda b, x: b.norm(
        "batch_norm", (conv(b, x), weight(b, 4, name="m"), weight(b, 4, name="v"), NONE, NONE),
        eps=0.0),
    "fold-scale: an infinite factor": lambda b, x: b.binary("mul", conv(b, x), b.number(math.inf)),
    "fold-bias: a number that rounds away the rest": lambda b, x: b.binary(
        "add", conv(b, x), b.number(12582912.0)),
    "numbers-together: added and taken away, to round": lambda b, x: b.binary(
        "sub", b.binary("add", x, b.number(12582912.0)), b.number(12582912.0)),
    "pool-before-affine: a divisor that may be zero": lambda b, x: average(
        b, b.binary("div", x, weight(b, 4, 1, 1))),
    "pool-before-affine: a factor from inputs": lambda b, x: average(
        b, b.binary("mul", x, b.input("gate", (2, 4, 1, 1), "float32"))),
    "reduce-before-product: a divisor that may be zero": lambda b, x: b.reduce(
        "sum", b.binary("div", conv(b, x), weight(b, 4, 1, 1, name="v")), (2, 3), keep=True),
    "mean-of-norm: nothing added to the variance": lambda b, x: b.reduce(
        "mean", b.norm("group_norm", (x, NONE, NONE), eps=0.0, groups=2), (2, 3), keep=True),
    "constant-folding: torch.maximum takes no number": lambda b, x: b.binary(
        "maximum", x, b.full((2, 4, 6, 6), 1.0, "float32")),
    "constant-folding: a constant that adds an axis": lambda b, x: b.binary(
        "add", x, b.full((1, 2, 4, 6, 6), 1.0, "float32")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_rule_does_not_fit_where_its_side_condition_fails(case):
    b, x = a_build()
    assert refuses(case.partition(":")[0], b, CASES[case](b, x))


def test_every_rule_has_a_case_that_it_refuses():
    assert {case.partition(":")[0] for case in CASES} == set(BY_NAME)


def test_every_rule_says_what_it_does_and_why_it_holds():
    for rule in RULES:
        assert len(rule.words) > 20, rule.name
        assert len(rule.doc) > 40, rule.name


def test_names_are_unique():
    assert len(BY_NAME) == len(RULES)
