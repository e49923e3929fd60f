"""Seconds of a judgement by what they went to."""

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
