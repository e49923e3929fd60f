"""Who may use a device at the same time; the lock is real, the device is not needed."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.oracle import DeviceOracle, Predicted
from kernelsmith.evaluate.cuda.peak import Footprint
from kernelsmith.evaluate.exclusive import DeviceLock

GIGA = 1 << 30
TASK = Task(
    name="doubled", source="", workloads=(Workload(name="only"), Workload(name="other")),
)  # fmt: skip


class Sized(DeviceOracle):
    """An oracle whose forward takes so many bytes; it has no process to ask."""

    def __init__(self, *inputs: int | None) -> None:
        self._task = TASK
        self._is_small = None
        self._predicted = {}
        self.room, self.asked = GIGA, 0
        self._sizes = inputs

    def _predict(self, workload: Workload) -> Predicted:
        size = self._sizes[self.asked % len(self._sizes)]
        self.asked += 1
        footprint = None
        if size is not None:
            footprint = Footprint(inputs=size, weights=0, outputs=0, activations=0)
        return Predicted(footprint=footprint, free=100 * GIGA, total=140 * GIGA)


@pytest.fixture
def a_judge(tmp_path):
    def made() -> CudaBackend:
        backend = CudaBackend()
        backend.__dict__["_lock"] = DeviceLock("a device", Path(tmp_path))
        return backend

    return made


def holds(context) -> bool:
    """Whether somebody else could enter it within a moment."""
    entered = threading.Event()
    leave = threading.Event()

    def enter() -> None:
        with context:
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=enter)
    thread.start()
    found = entered.wait(0.5)
    leave.set()
    return found


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        ((GIGA,), (GIGA,), True),
        ((GIGA,), (40 * GIGA,), False),
        ((40 * GIGA,), (GIGA,), False),
        ((GIGA, 40 * GIGA), (GIGA,), False),
        ((GIGA,), (None,), False),
    ],
)
def test_small_tasks_are_checked_side_by_side_and_large_ones_alone(
    a_judge, first, second, together
):
    with ExitStack() as stack:
        stack.enter_context(a_judge().checking(Sized(*first)))
        assert holds(a_judge().checking(Sized(*second))) is together


def test_whoever_times_has_the_device_alone(a_judge):
    with a_judge().checking(Sized(GIGA)):
        assert not holds(a_judge().exclusive())
    with a_judge().exclusive():
        assert not holds(a_judge().checking(Sized(GIGA)))


def test_how_large_a_task_is_is_found_once(a_judge):
    oracle, judge = Sized(GIGA), a_judge()
    for _ in range(3):
        with judge.checking(oracle):
            pass
    assert oracle.asked == len(TASK.workloads)
