"""Evolutions over several tasks: one after the other or several at a time, and gone on with."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest
from training_parts import null_tasks

from kernelsmith.errors import UsageError
from kernelsmith.run.config import Budget
from kernelsmith.run.journal import read
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.run.start import JOURNAL, Judges
from kernelsmith.training.evolve import evolve, quick_run
from kernelsmith.training.forms.algebra import AlgebraTeacher

TASKS = null_tasks(5)
RUN = replace(quick_run(), backend="null", budget=Budget(steps=8))


def steps_in(folder):
    return {path.parent.name: len(read(path).steps) for path in folder.rglob(JOURNAL)}


class Crowded(SimulatedEvaluator):
    """Counts how many are judged at a time."""

    def __init__(self):
        super().__init__()
        self.now, self.most, self.opened, self.closed = set(), 0, 0, 0

    async def evaluate(self, task, candidate, *, baseline=None):
        self.now.add(task.name)
        self.most = max(self.most, len(self.now))
        await asyncio.sleep(0.002)
        found = await super().evaluate(task, candidate, baseline=baseline)
        self.now.discard(task.name)
        return found

    def judges(self, stack: AsyncExitStack):
        self.opened += 1
        stack.callback(self.over)
        return Judges(evaluator=self, confirmer=self)

    def over(self):
        self.closed += 1


@pytest.mark.parametrize(("at_a_time", "most"), [(1, 1), (3, 3)])
def test_so_many_tasks_are_under_way_and_the_judges_serve_all(at_a_time, most, tmp_path):
    judge = Crowded()
    evolve(TASKS, tmp_path, RUN, lambda *_: AlgebraTeacher(), judges=judge.judges,
           at_a_time=at_a_time)  # fmt: skip
    assert steps_in(tmp_path) == {task.name: 8 for task in TASKS}
    assert judge.most == most
    assert (judge.opened, judge.closed) == (1, 1)


class Failing(AlgebraTeacher):
    async def propose(self, brief):
        if brief.number == 4:
            raise UsageError("no more ideas")
        return await super().propose(brief)


def test_what_goes_wrong_in_one_ends_all_and_the_same_call_goes_on(tmp_path):
    def teacher(task, place):
        return Failing() if task is TASKS[1] else AlgebraTeacher()

    with pytest.raises(UsageError, match="no more ideas"):
        evolve(TASKS, tmp_path, RUN, teacher, at_a_time=2)
    found = steps_in(tmp_path)
    assert found[TASKS[1].name] < 8
    assert TASKS[4].name not in found, "nothing new is begun"
    evolve(TASKS, tmp_path, RUN, lambda *_: AlgebraTeacher(), at_a_time=2)
    assert steps_in(tmp_path) == {task.name: 8 for task in TASKS}


def test_a_task_that_cannot_even_begin_is_no_secret(tmp_path):
    def teacher(task, place):
        raise UsageError(f"no teacher for {task.name}")

    with pytest.raises(UsageError, match="no teacher for"):
        evolve(TASKS, tmp_path, RUN, teacher, at_a_time=3)
    assert steps_in(tmp_path) == {}
