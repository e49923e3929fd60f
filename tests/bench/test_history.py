"""From a journal's steps to what a record keeps of them."""

import pytest

from kernelsmith.bench.history import cost_of, points_of
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Outcome, Placement, Proposal, Step, Usage
from kernelsmith.errors import UsageError


def a_step(number=0, **usage) -> Step:
    """A reply without a candidate, which cost something."""
    task = Task(name="add", source="x + y", entry="expression")
    return Step(
        brief=Brief(number=number, task=task, backend="null", island=0, seed=0),
        proposal=Proposal(source=None, rejection="no code", usage=Usage(**usage)),
        placement=Placement(outcome=Outcome.REJECTED, island=0),
    )


def test_what_a_search_took_is_the_sum_of_what_was_counted():
    points = points_of([a_step(0, input_tokens=3), a_step(1, output_tokens=4, usd=0.25)])
    cost = cost_of(points, 1.5)
    assert (cost.tokens, cost.usd, cost.seconds) == (7, 0.25, 1.5)


def test_a_journal_with_an_impossible_number_is_named_with_its_step():
    with pytest.raises(UsageError, match="step 1 of the run cannot be: tokens is finite and not"):
        points_of([a_step(0), a_step(1, input_tokens=-5)])
    with pytest.raises(UsageError, match=r"does not take -1\.0 s"):
        cost_of([], -1.0)
