"""Reductions behind a convolution are as exact as eager's, whatever the tiles."""

import random
import re

import pytest
from part_runner import error, runner
from reduced_tasks import REDUCED
from rule_tasks import a_task
from test_packed import TEN_BITS, the_family

from kernelsmith.propose.rules.kinds import why_none

QUICK = ("channels_softmax", "space_summed", "again_group", "again_instance_most",
         "windows_mean_sum")  # fmt: skip


@pytest.fixture(scope="module")
def pool():
    with runner() as opened:
        yield opened


def exactly(task):
    """The task with inputs and weights of so few bits that products and their sums are exact."""
    source = re.sub(
        r"return \[(.*)\]\n", r"return [((\1) * 8).round() / 8]\n", task.source, count=1
    )
    few = "\n        self.conv.weight.data = (self.conv.weight.data * 64).round() / 64"
    source = re.sub(r"(self\.conv = .*)", rf"\1{few}", source)
    assert few in source
    return source


def ran(pool, task, source=None, number=0, **options):
    family = the_family(task)
    text = family.source(family.space.seed(number, 3))
    return pool.submit(error, text, source or task.source, **options).result()


@pytest.mark.parametrize("name", QUICK)
def test_what_is_reduced_is_as_exact_as_eager_s(pool, name):
    off, eager = ran(pool, REDUCED[name], exactly(REDUCED[name]))
    assert off < 4 * eager + 2e-7


@pytest.mark.slow
@pytest.mark.parametrize("name", REDUCED)
def test_every_seed_is_as_exact_as_eager_s(pool, name):
    for number in range(len(the_family(REDUCED[name]).space.seeds)):
        off, eager = ran(pool, REDUCED[name], exactly(REDUCED[name]), number)
        assert off < 4 * eager + 2e-7, number


@pytest.mark.slow
@pytest.mark.parametrize("name", REDUCED)
def test_half_precision_is_no_worse_than_eager_s(pool, name):
    off, eager = ran(pool, REDUCED[name], dtype="float16")
    assert off < 1.5 * eager + 1e-6


@pytest.mark.parametrize("value", ["nan", "-inf"])
@pytest.mark.parametrize("name", ["channels_most", "space_most"])
def test_what_is_not_finite_comes_out_as_eager_s(pool, name, value):
    assert not_finite(pool, name, value) < TEN_BITS


@pytest.mark.slow
@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("name", REDUCED)
def test_what_is_not_finite_comes_out_as_eager_s_everywhere(pool, name, value):
    assert not_finite(pool, name, value) < TEN_BITS


def not_finite(pool, name, value):
    task = REDUCED[name]
    lines = rf"x = \1\n    x.flatten()[50] = float('{value}')\n    return [x]\n"
    source = re.sub(r"return \[(.*)\]\n", lines, task.source, count=1)
    assert source != task.source
    return ran(pool, task, source)[0]


def test_moments_far_from_zero_do_not_cancel(pool):
    task = a_task(
        "return self.norm(self.conv(x) + 300.0)", init="self.conv = nn.Conv2d(16, 20, 1)\n"
        "self.norm = nn.GroupNorm(5, 20)", inputs="torch.randn(1, 16, 13, 17)",
    )  # fmt: skip
    off, eager = ran(pool, task, exactly(task))
    assert off < 4 * eager + 1e-6


@pytest.mark.parametrize("scale", ["1e18", "1e-18"])
def test_norms_of_any_size_are_as_exact(pool, scale):
    task = a_task(
        "return self.norm(self.conv(x))", init="self.conv = nn.Conv2d(16, 20, 1, bias=False)\n"
        "self.norm = nn.InstanceNorm2d(20, eps=0.0)", inputs=f"{scale} * torch.randn(1, 16, 9, 9)",
    )  # fmt: skip
    assert 1e-6 < ran(pool, task)[0] < TEN_BITS


