"""The kernel's list of locks says who has a device; the locks are real."""

from pathlib import Path

from benchmarks.gpu_watch import Spells, files, seen

from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.rooms import Rooms


def looked(folder):
    return seen(Path("/proc/locks").read_text(), files(folder))


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
