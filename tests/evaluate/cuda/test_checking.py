"""Who may use a device at the same time; the lock is real, the device is not needed."""

import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.oracle import TRYING, DeviceOracle
from kernelsmith.evaluate.cuda.peak import Footprint
from kernelsmith.evaluate.cuda.sizing import Predicted
from kernelsmith.evaluate.cuda.turns import Turns
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.rooms import LARGEST, PART, ROOMS, Rooms
from kernelsmith.evaluate.spent import Spent
from kernelsmith.testing import QUICK

GIGA = 1 << 30
TASK = Task(
    name="doubled", source="", workloads=(Workload(name="only"), Workload(name="other")),
)  # fmt: skip


class Sized(DeviceOracle):
    """An oracle whose forward takes so many bytes; it has no process to ask."""

    def __init__(self, *inputs: int | None) -> None:
        self._task = TASK
        self._rooms, self._fitting, self._program = None, set(), 0.0
        self.room, self.asked, self.limits = GIGA, 0, []
        self.way, self.rested = None, 0
        self._sizes = inputs

    is_open = True

    def _ask(self, message, fds=()):
        if message["do"] == "limit":
            self.limits.append(message["share"])
        else:
            assert message == {"do": "rest"}
            self.rested += 1
        return {}

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
        backend.__dict__["_rooms"] = Rooms("a device", Path(tmp_path))
        return backend

    return made


@contextmanager
def checking(judge, oracle):
    """As in a judgement."""
    with judge.staying(oracle), judge.checking(oracle):
        yield


def pass_through(context):
    with context:
        pass


def known(oracle):
    """Of a size that need not be found: for that, rooms are taken, too."""
    oracle.rooms()
    return oracle


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
        ((GIGA,), (12 * GIGA,), True),
        ((20 * GIGA,), (20 * GIGA,), False),
        ((GIGA,), (40 * GIGA,), False),
        ((40 * GIGA,), (GIGA,), False),
        ((GIGA, 40 * GIGA), (GIGA,), False),
        ((GIGA,), (None,), False),
    ],
)
def test_tasks_are_checked_side_by_side_while_there_is_room_for_all_and_large_ones_alone(
    a_judge, first, second, together
):
    with checking(a_judge(), Sized(*first)):
        assert holds(checking(a_judge(), Sized(*second))) is together


def test_whoever_times_has_the_device_alone(a_judge):
    with checking(a_judge(), Sized(GIGA)):
        assert not holds(a_judge().exclusive())
    with a_judge().exclusive():
        assert not holds(checking(a_judge(), Sized(GIGA)))


def test_whoever_waits_for_the_clock_keeps_its_rooms(a_judge):
    waiting = a_judge()
    with waiting.staying(Sized(20 * GIGA)), waiting.exclusive():
        assert holds(a_judge().staying(known(Sized(GIGA))))
        assert not holds(a_judge().staying(known(Sized(20 * GIGA))))


def test_whoever_checks_knows_who_waits_to_time(a_judge):
    oracle, judge = Sized(GIGA), a_judge()
    with checking(judge, oracle):
        assert not oracle.way.is_wanted
        timing = threading.Thread(target=pass_through, args=(a_judge().exclusive(),))
        timing.start()
        until = time.monotonic() + 5
        while not oracle.way.is_wanted and time.monotonic() < until:
            time.sleep(0.01)
        oracle.make_way()  # the other one had it, or this would not come back
        assert not oracle.way.is_wanted
        timing.join(5)
        assert not timing.is_alive()
    assert oracle.way is None


def test_alone_means_in_all_rooms(a_judge):
    with a_judge().staying(Sized(GIGA), alone=True) as beside:
        assert not beside
        assert not holds(a_judge().staying(known(Sized(GIGA))))


def test_whoever_checks_beside_others_keeps_to_its_rooms_until_it_is_done(a_judge):
    oracle, judge = Sized(4 * GIGA), a_judge()
    with judge.staying(oracle) as beside:
        assert beside
        with judge.checking(oracle):
            both = oracle.for_programs + oracle.limits[-1]
            assert 0 < both < oracle.rooms() * PART + 1 / 8
        assert oracle.limits[-1] == 1.0
        assert oracle.for_programs is None
        with judge.opening(oracle):
            assert len(oracle.limits) == 2  # what is timed later is not held down
    assert oracle.rested == 1  # it holds nothing while others judge
    large = Sized(40 * GIGA)
    with judge.staying(large) as beside, judge.checking(large):
        assert not beside
        assert large.limits == []


