"""A process that has passed all checks may be the first that is timed, at a glance."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from stand_ins import TASK, Reference

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Weights
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.settings import effort

CANDIDATE = Candidate(backend="triton", source="# a source")


class Passed(DeviceLane):
    """A program that was checked; it notes what is done with it."""

    prepares = False

    def __init__(self):
        self.done = []

    def detach(self):
        self.done.append("detached")

    def weights(self, state, *, first, prepare=False):
        self.done.append(f"weights, first={first}")

    def close(self):
        self.done.append("closed")


@pytest.fixture
def a_judge(monkeypatch):
    def made(*, level="glance", alone=True, task=TASK):
        oracle = Reference()
        if alone:
            oracle.alone = {("default", "a source", True): 100.0}
        settings = effort(level, backend="triton")
        judge = Judge(SimpleNamespace(timed=True), task, settings, oracle=oracle)
        monkeypatch.setattr(judge, "_open", lambda candidate, setup: "a new one")
        return judge, oracle.workload(TASK.workloads[0], 1)

    return made


def test_it_is_timed_first_with_new_weights_and_the_next_pair_has_a_process_of_its_own(a_judge):
    judge, setup = a_judge()
    lane = Passed()
    assert judge._stays(lane)
    assert judge._open_to_time(CANDIDATE, setup) is lane
    assert lane.done == ["detached", "weights, first=False"]
    assert judge._open_to_time(CANDIDATE, setup) == "a new one"
    judge._end_checked()
    assert "closed" not in lane.done  # whoever times it closes it


def test_one_that_is_never_timed_is_closed(a_judge):
    judge, _ = a_judge()
    lane = Passed()
    assert judge._stays(lane)
    judge._end_checked()
    judge._end_checked()
    assert lane.done == ["detached", "closed"]


def test_one_that_does_not_take_new_weights_is_closed(a_judge):
    judge, setup = a_judge()
    lane = Passed()
    lane.weights = lambda *_, **__: 1 / 0
    assert judge._stays(lane)
    with pytest.raises(ZeroDivisionError):
        judge._open_to_time(CANDIDATE, setup)
    assert lane.done == ["detached", "closed"]


@pytest.mark.parametrize(
    "changes",
    [
        {"alone": False},  # the baseline is timed with no candidate there first
        {"level": "usual"},
        {"level": "thorough"},
        {"task": replace(TASK, weights=Weights.SEED)},
        {"task": replace(TASK, workloads=(*TASK.workloads, replace(TASK.workloads[0], name="b")))},
    ],
)
def test_elsewhere_what_is_timed_is_a_process_that_was_never_checked(a_judge, changes):
    judge, setup = a_judge(**changes)
    assert not judge._stays(Passed())
    assert judge._open_to_time(CANDIDATE, setup) == "a new one"
