"""Rooms are locked files; these tests hold them from threads and from a process that is killed."""

import subprocess
import sys
import threading
import time

import pytest

from kernelsmith.evaluate.rooms import LARGEST, PART, ROOMS, Rooms, kept_for, rooms_for

GIGA = 1 << 30


@pytest.fixture
def rooms(tmp_path):
    return Rooms("a device", tmp_path)


def begun(
    rooms: Rooms, count: int, entered: list[str], name: str, leave: threading.Event, *,
    patience_s: float = 0.0,
):  # fmt: skip
    def enter() -> None:
        with rooms.taken(count, patience_s=patience_s):
            entered.append(name)
            leave.wait(20)

    thread = threading.Thread(target=enter)
    thread.start()
    return thread


def until(condition) -> bool:
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_whoever_fits_enters_and_whoever_does_not_waits_for_those_who_leave(rooms):
    entered: list[str] = []
    first, second = threading.Event(), threading.Event()
    threads = [begun(rooms, ROOMS - 2, entered, "large", first)]
    assert until(lambda: entered == ["large"])
    threads.append(begun(rooms, 2, entered, "small", second))
    assert until(lambda: entered == ["large", "small"])
    threads.append(begun(rooms, 3, entered, "late", second))
    time.sleep(0.2)
    assert entered == ["large", "small"]
    first.set()
    assert until(lambda: entered == ["large", "small", "late"])
    second.set()
    for thread in threads:
        thread.join()


def test_a_large_one_lets_small_ones_pass_while_it_is_patient(rooms):
    entered: list[str] = []
    leave, done = threading.Event(), threading.Event()
    threads = [begun(rooms, 2, entered, "first", leave)]
    assert until(lambda: entered == ["first"])
    threads.append(begun(rooms, ROOMS, entered, "large", done, patience_s=20.0))
    time.sleep(0.2)
    threads.append(begun(rooms, 1, entered, "small", leave))
    assert until(lambda: entered == ["first", "small"])
    leave.set()
    assert until(lambda: entered == ["first", "small", "large"])
    done.set()
    for thread in threads:
        thread.join()


def test_a_large_one_that_is_out_of_patience_is_not_passed_by_small_ones(rooms):
    entered: list[str] = []
    leave, done = threading.Event(), threading.Event()
    threads = [begun(rooms, 2, entered, "first", leave)]
    assert until(lambda: entered == ["first"])
    threads.append(begun(rooms, ROOMS, entered, "large", done))
    time.sleep(0.2)
    threads.append(begun(rooms, 1, entered, "small", done))
    time.sleep(0.2)
    assert entered == ["first"]
    leave.set()
    assert until(lambda: "large" in entered)
    assert entered == ["first", "large"]
    done.set()
    assert until(lambda: entered[-1] == "small")
    for thread in threads:
        thread.join()


def test_a_killed_process_leaves_its_rooms(rooms, tmp_path):
    said = (
        "import sys, time\nfrom pathlib import Path\nfrom kernelsmith.evaluate.rooms import Rooms\n"
        f"with Rooms('a device', Path({str(tmp_path)!r})).taken({ROOMS}):\n"
        "    print('in', flush=True)\n    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", said], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in\n"
    process.kill()
    process.wait()
    with rooms.taken(ROOMS):
        pass


@pytest.mark.parametrize("count", [0, ROOMS + 1])
def test_nobody_gets_none_or_more_than_there_are(rooms, count):
    with pytest.raises(ValueError, match="were asked for"), rooms.taken(count):
        pass


@pytest.mark.parametrize(
    ("needed", "count"), [(0, 1), (GIGA, 1), (11 * GIGA, 6), (110 * GIGA, 51), (165 * GIGA, None)]
)
def test_rooms_are_counted_in_bytes(needed, count):
    assert rooms_for(needed, 140 * GIGA) == count


def test_large_ones_together_have_no_more_than_the_device():
    assert [kept_for(count) for count in (1, 5, 8)] == [1, 5, 8]
    for count in range(13, 65):
        assert ROOMS // kept_for(count) * count * PART <= 1
    assert kept_for(LARGEST) == kept_for(ROOMS) == ROOMS