def test_smaller_batches_take_fewer_rooms(a_judge):
    counts = []
    for size in (2 * GIGA, GIGA // 2):
        oracle = Sized(GIGA // 4)
        with a_judge().staying(oracle, batch_bytes=size):
            counts.append(oracle.rooms())
    assert counts == [5, 3]


def test_who_found_no_memory_has_twice_the_rooms_then_four_times_and_then_the_device_alone(a_judge):
    oracle, judge = known(Sized(2 * GIGA)), a_judge()
    before = oracle.rooms()
    for times in (2, 4):
        assert oracle.widen()
        assert oracle.rooms() == times * before
        with judge.staying(oracle) as beside:
            assert beside
    assert not oracle.widen()
    assert oracle.rooms() == 4 * before
    with judge.staying(oracle) as beside:
        assert not beside
    large = known(Sized(20 * GIGA))  # there are no twice as many
    before = large.rooms()
    assert not large.widen()
    assert large.rooms() == before > 0
    with judge.staying(large) as beside:
        assert not beside


@pytest.mark.parametrize("size", [4 * GIGA, 20 * GIGA])
def test_where_nobody_may_be_alone_who_found_no_memory_has_the_most_rooms_there_are(a_judge, size):
    oracle, judge = known(Sized(size)), a_judge()
    judge.only_beside = True
    while oracle.widen():
        pass
    for alone in (True, False):  # the next candidate, too
        with judge.staying(oracle, alone=alone) as beside:
            assert beside
            assert oracle.rooms() == LARGEST
            assert not holds(a_judge()._rooms.taken(1))


def test_in_the_most_rooms_a_program_may_have_all_there_is_and_no_more(a_judge):
    oracle, judge = known(Sized(20 * GIGA)), a_judge()
    judge.only_beside = True
    assert not oracle.widen()
    for _ in range(2):
        with judge.staying(oracle), judge.checking(oracle):
            assert oracle.for_programs == 1.0
            assert oracle.limits[-1] <= 1.0
    oracle.narrow()  # a candidate was to blame
    with judge.staying(oracle), judge.checking(oracle):
        assert oracle.for_programs < 1.0
        assert oracle.rooms() < LARGEST


def test_a_program_has_twice_the_memory_in_twice_the_rooms(a_judge):
    oracle, judge = known(Sized(4 * GIGA)), a_judge()
    with checking(judge, oracle):
        before = oracle.for_programs
    assert oracle.widen()
    with checking(judge, oracle):
        assert oracle.for_programs == pytest.approx(2 * before)
        both = oracle.for_programs + oracle.limits[-1]
        assert both < oracle.rooms() * PART + 2 / 8


def test_both_sides_that_are_timed_beside_others_leave_them_memory(a_judge):
    oracle, judge = known(Sized(4 * GIGA)), a_judge()
    with judge.staying(oracle):
        with Turns(judge, oracle, Spent()) as turns:
            share = oracle.for_programs
            assert 1 / 4 < share < 1 / 3  # as much as the forward had that said what it takes
            turns.beside()
            assert oracle.for_programs == share
        assert oracle.for_programs is None
    large = known(Sized(20 * GIGA))
    with judge.staying(large), Turns(judge, large, Spent()):
        assert share < large.for_programs < 1
    with judge.staying(oracle, alone=True), Turns(judge, oracle, Spent()):
        assert oracle.for_programs is None  # there is nobody to leave anything to


def test_a_forward_of_unknown_size_has_the_rooms_that_it_may_fill(a_judge):
    with a_judge()._rooms.taken(ROOMS - TRYING):
        assert holds(a_judge().staying(Sized(GIGA)))
    with a_judge()._rooms.taken(ROOMS - TRYING + 1):
        assert not holds(a_judge().staying(Sized(GIGA)))


def test_beside_many_judges_a_task_that_needs_the_device_alone_can_be_refused(a_judge):
    judge = a_judge()
    judge.only_beside = True
    with judge.staying(known(Sized(GIGA))) as beside:
        assert beside
    with pytest.raises(UsageError, match="alone") as refused, judge.staying(Sized(60 * GIGA)):
        pass
    assert lacks_memory(str(refused.value))  # so that it is tried again without others


class Short:
    """A reference's process on a device that has no more memory than for its first forward."""

    alive, way = True, None

    def __init__(self) -> None:
        self.found_none = 0

    def call(self, message, *, timeout_s, fds=()):
        if message["do"] == "predict":
            size = {"inputs": GIGA, "weights": 0, "outputs": 0, "activations": 0}
            return {"footprint": size, "free": 100 * GIGA, "total": 140 * GIGA}
        if message["do"] == "workload":
            self.found_none += 1
            return {"misplaced": "cuIpcOpenMemHandle_v2: CUDA error 2"}
        known = {"missing": [], "workloads": [], "statistic": False, "torch": "2.11"}
        return known if message["do"] == "open" else {}


def test_a_candidate_that_finds_no_memory_where_nobody_may_be_alone_leaves_the_task_to_the_next(
    a_judge, monkeypatch
):
    backend, child = a_judge(), Short()
    backend.only_beside = True
    monkeypatch.setattr(backend, "device", lambda: Device(kind="cuda", name="a device"))
    task = Task(name="doubled", source="def Model(x): return x", entry="Model")
    judge = Judge(backend, task, QUICK, oracle=DeviceOracle(child, task, threads=1))
    source = "import triton\n\n\nclass ModelNew:\n    pass\n"
    for number in (1, 2):
        found = judge.judge(Candidate(backend="triton", source=f"{source}# {number}\n"))
        assert found.verdict is Verdict.WRONG
        assert "CUDA error 2" in found.message
        assert child.found_none == 2 + 2 * number  # the first one in fewer rooms, too


def test_how_large_a_task_is_is_found_once(a_judge):
    oracle, judge = Sized(GIGA), a_judge()
    for _ in range(3):
        with checking(judge, oracle):
            pass
    assert oracle.asked == len(TASK.workloads)


class Loading(DeviceOracle):
    """A reference whose process takes long over its first forward: somebody wants to time."""

    is_open = False

    def __init__(self, child, another) -> None:
        self._task, self._child, self._rooms = TASK, child, None
        self._fitting, self._program, self.way = set(), 0.0, None
        self._another, self.timed = another, 0

    def _ask(self, message, fds=()):
        assert message["do"] == "predict"
        way = self._child.way
        timing = threading.Thread(target=pass_through, args=(self._another.exclusive(),))
        timing.start()
        until = time.monotonic() + 5
        while not way.is_wanted and time.monotonic() < until:
            time.sleep(0.01)
        way.step_aside()  # as Child does, with its process frozen
        timing.join(5)
        self.timed += not timing.is_alive()
        size = {"inputs": 1 << 20, "weights": 0, "outputs": 1 << 20, "activations": 0}
        return {"footprint": size, "free": 100 * GIGA, "total": 140 * GIGA}


def test_nobody_who_times_waits_for_a_reference_to_load_its_libraries(a_judge):
    child = SimpleNamespace(way=None)
    oracle = Loading(child, a_judge())
    with a_judge().staying(oracle) as beside:
        assert beside
    assert oracle.timed == len(TASK.workloads)
    assert child.way is None
    assert oracle.way is None


def test_a_reference_that_opens_stands_still_for_who_times(a_judge, monkeypatch):
    judge, seen = a_judge(), []
    child = SimpleNamespace(way=None, kill=lambda: seen.append("killed"))
    monkeypatch.setattr(judge, "_refuse_sharing", lambda: None)
    monkeypatch.setattr(judge, "_spawn", lambda *_, **__: child)
    judge._rehearses, judge._zygote = False, SimpleNamespace(alive=True)

    def opened(made, task, threads):
        seen.append(made.way is not None)
        if len(seen) > 1:
            raise RuntimeError("it does not open")
        return SimpleNamespace()

    monkeypatch.setattr("kernelsmith.evaluate.cuda.backend.DeviceOracle", opened)
    judge.oracle(TASK)
    assert child.way is None  # later it has the way that it is asked by
    with pytest.raises(RuntimeError):
        judge.oracle(TASK)
    assert seen == [True, True, "killed"]
