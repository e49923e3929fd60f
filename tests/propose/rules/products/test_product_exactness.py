"""What is less exact than eager is tried only where it fits, and what infinities become."""

import asyncio
from dataclasses import dataclass, replace

import pytest
import torch
from rule_briefs import a_brief, a_step, an_exemplar
from rule_tasks import a_task

from kernelsmith.domain.evaluation import Accuracy
from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.families import Families, templates_only
from kernelsmith.propose.rules.products.choose import COARSE
from kernelsmith.propose.rules.products.standalone import product_family
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.space import Parameter, Space

TASK = a_task("return x @ y", names="x, y", inputs="torch.randn(1024, 512), torch.randn(512, 1024)")
FAMILY = product_family(TASK)
COARSELY = FAMILY.space.defaults | {"product": "tiles", "precision": "bf16x3"}
EXACTLY = FAMILY.space.defaults | {"product": "tiles", "precision": "bf16x6"}


def accuracies(*budgets):
    return tuple(
        Accuracy(workload=str(at), error=1e-7, budget=each, eager_error=each / 10, trials=3)
        for at, each in enumerate(budgets)
    )


def planes(x):
    high = x.bfloat16()
    return high.double(), (x - high.float()).bfloat16().double()


@pytest.mark.parametrize("k", [16, 64, 512, 4096])
@pytest.mark.parametrize("sort", ["normal", "uniform", "wide"])
def test_three_products_of_bfloat16_are_as_far_off_as_is_said(k, sort):
    torch.manual_seed(k)
    draw = torch.rand if sort == "uniform" else torch.randn
    a, b = draw(64, k), draw(k, 64)
    if sort == "wide":
        a, b = (x * 10 ** (torch.rand_like(x) * 4 - 2) for x in (a, b))
    (a_high, a_low), (b_high, b_low) = planes(a), planes(b)
    found = a_high @ b_high + a_high @ b_low + a_low @ b_high
    exact = a.double() @ b.double()
    off = ((found - exact).norm(dim=1) / exact.norm(dim=1)).max()
    assert off < COARSE
    assert sort == "uniform" or off > COARSE / 3


@dataclass(frozen=True)
class TwoWays:
    """A family of two variants, one of them coarse."""

    space = Space(
        template="two", seeds=((),),
        parameters=(
            Parameter(name="way", choices=("fine", "coarse"), default="fine", why="speed",
                      coarse=(("coarse", COARSE),)),
        ),
    )  # fmt: skip

    def source(self, chosen):
        return f"{self.space.header(chosen)}\nclass ModelNew: way = '{chosen['way']}'\n"

    def words(self, chosen):
        return chosen["way"]


FINE = TwoWays().source({"way": "fine"})


def goes_on(told=(), shown=None):
    """Whether anything is left to write once the fine variant was judged with these budgets."""
    proposer = RulesProposer("triton", families=lambda *_: Families(members=(TwoWays(),)))
    step = a_step(TASK, FINE)
    proposer.learn(replace(step, evaluation=replace(step.evaluation, accuracy=accuracies(*told))))
    parent = None if shown is None else an_exemplar(TASK, FINE, accuracy=accuracies(*shown))
    proposal = asyncio.run(proposer.propose(a_brief(TASK, 1, parent=parent)))
    assert proposal.source in (None, TwoWays().source({"way": "coarse"}))
    return proposal.source is not None


@pytest.mark.parametrize(("budgets", "fits"), [
    ((), False), ((2e-6,), False), ((4e-5,), True), ((4e-5, 1e-6), False), ((4e-5, 2e-5), True),
])  # fmt: skip
def test_what_is_coarse_is_written_only_where_the_tightest_measured_budget_has_room(budgets, fits):
    assert goes_on(told=budgets) is fits
    assert goes_on(shown=budgets) is fits


def test_what_was_told_and_what_the_parent_shows_both_count():
    assert not goes_on(told=(4e-5,), shown=(1e-6,))
    assert not goes_on(told=(1e-6,), shown=(4e-5,))


def precisions(budget, asks=40):
    """What a proposer writes for a parent in tiles, brief after brief."""
    proposer = RulesProposer("triton", families=templates_only)
    step = a_step(TASK, FAMILY.source(EXACTLY))
    evaluation = replace(step.evaluation, accuracy=accuracies(budget))
    proposer.learn(replace(step, evaluation=evaluation))
    parent = an_exemplar(TASK, FAMILY.source(EXACTLY), accuracy=accuracies(budget))
    found = set()
    for number in range(2, 2 + 2 * asks, 2):
        brief = a_brief(TASK, number, parent=parent, backend="triton")
        proposal = asyncio.run(proposer.propose(brief))
        assert proposal.source is not None, proposal.rejection
        found.add(FAMILY.space.read(proposal.source)["precision"])
    return found


def test_mutations_leave_a_coarse_product_out_until_there_is_room():
    assert "bf16x3" not in precisions(2e-6)
    assert "bf16x3" in precisions(4e-5)


def test_nothing_begins_with_a_coarse_value():
    with pytest.raises(ValueError, match="which is coarse"):
        Parameter(name="p", choices=("a", "b"), default="a", why="", coarse=(("a", 1e-3),))
    assert all(FAMILY.space.error(each) == 0 for each in FAMILY.space.starts)
    assert FAMILY.space.error(COARSELY) == COARSE


def on_device(precision):
    """A product in tiles that are split inside, on the GPU, and inputs for it."""
    task = a_task("return x @ y", names="x, y",
                  inputs="torch.randn(256, 192), torch.randn(192, 256)")  # fmt: skip
    family = product_family(task)
    chosen = family.space.defaults | {"product": "tiles", "precision": precision}
    made = execute(family.source(chosen)).ModelNew()
    made.plain = None  # the reference must not run in its place
    torch.manual_seed(0)
    return made, torch.randn(256, 192, device="cuda"), torch.randn(192, 256, device="cuda")


TILED = ["bf16x6", "bf16x3", "tf32x3", "ieee"]


@pytest.mark.triton
@pytest.mark.parametrize("precision", TILED)
def test_infinities_and_nan_in_tiles_are_where_eager_has_them(precision):
    made, x, y = on_device(precision)
    x[3, 5], x[70, 100], x[71, 0], x[72, 9] = torch.inf, -torch.inf, torch.nan, torch.inf
    x[72, 10] = -torch.inf
    y[7, 200], y[100, 201] = torch.inf, torch.nan
    got, want = made(x, y), x @ y
    assert torch.equal(got.isnan(), want.isnan())
    assert torch.equal(got.isposinf(), want.isposinf())
    assert torch.equal(got.isneginf(), want.isneginf())
    finite = want.isfinite()
    torch.testing.assert_close(got[finite], want[finite], rtol=1e-3, atol=1e-3)


@pytest.mark.triton
@pytest.mark.parametrize("precision", TILED)
def test_numbers_near_the_largest_are_right_or_not_finite_and_disturb_no_other_row(precision):
    made, x, y = on_device(precision)
    x[5, 7] = 3.4e38  # above bfloat16's largest
    y[7] *= 1e-20
    got, want = made(x, y), x @ y
    others = torch.arange(256, device="cuda") != 5
    torch.testing.assert_close(got[others], want[others], rtol=1e-3, atol=1e-3)
    row = got[5]
    near = torch.isclose(row, want[5], rtol=1e-3)
    assert bool((near | ~row.isfinite()).all())
    if precision == "ieee":
        assert bool(near.all())
