"""What steps buy: hand-made searches, and what must hold for any."""

import math
from dataclasses import replace

import numpy as np
import pytest
from bench_records import a_point, a_record, failed, ratio
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.bench.numbers.curves import (
    cost_quality,
    curve,
    early_stopping,
    fixed,
    levelling,
    patience,
)
from kernelsmith.bench.numbers.gains import beyond, gains_of, prices
from kernelsmith.bench.numbers.histories import Histories
from kernelsmith.bench.record import Beside, Cost, Rules
from kernelsmith.domain.evaluation import Verdict


def a_search(*speedups, entry="suite/one", **changes):
    """One step a speed-up; none for a candidate that failed. Costs 10 tokens a step."""
    best, points = 0.0, []
    for step, value in enumerate(speedups):
        common = {"tokens": 10, "usd": 0.1, "seconds": 1.0}
        if value is None:
            points.append(a_point(step, verdict=Verdict.WRONG, outcome="failed", speedup=None,
                                  **common))  # fmt: skip
            continue
        points.append(a_point(step, speedup=ratio(value), is_best=value > best, **common))
        best = max(best, value)
    usual = {
        "entry": entry, "points": tuple(points),
        "cost": Cost(tokens=10 * len(points), usd=0.1 * len(points), seconds=float(len(points))),
    }  # fmt: skip
    if best == 0.0:
        return failed(**{**usual, **changes})
    beside = (Beside(baseline="eager", device=ratio(best * 0.9), tests=6),)
    return a_record(**{**usual, "beside": beside, **changes})


def values(estimates):
    return [each.value for each in estimates]


def test_the_curve_is_the_geometric_mean_of_the_best_so_far_and_never_falls():
    found = curve([a_search(1.0, 4.0, 2.0, entry="a"), a_search(None, None, 1.0, entry="b")],
                  system="rules")  # fmt: skip
    assert values(found.best) == pytest.approx([1.0, 2.0, 2.0])
    assert values(found.correct) == pytest.approx([0.5, 0.5, 1.0])
    assert found.final.value == pytest.approx(math.sqrt(4.0 * 0.9))


def test_slower_than_eager_is_eager_kept():
    assert values(curve([a_search(0.5, 0.8)], system="rules").best) == [1.0, 1.0]


def test_no_interval_reaches_below_what_is_kept_or_paid():
    records = [a_search(*[1.0] * 5, None, last, entry=f"s/{i}")
               for i, last in enumerate((1.0, 1.01, 9.0))]  # fmt: skip
    drawn = curve(records, system="rules")
    found = [*drawn.best, drawn.final, *(each.best for each in cost_quality(records)),
             *(each.best for each in early_stopping(records)),
             *(each.gain for each in beyond(records, after=(5,)))]  # fmt: skip
    assert min(each.low for each in found) == 1.0
    assert max(each.high for each in found) > 9.0
    assert min(end.low for each in prices(records) for end in (each.each, each.doubling)) >= 0.0


def test_a_search_that_ended_early_stays_at_its_best():
    found = curve([a_search(2.0, entry="a"), a_search(None, None, None, entry="b")], system="x")
    assert values(found.best) == pytest.approx([math.sqrt(2)] * 3)


def test_entrants_that_do_not_search_have_no_curve():
    record = a_record(points=())
    assert curve([record], system="compile") is None
    assert cost_quality([record]) == []
    assert early_stopping([record]) == []
    assert prices([record]) == []
    assert beyond([record]) == []
    assert Histories.of([]) is None


def test_shares_of_the_gain_are_of_its_logarithm():
    reached = cost_quality([a_search(2.0, 2.0, 4.0, 4.0, 16.0)], checkpoints=(1, 3))
    assert [each.steps for each in reached] == [1, 3, 5]
    assert [each.share.value for each in reached] == pytest.approx([0.25, 0.5, 1.0])
    assert [each.tokens for each in reached] == pytest.approx([10, 30, 50])


def test_a_search_that_gains_nothing_has_no_shares():
    (only,) = cost_quality([a_search(None, 0.5)], checkpoints=())
    assert only.share is None
    assert only.best.value == 1.0


def test_what_nobody_counted_has_no_cost():
    record = a_record(points=(a_point(0, is_best=True),), cost=Cost())
    (only,) = cost_quality([record])
    assert only.tokens is None
    assert [price.what for price in prices([record])] == ["seconds"]


def without_counts(record, *steps):
    points = tuple(
        replace(point, tokens=None, usd=None) if point.step in steps else point
        for point in record.points
    )
    return replace(record, points=points)


def test_one_step_that_nobody_counted_does_not_take_all_costs_away():
    records = [a_search(1.0, 2.0, 3.0, entry="a"),
               without_counts(a_search(1.0, 2.0, 3.0, entry="b"), 1)]  # fmt: skip
    found = cost_quality(records, checkpoints=(1, 2))
    assert [each.tokens for each in found] == pytest.approx([10.0, 15.0, 25.0])
    assert [each.uncounted for each in found] == [1, 1, 1]
    free = [without_counts(each, 0, 1, 2) for each in records]
    assert [each.tokens for each in cost_quality(free)] == [None, None]
    uncounted = replace(records[1], cost=Cost(seconds=3.0))
    spent = {each.what: each for each in prices([records[0], uncounted])}
    assert (spent["tokens"].total, spent["tokens"].uncounted) == (30.0, 1)
    assert spent["seconds"].uncounted == 0


def dispatched(record):
    """The same with what a run puts together at its end, the best of all."""
    last = a_point(len(record.points), speedup=ratio(9.0), is_best=True, proposer="dispatch")
    return replace(record, points=(*record.points, last))


