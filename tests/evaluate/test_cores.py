"""Cores in groups: siblings together, nobody in two groups, and no group waits for another."""

import os
import threading

import pytest

from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cores import groups
from kernelsmith.evaluate.exclusive import CoreLock


def machine(folder, siblings):
    """What the system says of a machine whose cores have these threads."""
    for threads in siblings:
        for core in threads:
            place = folder / f"cpu{core}" / "topology"
            place.mkdir(parents=True)
            (place / "thread_siblings_list").write_text(",".join(map(str, threads)) + "\n")
    return folder


def test_threads_of_one_core_stay_together(tmp_path):
    system = machine(tmp_path, [(0, 4), (1, 5), (2, 6), (3, 7)])
    assert groups(2, cores=range(8), system=system) == [(0, 4), (1, 5), (2, 6), (3, 7)]
    assert groups(4, cores=range(8), system=system) == [(0, 1, 4, 5), (2, 3, 6, 7)]


def test_a_range_of_siblings_is_read_too(tmp_path):
    system = machine(tmp_path, [(0, 1), (2, 3)])
    (system / "cpu2" / "topology" / "thread_siblings_list").write_text("2-3\n")
    assert groups(2, cores=range(4), system=system) == [(0, 1), (2, 3)]


def test_what_is_left_over_is_nobodys(tmp_path):
    assert groups(3, cores=[1, 2, 5, 6, 9, 11, 12], system=tmp_path) == [(1, 2, 5), (6, 9, 11)]


def test_only_cores_that_this_process_may_use_are_shared_out():
    own = os.sched_getaffinity(0)
    assert set().union(*groups(1)) == own
    assert len(groups(1)) == len(own)


@pytest.mark.parametrize("size", [0, 9])
def test_a_group_that_cannot_be_is_refused(size, tmp_path):
    with pytest.raises(UsageError, match="1 to 8 cores"):
        groups(size, cores=range(8), system=tmp_path)


def enters(context, *, soon=True):
    """Whether somebody else could enter it; one who should not gets only a moment."""
    entered, leave = threading.Event(), threading.Event()

    def enter():
        with context:
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=enter)
    thread.start()
    found = entered.wait(20 if soon else 0.3)
    leave.set()
    return found, thread


@pytest.mark.parametrize(
    ("first", "second", "at_once"),
    [((0, 1), (2, 3), True), ((0, 1), (1, 2), False), ((0, 1, 2, 3), (2,), False)],
)
def test_judges_that_share_a_core_time_one_after_the_other(first, second, at_once, tmp_path):
    held, asked = CoreLock(first, tmp_path), CoreLock(second, tmp_path)
    with held.exclusive():
        found, thread = enters(asked.exclusive(), soon=at_once)
        assert found is at_once
        checked, other = enters(asked.shared(), soon=at_once)
        assert checked is at_once
    thread.join(20)
    other.join(20)
    assert not thread.is_alive()
    assert not other.is_alive()


def test_checks_share_cores_with_checks_and_not_with_timing(tmp_path):
    one, two = CoreLock((0, 1), tmp_path), CoreLock((1, 2), tmp_path)
    with one.shared():
        found, thread = enters(two.shared())
        assert found
        timed, other = enters(two.exclusive(), soon=False)
        assert not timed
    thread.join(20)
    other.join(20)
    assert not other.is_alive()


def test_many_with_overlapping_cores_all_get_their_turn(tmp_path):
    sets = [(0, 1), (1, 2), (2, 0), (0, 1, 2), (2, 1)]
    inside, most, turns = [], [], []

    def time_often(cores):
        for _ in range(20):
            with CoreLock(cores, tmp_path).exclusive():
                inside.append(cores)
                most.append(len(inside))
                inside.remove(cores)
        turns.append(cores)

    threads = [threading.Thread(target=time_often, args=(each,), daemon=True) for each in sets]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    assert len(turns) == len(sets)  # nobody waits for ever
    assert max(most) == 1  # any two of them share a core