def drawn(rng):
    ndim, turned = rng.randint(1, 3), rng.random() < 0.4
    into, out = rng.choice([3, 9, 17, 20]), 4 * rng.randint(1, 9)
    size = tuple(rng.randint(1, 3) for _ in range(ndim))
    stride = tuple(rng.randint(1, 2) for _ in range(ndim))
    norm = rng.choice([f"GroupNorm({rng.choice([1, 2, 4])}, {out})",
                       f"InstanceNorm{ndim}d({out}, affine={rng.random() < 0.5})"])  # fmt: skip
    init = (
        f"self.conv = nn.Conv{'Transpose' * turned}{ndim}d({into}, {out}, {size}, stride={stride})"
        f"\nself.norm = nn.{norm}\nself.by = nn.Parameter(torch.randn({out}{', 1' * ndim}))"
    )
    space = tuple(range(2, ndim + 2))
    value = rng.choice(
        ["self.conv(x)", "F.gelu(self.conv(x))", "(self.conv(F.relu(x) * 2) * self.by)"]
    )
    value = rng.choice([value, value, f"self.norm({value})", f"F.silu(self.norm({value}))"])
    if stride == (1,) * ndim or not turned:
        pool = rng.choice([f"F.max_pool{ndim}d({value}, 2)", f"F.avg_pool{ndim}d({value}, 2)"])
        value = rng.choice([value, pool])
    ending = rng.choice([
        "{}.amax(dim=1)", "torch.softmax({}, dim=1) * self.by", "torch.logsumexp({}, 1, True)",
        f"{{}}.mean(dim={space}) * 2", f"{{}}.sum(dim={(1, *space)})", f"{{}}.std({space})",
        f"torch.amin({{}}, {space}, True) + self.by",
        f"torch.tanh({{}}.sum(1, keepdim=True).mean({space}, keepdim=True) + self.by)",
    ])  # fmt: skip
    shape = ", ".join(str(rng.randint(6, 21 if ndim < 3 else 7)) for _ in range(ndim))
    inputs = f"torch.randn({rng.randint(1, 3)}, {into}, {shape})"
    return a_task(f"return {ending.format(value)}", init=init, inputs=inputs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_reductions_as_they_come_are_right(pool, seed):
    task = drawn(random.Random(seed))
    off, eager = ran(pool, task, exactly(task), number=seed % 6)
    assert off < 10 * eager + 1e-6, task.source


def _refused(forward, *, conv="Conv2d(20, 19, 3)", names="x", inputs="torch.randn(2, 20, 9, 9)"):
    task = a_task(f"return {forward}", init=f"self.conv = nn.{conv}", names=names, inputs=inputs)
    return why_none(task, "triton")["packed"]


def test_reductions_of_another_form_are_refused_with_a_reason():
    assert "all of space" in _refused("self.conv(x).mean(dim=2)")
    assert "all of space" in _refused("self.conv(x).sum(dim=(0, 1))")
    assert "all images" in _refused("self.conv(x).mean()")
    assert "256 channels" in _refused("self.conv(x).amax(dim=1)", conv="Conv2d(20, 300, 3)")
    assert "one group" in _refused("self.conv(x).amax(1)", conv="Conv2d(20, 20, 3, groups=2)")
    turned = "ConvTranspose2d(20, 19, 3, stride=2)"
    assert "that stride" in _refused("F.max_pool2d(self.conv(x), 2)", conv=turned)
    assert "2, 4, 8" in _refused("F.max_pool2d(self.conv(x), 3)")
    assert "side by side" in _refused("F.max_pool2d(self.conv(x), 2, 1)")
    assert "windows alone" in _refused(
        "F.max_pool2d(self.conv(x), 2) + self.conv(x).mean((2, 3), True)"
    )
    two = "torch.randn(2, 20, 9, 9), torch.randn(2, 19, 7, 7)"
    assert "second input" in _refused("(self.conv(x) + y).amax(1)", names="x, y", inputs=two)


@pytest.mark.parametrize(
    ("shape", "known"), [("1, 1, 1", True), ("1, 1, 1, 1", False), ("7", False)]
)
def test_parameters_that_would_broadcast_otherwise_are_left_to_the_reference(pool, shape, known):
    task = a_task(
        "return torch.amax(self.conv(x), dim=1) * self.by",
        init=f"self.conv = nn.Conv2d(20, 7, 3)\nself.by = nn.Parameter(torch.randn({shape}))",
        inputs="torch.randn(1, 20, 9, 9)",
    )  # fmt: skip
    if known:
        assert ran(pool, task)[0] < TEN_BITS
    else:
        with pytest.raises(AssertionError, match="in place of the kernel"):
            ran(pool, task)
