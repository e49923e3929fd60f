"""Both sides of a pair are opened beside others, and timed alone; the locks are real."""

import threading
import time
from pathlib import Path

import pytest

from kernelsmith.evaluate.cuda import turns as module
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.cuda.turns import Turns
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.spent import Spent


class Idle(DeviceOracle):
    """A reference's process on a device that is busy for so many probes."""

    def __init__(self, busy: int = 0) -> None:
        self.probes, self._busy, self._rooms = 0, busy, 1

    def idle_us(self) -> float:
        self.probes += 1
        return 3000.0 if self.probes <= self._busy else 30.0


@pytest.fixture
def backend(tmp_path):
    made = CudaBackend()
    made.__dict__["_lock"] = DeviceLock("a device", Path(tmp_path))
    made._beside = True
    return made


def could(context) -> bool:
    """Whether somebody else could enter it now."""
    entered, leave = threading.Event(), threading.Event()

    def enter() -> None:
        with context:
            entered.set()
            leave.wait(20)

    threading.Thread(target=enter).start()
    found = entered.wait(0.3)
    leave.set()
    return found


def test_sides_are_opened_beside_others_and_timed_alone(backend):
    with Turns(backend, Idle(), Spent()) as turns:
        assert could(backend._lock.shared())
        turns.alone()
        assert not could(backend._lock.shared())
        turns.beside()
        assert could(backend._lock.shared())
        turns.alone()
        assert not could(backend._lock.shared())
    assert could(backend._lock.exclusive())


def test_where_there_is_no_room_for_others_it_is_alone_all_the_time(backend):
    backend._beside = False
    with Turns(backend, Idle(), Spent()) as turns:
        assert not turns.leaves_room
        for step in (turns.alone, turns.beside):
            assert not could(backend._lock.shared())
            step()
        assert not could(backend._lock.shared())


def test_what_others_had_launched_is_waited_for(backend):
    oracle = Idle(busy=9)
    with Turns(backend, oracle, Spent()) as turns:
        turns.alone()
    assert oracle.probes == 9 + 4


def test_a_device_that_is_never_idle_is_had_after_a_while_and_others_have_it_in_between(
    backend, monkeypatch
):
    monkeypatch.setattr(module, "_PATIENCE_S", 1.0)
    others = []

    def another() -> None:
        for _ in range(3):
            with backend._lock.shared():
                others.append(time.monotonic())
            time.sleep(0.1)

    with Turns(backend, Idle(busy=1_000_000_000), Spent()) as turns:
        thread = threading.Thread(target=another)
        thread.start()
        assert turns.alone() > 1.0
        assert others  # in a pause
        turns.beside()
        assert turns.alone() < 3.0  # a stranger's work is waited for once
        assert not could(backend._lock.shared())  # who left something is judged now
    thread.join()
    assert could(backend._lock.exclusive())


def test_the_time_of_those_it_steps_aside_for_is_not_its_own(backend):
    oracle, spent = Idle(), Spent()

    def another() -> None:
        with backend._lock.exclusive():
            time.sleep(0.5)

    with Turns(backend, oracle, spent):
        thread = threading.Thread(target=another)
        with spent.on("candidate"):
            thread.start()
            while not oracle.way.is_wanted:
                time.sleep(0.01)
            oracle.way.step_aside()
            oracle.way.leave()
            oracle.way.come_back()
    thread.join()
    seconds = dict(spent.items())
    assert seconds["waiting"] >= 0.4
    assert seconds["candidate"] < 0.3
    assert oracle.way is None
