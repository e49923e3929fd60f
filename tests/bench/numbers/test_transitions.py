"""Rescued, kept, broken, stuck: counted along lineages and from round to round."""

import math

import pytest
from bench_records import a_point, a_record, ratio

from kernelsmith.bench.numbers.transitions import flows, rounds
from kernelsmith.domain.evaluation import Verdict


def wrong(step, parent=None):
    return a_point(step, verdict=Verdict.WRONG, outcome="failed", speedup=None, parent=parent)


def right(step, value, parent=None, **changes):
    return a_point(step, speedup=ratio(value), parent=parent, **changes)


def test_every_candidate_is_one_of_five_kinds():
    rejected = a_point(5, verdict=None, outcome="rejected", speedup=None)
    points = (wrong(0), right(1, 2.0, parent=0), right(2, 3.0, parent=1), wrong(3, parent=1),
              wrong(4, parent=3), rejected)  # fmt: skip
    found = {flow.kind: flow for flow in flows([a_record(points=points)])}
    assert {kind: flow.count for kind, flow in found.items()} == {
        "rescued": 1, "kept": 1, "broken": 1, "stuck": 1, "from the reference": 1,
    }  # fmt: skip
    assert found["rescued"].speedup == pytest.approx(2.0)
    assert found["kept"].gain == pytest.approx(1.5)
    assert found["kept"].faster == 1
    assert found["rescued"].gain is None
    assert found["kept"].share == pytest.approx(0.2)


def test_a_gain_measured_beside_the_parent_counts_before_two_ratios_to_eager():
    points = (right(0, 2.0), right(1, 3.0, parent=0, gain=ratio(1.1)))
    kept = next(flow for flow in flows([a_record(points=points)]) if flow.kind == "kept")
    assert kept.gain == pytest.approx(1.1)


def test_rescued_and_persistent_tasks_are_told_apart_between_rounds():
    early = a_record(entry="a", points=(right(0, 2.0), right(1, 4.0)))
    late = a_record(entry="b", points=(wrong(0), right(1, 1.0)))
    never = a_record(entry="c", points=(wrong(0), wrong(1)), verdict=Verdict.WRONG, beside=(),
                     message="off", best_step=None)  # fmt: skip
    first, second = rounds([early, late, never], checkpoints=(1, 2))
    assert (first.rescued, first.persistent) == (1, 0)
    assert first.correct == pytest.approx(1 / 3)
    assert first.built == 1.0
    assert (second.rescued, second.rescued_average) == (1, pytest.approx(1.0))
    assert (second.persistent, second.persistent_average) == (1, pytest.approx(4.0))
    assert second.average == pytest.approx(2.5)


def test_a_parent_outside_the_record_is_taken_as_none():
    (only,) = flows([a_record(points=(right(3, 2.0, parent=1),))])
    assert only.kind == "from the reference"


def test_entrants_that_do_not_search_have_none():
    assert flows([a_record(points=())]) == []
    assert rounds([a_record(points=())]) == []


def test_means_of_flows_are_geometric():
    points = (right(0, 1.0), right(1, 2.0, parent=0), right(2, 8.0, parent=0))
    kept = next(flow for flow in flows([a_record(points=points)]) if flow.kind == "kept")
    assert kept.speedup == pytest.approx(math.sqrt(16.0))
