"""The kernel's list of locks says who has a device; the locks are real."""

import fcntl
import threading

from benchmarks.gpu_watch import Spells, files, listed, seen

from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.rooms import Rooms


def looked(folder):
    return seen(listed(), files(folder))


def test_whoever_has_the_device_alone_is_seen_and_so_are_those_who_share_it(tmp_path):
    lock = DeviceLock("a device", tmp_path)
    with lock.exclusive():
        assert looked(tmp_path).alone is not None
    with lock.shared(), lock.shared():
        found = looked(tmp_path)
        assert (found.alone, found.sharing, found.waiting) == (None, 2, 0)
    assert looked(tmp_path).sharing == 0


def test_rooms_that_are_taken_are_counted(tmp_path):
    with Rooms("a device", tmp_path).taken(3):
        assert looked(tmp_path).rooms == 3
    assert looked(tmp_path).rooms == 0


def test_locks_that_come_and_go_beside_them_are_not_counted(tmp_path):
    done = threading.Event()

    def busy():
        while not done.is_set():
            with (tmp_path / "another").open("w") as file:
                fcntl.flock(file, fcntl.LOCK_EX)

    other = threading.Thread(target=busy)
    other.start()
    lock = DeviceLock("a device", tmp_path)
    try:
        with Rooms("a device", tmp_path).taken(3), lock.shared(), lock.shared():
            found = {(look.rooms, look.sharing) for look in (looked(tmp_path) for _ in range(2000))}
    finally:
        done.set()
        other.join()
    assert found == {(3, 2)}


def test_more_locks_than_one_page_names_are_read_to_the_end(tmp_path):
    names = [tmp_path / f"lock{number}" for number in range(200)]
    held = [name.open("w") for name in names]
    try:
        for file in held:
            fcntl.flock(file, fcntl.LOCK_EX)
        # Several looks: a lock that others give up between two pages moves a line out of sight.
        looks = "".join(listed() for _ in range(20))
        assert all(f":{name.stat().st_ino} " in looks for name in names)
    finally:
        for file in held:
            file.close()


def test_those_who_wait_are_told_from_those_who_have_it():
    listed = (
        "1: FLOCK  ADVISORY  WRITE 17 fe:00:5 0 EOF\n1: -> FLOCK  ADVISORY  READ 18 fe:00:5 0 EOF"
    )
    found = seen(listed + "\n2: POSIX  ADVISORY  WRITE 19 fe:00:5 0 EOF", {5: "lock"})
    assert (found.alone, found.sharing, found.waiting) == (17, 0, 1)


def test_a_spell_lasts_until_it_is_something_else():
    spells = Spells()
    for now, kind in enumerate(["alone", "alone", "shared", "alone"]):
        spells.note(kind, float(now))
    assert spells.of == {"alone": [2.0], "shared": [1.0]}
