"""A data set whose questions can all be answered at once."""

import pytest
from training_parts import null_runs

from kernelsmith.training.data.build import Recipe, build
from kernelsmith.training.forms.algebra import AlgebraEdits

SLOW = {"e1", "e2", "e3", "e4"}


class Asking(AlgebraEdits):
    """Needs a compiler before it can read replies about some tasks."""

    def at_hand(self, task):
        return task.name not in SLOW


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    null_runs(folder, count=8, steps=12)
    return folder


def test_tasks_that_need_a_compiler_are_imitated_and_not_asked_about(runs):
    recipe = Recipe(select="all", held_out=("e3", "e5"), compiler=False)
    built = build([runs], recipe, form=Asking())
    assert {row.task for row in built.rl} & SLOW == set()
    assert {row.task for row in built.held_out} == {"e5"}
    assert {row.task for row in built.sft} & SLOW
    assert "of tasks that need no compiler" in built.card.to_markdown()
    everything = build([runs], Recipe(select="all", held_out=("e3", "e5")), form=Asking())
    assert {row.task for row in everything.held_out} == {"e3", "e5"}
    assert {row.task for row in everything.rl} & SLOW
