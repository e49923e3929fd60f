"""Grids of tensors, drawn at random: right in float64's eyes, and laid out as torch lays them out.

Triton runs in its interpreter on small shapes; C++ is built.
"""

import pytest
from part_runner import error, runner
from rule_tasks import a_task
from spread_tasks import DRAWN

from kernelsmith.propose.rules.kinds import kinds_for, why_none

pytest.importorskip("triton")

NEAR = 4e-6
"""Of the largest value: float32 sums of these sizes are off by a tenth of it."""
NOTHING = {"rules find nothing to reduce", "rules know outputs of more than one element here",
           "rules do not know transposed tensors here",
           "rules leave reductions along one dimension to rows and columns"}  # fmt: skip
"""What may be said of tasks that sizes of 1 have made something else."""


@pytest.fixture(scope="module")
def pool():
    with runner() as found:
        yield found


def check(pool, task, kind, backend, number, near=NEAR, **more):
    families = [each for each in kinds_for(task, backend) if each.space.template == kind]
    if not families:
        assert why_none(task, backend)[kind] in NOTHING, task.source
        return
    source = families[0].source(families[0].space.seed(number % 9, number))
    off, eager = pool.submit(error, source, task.source, seed=number, laid=True, **more).result()
    assert off <= max(near, 4 * eager), f"{off} with eager at {eager}\n{task.source}\n{source}"


@pytest.mark.parametrize("number", range(8))
@pytest.mark.parametrize("kind", DRAWN)
def test_what_is_drawn_is_right_in_the_interpreter(pool, kind, number):
    check(pool, DRAWN[kind](number), kind, "triton", number)


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("kind", DRAWN)
def test_what_is_drawn_is_right_in_cpp(pool, kind, number):
    check(pool, DRAWN[kind](number), kind, "cpu", number)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("number", range(8, 40))
@pytest.mark.parametrize("kind", DRAWN)
def test_more_of_what_is_drawn_is_right(pool, kind, number, backend):
    check(pool, DRAWN[kind](number), kind, backend, number)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("number", range(100, 106))
@pytest.mark.parametrize("kind", DRAWN)
def test_half_precision_is_right(pool, kind, number, backend):
    """Triton's interpreter cuts what a GPU rounds: two bits of bfloat16 are allowed."""
    check(pool, DRAWN[kind](number), kind, backend, number, near=2**-7,
          dtype="bfloat16")  # fmt: skip


def test_most_of_what_is_drawn_is_recognised():
    for kind, draw in DRAWN.items():
        found = [kind in [f.space.template for f in kinds_for(draw(n), "cpu")] for n in range(40)]
        assert sum(found) >= 30, kind


OUTSIDE = {
    "gather": a_task("return x[ids] * 2", names="x, ids",
                     inputs="torch.randn(5, 7), torch.tensor([0, 5])"),
    "scatter": a_task("return x.new_zeros(4, 7).index_add(0, ids, x)", names="x, ids",
                      inputs="torch.randn(2, 7), torch.tensor([0, -1])"),
}  # fmt: skip


@pytest.mark.parametrize("kind", OUTSIDE)
def test_a_number_out_of_range_is_an_error_on_a_processor(pool, kind):
    (family,) = kinds_for(OUTSIDE[kind], "cpu")
    source = family.source(family.space.defaults)
    with pytest.raises(IndexError, match="index out of range"):
        pool.submit(error, source, OUTSIDE[kind].source).result()


@pytest.mark.parametrize("backend", ["cpu", "triton"])
def test_sizes_that_the_source_does_not_tell_leave_it_to_the_reference(pool, backend):
    """The kernel is made for y along the second dimension; called otherwise, torch broadcasts."""
    task = a_task("return x * y", names="x, y", inputs="torch.randn(4, n, 6), torch.randn(1, n, 1)")
    (family,) = kinds_for(task, backend)
    source = family.source(family.space.defaults)
    written = task.source.replace("def get_inputs():", "def get_inputs(n=5):")
    other = written.replace("torch.randn(1, n, 1)", "torch.randn(4, 1, 1)")
    assert pool.submit(error, source, written).result()[0] <= NEAR
    assert pool.submit(error, source, other, kept=True).result()[0] <= NEAR
    with pytest.raises(AssertionError, match="the reference was run"):
        pool.submit(error, source, other).result()
