"""A teacher over many tasks: counted honestly, interrupted at any time, gone on with."""

import json
from dataclasses import replace

import pytest
from training_parts import null_tasks

from kernelsmith.domain.trajectory import Proposal
from kernelsmith.errors import UsageError
from kernelsmith.run.canonical import canonical
from kernelsmith.run.config import Budget
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL
from kernelsmith.training.evolve import quick_run
from kernelsmith.training.forms.algebra import AlgebraTeacher
from kernelsmith.training.teach import PROGRESS, Lessons, Teaching

TASKS = null_tasks(6)


def lessons(steps=10, **changes):
    run = replace(quick_run(), backend="null", budget=Budget(steps=steps))
    return Lessons(run=run, **changes)


def teaching(folder, how, teacher=lambda *_: AlgebraTeacher(), **more):
    return Teaching([(task.name, lambda t=task: t) for task in TASKS], folder, how, teacher, **more)


def steps_in(folder):
    return {path.parent.name: read(path) for path in folder.rglob(JOURNAL)}


class Asked:
    """Counts proposals, and interrupts once at one of them."""

    def __init__(self):
        self.count, self.stop_at, self.going = 0, 0, None

    def __call__(self):
        self.count += 1
        if self.count == self.stop_at:
            self.going.stop()


class Watched(AlgebraTeacher):
    """Calls somebody before each proposal."""

    def __init__(self, calls):
        super().__init__()
        self._calls = calls

    async def propose(self, brief):
        self._calls()
        return await super().propose(brief)


def test_every_task_gets_its_steps_and_only_verdicts_of_their_own_count(tmp_path):
    taught = teaching(tmp_path, lessons()).go()
    found = steps_in(tmp_path)
    assert set(found) == {task.name for task in TASKS}
    assert all(len(each.steps) == 10 for each in found.values())
    distinct = {(n, s.candidate.id) for n, r in found.items() for s in r.steps if s.candidate}
    assert taught.judged == taught.new == len(distinct) < 60
    assert (taught.tasks, taught.skipped, taught.interrupted) == (6, 0, False)


def test_interrupted_at_any_time_the_same_call_goes_on_to_the_same_journals(tmp_path):
    teaching(tmp_path / "whole", lessons(lanes=1)).go()
    whole = {name: canonical(each) for name, each in steps_in(tmp_path / "whole").items()}
    parts, asked = tmp_path / "parts", Asked()
    for stop_at in (3, 17, 31, 10_000):
        asked.going = teaching(parts, lessons(lanes=1), lambda *_: Watched(asked))
        asked.stop_at = stop_at
        assert asked.going.go().interrupted is (asked.count >= stop_at)
    assert {name: canonical(each) for name, each in steps_in(parts).items()} == whole


def test_it_ends_when_there_is_enough_and_counts_earlier_calls(tmp_path):
    first = teaching(tmp_path, lessons(until=8, lanes=1)).go()
    assert 8 <= first.judged < 30
    again = teaching(tmp_path, lessons(until=8, lanes=1)).go()
    assert (again.judged, again.new) == (first.judged, 0)
    more = teaching(tmp_path, lessons(steps=14)).go()
    assert more.judged == first.judged + more.new
    assert all(len(each.steps) == 14 for each in steps_in(tmp_path).values())


def test_journals_that_somebody_else_made_are_counted_and_gone_on_with(tmp_path):
    before = teaching(tmp_path, lessons(steps=6)).go()
    (tmp_path / PROGRESS).unlink()
    after = teaching(tmp_path, lessons(steps=6)).go()
    assert (after.judged, after.tasks) == (before.judged, 6)


def test_tasks_that_take_longer_to_begin_come_last_or_not_at_all(tmp_path):
    late = TASKS[0].name
    order = []

    def teacher(task, place):
        order.append(task.name)
        return AlgebraTeacher()

    ready = {"ready": lambda task: task.name != late}
    teaching(tmp_path / "a", lessons(lanes=1), teacher, **ready).go()
    assert order[-1] == late
    assert len(order) == 6
    taught = teaching(tmp_path / "b", lessons(slow_ones=False), teacher, **ready).go()
    assert taught.waiting == 1
    assert late not in steps_in(tmp_path / "b")


def test_a_task_that_cannot_be_judged_is_noted_once_and_stops_nothing(tmp_path):
    def broken():
        raise UsageError("no such task")

    tasks = [("broken", broken), *((task.name, lambda t=task: t) for task in TASKS[:2])]
    for _ in range(2):
        taught = Teaching(tasks, tmp_path, lessons(), lambda *_: AlgebraTeacher()).go()
        assert (taught.tasks, taught.skipped) == (2, 1)
    assert (tmp_path / PROGRESS).read_text().count("no such task") == 1


def test_what_breaks_is_heard_of(tmp_path):
    def breaks():
        raise RuntimeError("ours")

    with pytest.raises(RuntimeError, match="ours"):
        Teaching([("a", breaks)], tmp_path, lessons(), lambda *_: AlgebraTeacher()).go()


def test_nonsense_is_refused():
    with pytest.raises(UsageError, match="at least one lane"):
        lessons(lanes=0)


class Silent(AlgebraTeacher):
    async def propose(self, brief):
        return Proposal(source=None, rejection="knows nothing of it", proposer="silent")


def test_a_task_of_which_nothing_is_judged_is_not_counted_as_taught(tmp_path):
    def teacher(task, place):
        return Silent() if task is TASKS[2] else AlgebraTeacher()

    taught = teaching(tmp_path, lessons(), teacher).go()
    assert (taught.tasks, taught.skipped) == (5, 1)
    noted = [json.loads(line) for line in (tmp_path / PROGRESS).read_text().splitlines()]
    [why] = [each["why"] for each in noted if each["task"] == TASKS[2].name]
    assert why == "nothing of it was judged: knows nothing of it"
