"""What the trusted process on a device is asked, and what is remembered."""

import pytest

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.values import InputSet

TASK = Task(name="add", source="x + y", entry="expression")
CHOSEN = InputSet(id=7, tree=[], keywords=False, leaves=(), paths=())


class Answering:
    """A child that says of every second question of that kind that runs differ."""

    alive = True

    def __init__(self) -> None:
        self.repeats = 0

    def call(self, message, *, timeout_s, fds=()):
        if message["do"] == "examine":
            return {"error": "torch.OutOfMemoryError: CUDA out of memory"}
        if message["do"] == "repeat":
            self.repeats += 1
            return {"differs": self.repeats % 2 == 0}
        return {"missing": [], "workloads": [], "statistic": False, "torch": "2.11"}


def test_whether_a_workload_is_random_is_asked_once():
    child = Answering()
    oracle = DeviceOracle(child, TASK, threads=1)
    for name, differs in (("small", False), ("large", True), ("small", False), ("large", True)):
        oracle._at = name
        assert oracle.is_random(CHOSEN) is differs
    assert child.repeats == 2


def test_the_question_that_found_no_memory_is_known():
    oracle = DeviceOracle(Answering(), TASK, threads=1)
    with pytest.raises(UsageError, match="out of memory"):
        oracle.degenerate([CHOSEN])
    oracle.is_random(CHOSEN)  # others do not change that
    assert oracle.unanswered == "examine"