def test_what_a_run_puts_together_at_its_end_is_no_step_of_the_search():
    searches = [a_search(1.0, 2.0, 1.5, entry="a"), a_search(1.0, 1.0, 4.0, entry="b")]
    ended = [dispatched(searches[0]), searches[1]]
    assert curve(ended, system="rules") == curve(searches, system="rules")
    assert cost_quality(ended) == cost_quality(searches)
    assert early_stopping(ended) == early_stopping(searches)
    assert beyond(ended, after=(1, 3)) == beyond(searches, after=(1, 3))
    assert gains_of(ended[0]) == gains_of(searches[0]) == 1
    assert ended[0].steps == 3


def test_rules_stop_where_they_say():
    record = a_search(2.0, 2.0, 2.0, 4.0, 4.0, 4.0, 4.0)
    search = Histories.of([record]).kept[0], [point.is_best for point in record.points]
    assert patience(2)(*search) == 3
    assert patience(3)(*search) == 7
    assert patience(9)(*search) == 7
    assert fixed(4)(*search) == 4
    assert levelling(2, 0.01)(*search) == 3
    assert levelling(3, 0.01)(*search) == 7


def test_patience_counts_new_bests_that_are_still_slower_than_eager():
    record = a_search(0.2, None, 0.4, None, 0.6, None, None)
    search = Histories.of([record]).kept[0], [point.is_best for point in record.points]
    assert patience(2)(*search) == 7


def test_what_is_in_flight_when_a_rule_applies_is_finished_and_counts():
    speedups = [2.0, *[1.0] * 5, *[1.0] * 2, 4.0]  # without a new best for five steps after one

    def stopped(concurrency):
        records = [a_search(*speedups, rules=Rules(steps=9, concurrency=concurrency))]
        return {each.rule: each for each in early_stopping(records)}

    alone, three, many = stopped(1), stopped(4), stopped(40)
    rule = "5 steps without a new best"
    assert [each[rule].steps for each in (alone, three, many)] == [6, 9, 9]
    assert (alone[rule].gain.value, three[rule].gain.value) == pytest.approx((0.5, 1.0))
    assert three["5 steps"] == alone["5 steps"]  # nothing more is asked for


def test_a_rule_saves_steps_and_costs_gain():
    found = {each.rule: each for each in early_stopping([a_search(2.0, 2.0, 2.0, 2.0, 4.0, 4.0)])}
    patient = found["3 steps without a new best"]
    assert patient.steps == 4
    assert patient.work.value == pytest.approx(4 / 6)
    assert patient.gain.value == pytest.approx(0.5)
    assert found["5 steps"].gain.value == pytest.approx(1.0)


def test_gains_beyond_are_counted_for_searches_that_went_on():
    long = a_search(*[1.0] * 5, None, 2.0, entry="a", level="level 1")
    late = a_search(*[None] * 5, 1.0, 8.0, entry="b", level="level 1")
    short = a_search(9.0, entry="c", level="level 1")
    (after,) = beyond([long, late, short], after=(5, 20))
    assert (after.level, after.after, after.searches, after.until) == ("level 1", 5, 2, 7)
    assert after.gain.value == pytest.approx(4.0)
    assert after.improved.value == 1.0
    assert after.rescued.value == 0.5


def test_a_gain_is_a_step_that_raised_the_best_above_eager():
    assert gains_of(a_search(0.5, 0.9, 1.5, 1.2, 2.0)) == 2
    assert gains_of(a_search(None, 0.9)) == 0


def test_prices_are_all_that_was_spent_over_all_that_was_gained():
    records = [a_search(2.0, None, entry="a"), a_search(None, None, 4.0, 2.0, entry="b")]
    tokens = next(price for price in prices(records) if price.what == "tokens")
    assert (tokens.total, tokens.gains) == (60, 2)
    assert tokens.each.value == pytest.approx(30.0)
    assert tokens.doubling.value == pytest.approx(60 / 3)


def test_spending_for_nothing_has_no_price():
    (tokens, *_) = prices([a_search(None, 0.5)])
    assert (tokens.gains, tokens.each, tokens.doubling) == (0, None, None)


def test_drawn_weights_add_up_and_keep_to_their_tasks():
    records = [a_search(2.0, entry="a", seed=s) for s in range(3)] + [a_search(1.0, entry="b")]
    histories = Histories.of(records)
    drawn = histories.drawn_weights(np.random.default_rng(0), 4000)
    assert drawn.sum(axis=1) == pytest.approx(np.ones(4000))
    assert drawn.mean(axis=0) == pytest.approx(histories.weights, abs=0.03)
    assert histories.weights == pytest.approx([1 / 6, 1 / 6, 1 / 6, 1 / 2])


STEPS = st.lists(
    st.one_of(st.none(), st.floats(min_value=0.1, max_value=20)), min_size=1, max_size=12
)


@settings(max_examples=30, deadline=None)
@given(st.lists(STEPS, min_size=1, max_size=4))
def test_more_steps_never_give_less(searches):
    records = [a_search(*steps, entry=f"t{i}") for i, steps in enumerate(searches)]
    reached = cost_quality(records, checkpoints=(1, 2, 4, 8))
    assert values(each.best for each in reached) == sorted(values(e.best for e in reached))
    shares = [each.share.value for each in reached if each.share is not None]
    assert shares == sorted(shares)
    assert not shares or shares[-1] == pytest.approx(1.0)
    for stopped in early_stopping(records):
        assert 0 <= stopped.work.value <= 1
        assert stopped.gain is None or 0 <= stopped.gain.value <= 1
