"""Convolutions over copies with channels side by side are right to ten bits of each factor."""

import random
import re

import pytest
from part_runner import error, runner
from part_tasks import MIXING, NEIGHBOURS
from rule_tasks import a_task

from kernelsmith.propose.rules.families import Begun, Families
from kernelsmith.propose.rules.kinds import kinds_for, why_none

TEN_BITS = 4e-3
"""What ten bits of each factor leave of a sum, of the largest output, which others cancel in."""
STEM = a_task(
    "return torch.relu(self.conv(x))", init="self.conv = nn.Conv2d(3, 24, 7, stride=2, padding=3)",
    inputs="torch.randn(2, 3, 19, 23)",
)  # fmt: skip
WIDE = a_task(
    "return self.conv(torch.tanh(x))", init="self.conv = nn.Conv3d(32, 16, (1, 3, 2), padding=1)",
    inputs="torch.randn(1, 32, 3, 5, 6)",
)  # fmt: skip
GAPS = a_task(
    "return self.conv(x) + 1",
    init="self.conv = nn.ConvTranspose2d(18, 20, 3, stride=5, padding=1, dilation=2)",
    inputs="torch.randn(2, 18, 4, 3)",
)  # fmt: skip
THIN = a_task(
    "return self.conv(x)",
    init="self.conv = nn.ConvTranspose3d(32, 24, (2, 3, 3), stride=2, padding=1, groups=4)",
    inputs="torch.randn(1, 32, 3, 5, 4)",
)  # fmt: skip
TASKS = {"thin": THIN, **MIXING, "gaps": GAPS, "stem": STEM, "wide": WIDE}


@pytest.fixture(scope="module")
def pool():
    with runner() as opened:
        yield opened


def the_family(task):
    return next(each for each in kinds_for(task, "triton") if each.space.template == "packed")


def off(pool, task, number=0, **options):
    family = the_family(task)
    source = family.source(family.space.seed(number, 3))
    return pool.submit(error, source, task.source, **options).result()[0]


@pytest.mark.parametrize("name", ["dense", "few", "turned", "gaps", "thin"])
def test_the_first_seed_is_as_right_as_ten_bits_are(pool, name):
    assert 1e-6 < off(pool, TASKS[name]) < TEN_BITS


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_seed_is_as_right_as_ten_bits_are(pool, name):
    for number in range(len(the_family(TASKS[name]).space.seeds)):
        assert off(pool, TASKS[name], number) < TEN_BITS


@pytest.mark.parametrize("scale", ["1e20", "1e-20"])
def test_values_of_any_size_are_as_exact(pool, scale):
    task = a_task(
        "return self.conv(x)", init="self.conv = nn.Conv2d(20, 19, 3, padding=1, bias=False)",
        inputs=f"{scale} * torch.randn(2, 20, 9, 13)",
    )  # fmt: skip
    assert 1e-6 < off(pool, task) < TEN_BITS


@pytest.mark.parametrize("value", ["inf", "nan"])
@pytest.mark.parametrize("name", ["turned", "few"])
def test_what_is_not_finite_stays_where_it_belongs(pool, name, value):
    task = MIXING[name]
    drawn = re.search(r"return \[(torch.randn.*)\]", task.source)
    assert drawn is not None
    lines = f"x = {drawn[1]}\n    x.flatten()[50] = float('{value}')\n    return [x]"
    source = task.source.replace(drawn[0], lines)
    family = the_family(task)
    text = family.source(family.space.defaults)
    assert pool.submit(error, text, source).result()[0] < TEN_BITS


def drawn(rng):
    ndim, turned = rng.randint(1, 3), rng.random() < 0.5
    groups = rng.choice([1, 1, 2])
    into, out = groups * rng.randint(9, 40), groups * rng.randint(1, 40)
    if groups == 1 and rng.random() < 0.3:
        into = rng.randint(1, 8)

    def some(low, high):
        return tuple(rng.randint(low, high) for _ in range(ndim))

    size = some(1, 4)
    stride, step = some(1, 2 if ndim == 3 else 3), some(1, 3)
    around = tuple(rng.randint(0, (k - 1) * d // 2) for k, d in zip(size, step, strict=True))
    more = f"stride={stride}, padding={around}, dilation={step}, groups={groups}"
    if turned:
        extra = tuple(rng.randint(0, max(s, d) - 1) for s, d in zip(stride, step, strict=True))
        more += f", output_padding={extra}"
    init = f"self.conv = nn.Conv{'Transpose' * turned}{ndim}d({into}, {out}, {size}, {more})"
    shape = ", ".join(str(rng.randint(7, 10)) for _ in range(ndim))
    text = rng.choice(["F.gelu(self.conv(x))", "self.conv(x * 2).tanh()", "self.conv(x)"])
    inputs = f"torch.randn({rng.randint(1, 3)}, {into}, {shape})"
    return a_task(f"return {text}", init=init, inputs=inputs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_convolutions_as_they_come_are_right(pool, seed):
    task = drawn(random.Random(seed))
    assert off(pool, task, number=seed % 6) < TEN_BITS, task.source


def test_what_has_too_many_phases_is_left_to_others():
    many = a_task("return self.conv(x)", init="self.conv = nn.ConvTranspose2d(18, 4, 3, stride=6)",
                  inputs="torch.randn(1, 18, 4, 4)")  # fmt: skip
    assert "phases" in why_none(many, "triton")["packed"]


def test_every_choice_is_written_as_python():
    family = the_family(MIXING["dense"])
    for each in family.space.parameters:
        for value in each.choices:
            compile(family.source({**family.space.defaults, each.name: value}), "c.py", "exec")


@pytest.mark.parametrize("bits", [0x7FFFFFFF, 0x7FC00000, 0x7F800001])
def test_no_kind_of_nan_becomes_a_number(pool, bits):
    task = a_task("return self.conv(x)", init="self.conv = nn.Conv1d(16, 16, 1, bias=False)",
                  inputs="torch.randn(1, 16, 20)")  # fmt: skip
    drawn = "return [torch.randn(1, 16, 20)]"
    lines = f"x = torch.randn(1, 16, 20)\n    x.view(torch.int32)[0, 3, 7] = {bits}\n    return [x]"
    source = task.source.replace(drawn, lines)
    assert source != task.source
    family = the_family(task)
    text = family.source(family.space.defaults)
    assert pool.submit(error, text, source).result()[0] < TEN_BITS


def test_convolutions_read_in_place_are_left_out_where_the_compiler_was_asked():
    found = Begun(families=Families()).joined(MIXING["dense"], "triton")
    assert [each.space.template for each in found.members] == ["packed"]
    few = Begun(families=Families()).joined(NEIGHBOURS["grouped"], "triton")
    assert [each.space.template for each in few.members] == ["neighbours"]


def test_groups_of_eight_channels_are_multiplied_or_added_up():
    found = Begun(families=Families()).joined(THIN, "triton")
    assert [each.space.template for each in found.members] == ["packed", "neighbours"]
    seven = a_task("return self.conv(x)", init="self.conv = nn.Conv2d(14, 4, 3, groups=2)",
                   inputs="torch.randn(1, 14, 9, 9)")  # fmt: skip
    assert "few channels" in why_none(seven, "triton")["packed"]


def test_what_the_compiler_wrote_around_a_library_s_convolution_goes_first():
    written = kinds_for(MIXING["dense"], "triton")
    other = next(each for each in written if each.space.template != "packed")
    begun = Begun(families=Families(members=(other,)))
    names = [each.space.template for each in begun.joined(MIXING["dense"], "triton").members]
    assert names == [other.space.template, "packed"]
