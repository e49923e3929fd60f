"""Tasks that are judged side by side fit a device's memory together."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from benchmarks.rules import beside_others
from benchmarks.rules_packing import ALONE, LARGE, OF_LARGE, Packing
from benchmarks.rules_rooms import rooms_of
from benchmarks.rules_tasks import Chosen

from kernelsmith.evaluate.rooms import ROOMS

TASK = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.rand({rows}, 1 << 20)]


def get_init_inputs():
    return []
"""


def tasks(*keys):
    return [Chosen(key=key, path=Path(f"{key}.py")) for key in keys]


def begun(packing, given):
    """All that begin before one of them is done."""
    order, found = packing.in_order(given), []
    came = threading.Thread(target=lambda: found.extend(order), daemon=True)
    came.start()
    came.join(0.2)
    return [each.key for each in found]


def test_what_does_not_fit_waits_and_smaller_ones_go_before_it():
    rooms = {"a": 3 * LARGE, "b": 2 * LARGE, "c": LARGE - 1, "d": LARGE - 1}
    packing = Packing(rooms, most_large=9, of=5 * LARGE)
    assert begun(packing, tasks("d", "c", "b", "a")) == ["a", "d", "c"]


def test_large_ones_do_not_fill_the_device_together():
    most = OF_LARGE - LARGE
    rooms = {"a": most, "b": most - 1, "c": LARGE, "d": 1}
    packing = Packing(rooms, most_large=3)
    assert begun(packing, tasks("d", "c", "b", "a")) == ["a", "c", "d"]


def test_few_large_ones_are_under_way_and_small_ones_beside_them():
    rooms = {"a": LARGE, "b": LARGE, "c": LARGE, "d": LARGE - 1}
    packing = Packing(rooms, most_large=2, of=100)
    assert begun(packing, tasks("a", "b", "c", "d")) == ["a", "b", "d"]


def test_what_is_done_makes_room_for_who_waits():
    packing = Packing({"a": 8, "b": 7}, most_large=2, of=10)
    order = packing.in_order(tasks("a", "b"))
    assert next(order).key == "a"
    threading.Timer(0.1, packing.done, ["a"]).start()
    assert next(order).key == "b"


def test_what_needs_more_than_all_begins_when_nobody_else_is_there():
    packing = Packing({"a": 99, "b": 1}, most_large=2, of=LARGE)
    assert begun(packing, tasks("b", "a")) == ["a"]
    packing.done("a")
    assert next(packing.in_order(tasks("b"))).key == "b"


def test_what_nobody_can_be_beside_is_named_and_left_out(capsys):
    packing = Packing({"a": ALONE, "b": 10, "c": 9}, most_large=2, of=10)
    assert [each.key for each in beside_others(tasks("a", "b", "c"), packing)] == ["b", "c"]
    said = capsys.readouterr()
    assert "a: needs the device alone; --judges 1 has it" in said.out + said.err


def test_what_found_no_memory_is_begun_once_more_behind_the_rest():
    packing = Packing({"a": 1, "b": 1}, most_large=2, of=10)
    first, second = tasks("a", "b")
    order = packing.in_order([first, second])
    assert next(order) is first
    packing.again(first)
    packing.done("a")
    assert [each.key for each in (next(order), next(order))] == ["b", "a"]
    packing.done("a")
    packing.done("b")
    assert next(order, None) is None


def test_the_last_one_waits_for_who_may_still_come_back():
    packing = Packing({"a": 1}, most_large=2, of=10)
    (only,) = tasks("a")
    order = packing.in_order([only])
    assert next(order) is only

    def come_back():
        packing.again(only)
        packing.done("a")

    threading.Timer(0.1, come_back).start()
    assert next(order) is only


def test_nobody_waits_for_what_was_handed_out_and_never_begun():
    packing = Packing({"a": 8, "b": 8}, most_large=2, until=time.monotonic() + 0.2, of=10)
    assert [each.key for each in packing.in_order(tasks("a", "b"))] == ["a"]


@pytest.mark.parametrize("judges", [1, 4])
def test_rooms_are_never_given_twice_whoever_judges(judges):
    rooms = {f"t{number}": number % 7 + 1 for number in range(60)}
    packing = Packing(rooms, most_large=3, of=10)
    turn, counting = threading.Lock(), threading.Lock()
    order, used, most, seen = packing.in_order(tasks(*rooms)), 0, 0, []

    def judge():
        nonlocal used, most
        while True:
            with turn:
                chosen = next(order, None)
            if chosen is None:
                return
            with counting:
                used += rooms[chosen.key]
                most = max(most, used)
                seen.append(chosen.key)
            time.sleep(0.002)
            with counting:
                used -= rooms[chosen.key]
            packing.done(chosen.key)

    with ThreadPoolExecutor(judges) as pool:
        for each in [pool.submit(judge) for _ in range(judges)]:
            each.result(timeout=30)
    assert sorted(seen) == sorted(rooms)
    assert most <= 10


@pytest.mark.parametrize(
    ("rows", "fewest", "most"), [(8, 1, 4), (1600, 16, 36), (16000, ROOMS, ROOMS)]
)
def test_a_task_takes_as_many_rooms_as_it_is_large(tmp_path, rows, fewest, most):
    path = tmp_path / "task.py"
    path.write_text(TASK.format(rows=rows))
    assert fewest <= rooms_of(Chosen(key="task", path=path), 150_000_000_000) <= most
