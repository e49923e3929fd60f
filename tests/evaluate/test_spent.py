"""Seconds of a judgement by what they went to."""

import time

import pytest

from kernelsmith.evaluate.spent import Spent


def test_what_is_done_twice_is_added_up_also_where_it_fails():
    spent = Spent()
    with spent.on("waiting"):
        pass
    with spent.on("samples"):
        pass
    before = spent.total_s(without="waiting")
    with pytest.raises(ZeroDivisionError), spent.on("samples"):
        sum(1 / n for n in range(2000, -1, -1))
    assert spent.total_s(without="waiting") > before
    assert [each.split()[0] for each in str(spent).split(", ")] == ["waiting", "samples"]


def test_waiting_is_nobody_s_time():
    spent = Spent()
    with spent.on("waiting"):
        pass
    assert spent.total_s(without="waiting") == 0.0
    assert spent.total_s(without="samples") > 0.0


def test_waiting_in_the_middle_of_something_is_waiting():
    spent = Spent()
    with spent.on("candidate"):
        for _ in range(2):
            with spent.on("waiting"):
                time.sleep(0.1)
    with spent.on("samples"):
        time.sleep(0.05)
    seconds = dict(spent.items())
    assert seconds["waiting"] >= 0.2
    assert seconds["candidate"] < 0.05
    assert seconds["samples"] >= 0.05
