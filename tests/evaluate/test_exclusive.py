"""Who shares a device, and steps aside for those who want it alone."""

import threading
import time

import pytest
from benchmarks.gpu_watch import listed

from kernelsmith.evaluate.exclusive import DeviceLock


@pytest.fixture
def lock(tmp_path):
    return DeviceLock("a device", tmp_path)


def alone(lock, entered, leave):
    def hold() -> None:
        with lock.exclusive():
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    return thread


def soon(condition) -> bool:
    until = time.monotonic() + 5
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    return condition()


def waiting(folder) -> int:
    """How many wait for a lock whose file lies there, by the kernel's own list."""
    files = {f":{path.stat().st_ino}" for path in folder.iterdir()}
    lines = listed().splitlines()  # one state: read in parts, it repeats lines
    return sum("->" in line and any(f"{each} " in line for each in files) for line in lines)


def test_a_share_is_wanted_while_somebody_waits_to_be_alone(lock):
    entered, leave = threading.Event(), threading.Event()
    with lock.shared() as share:
        assert not share.is_wanted
        with lock.shared() as other:
            assert not share.is_wanted
            assert not other.is_wanted
        thread = alone(lock, entered, leave)
        assert soon(lambda: share.is_wanted)
        assert not entered.wait(0.1)
    assert entered.wait(5)
    leave.set()
    thread.join()


def test_who_steps_aside_comes_back_after_all_who_waited(lock, tmp_path):
    order = []

    def time_it(name) -> None:
        with lock.exclusive():
            order.append(name)
            time.sleep(0.1)

    with lock.shared() as share:
        threads = [threading.Thread(target=time_it, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        assert soon(lambda: waiting(tmp_path) == 2)
        assert share.is_wanted
        share.step_aside()
        order.append("back")
        with lock.shared():
            assert not share.is_wanted
    for thread in threads:
        thread.join()
    assert sorted(order[:2]) == ["a", "b"]
    assert order[2] == "back"


def test_who_has_it_alone_is_waited_for(lock):
    entered, leave = threading.Event(), threading.Event()
    thread = alone(lock, entered, leave)
    assert entered.wait(5)
    shared = threading.Event()

    def share() -> None:
        with lock.shared():
            shared.set()

    other = threading.Thread(target=share)
    other.start()
    assert not shared.wait(0.2)
    leave.set()
    assert shared.wait(5)
    thread.join()
    other.join()
