"""Test-time training: an adapter that follows a run's own good steps."""

from dataclasses import replace

import pytest
import torch
from training_parts import a_sample, a_task

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.errors import UsageError
from kernelsmith.training.adapt import AdaptConfig, Adapting
from kernelsmith.training.data.rows import rows_of
from kernelsmith.training.forms.algebra import AlgebraEdits
from kernelsmith.training.recipes.config import TinySize
from kernelsmith.training.recipes.model import tiny

TASK = a_task(source="x * 1 + y")


def good(number):
    return a_sample(number, source="x + y", speedup=2.0, parent=("x * 1 + y", 1.0), task=TASK)


@pytest.fixture
def adapting():
    rows = rows_of([good(0)], AlgebraEdits())
    model, tokens = tiny(rows, TinySize(vocabulary=300, width=32, layers=1, heads=2))
    return Adapting(model, tokens, AlgebraEdits(), AdaptConfig(every=2, learning_rate=5e-2))


def test_good_steps_become_likelier_and_the_base_stays(adapting):
    base = {n: p.clone() for n, p in adapting.model.named_parameters() if not p.requires_grad}
    for number in range(8):
        adapting.noted(good(number).step)
    assert len(adapting.losses) == 4 * AdaptConfig().passes
    assert adapting.losses[-1] < adapting.losses[0] - 0.2
    now = dict(adapting.model.named_parameters())
    assert all(torch.equal(base[name], now[name]) for name in base)


def test_steps_that_gain_nothing_teach_nothing(adapting):
    worse = a_sample(0, source="x + y", speedup=0.9, parent=("x * 1 + y", 1.0), task=TASK)
    wrong = a_sample(1, source="x", speedup=None, verdict=Verdict.WRONG, parent=("x * 1 + y", 1.0),
                     task=TASK)  # fmt: skip
    for each in (worse, wrong, worse, wrong):
        adapting.noted(each.step)
    assert adapting.losses == []


def test_a_first_step_teaches_only_if_it_beats_the_reference(adapting):
    slow, noise, fast = (
        a_sample(number, source="x * 1 + y", speedup=speedup, task=TASK).step
        for number, speedup in enumerate((0.97, 1.005, 1.5))
    )
    for each in (slow, noise, slow, noise):
        adapting.noted(each)
    assert adapting.losses == []
    adapting.noted(fast)
    adapting.noted(good(9).step)
    assert len(adapting.losses) == AdaptConfig().passes


def test_what_was_proposed_before_teaches_nothing_again(adapting):
    step = good(0).step
    again = replace(step, placement=replace(step.placement, outcome=Outcome.DUPLICATE))
    for each in (step, again, again, again):
        adapting.noted(each)
    assert adapting.losses == []


def test_nonsense_is_refused():
    with pytest.raises(UsageError, match="updated by something"):
        AdaptConfig(every=0)
