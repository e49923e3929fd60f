"""Metrics against cases that can be worked out by hand."""

import math
from dataclasses import replace

import pytest
from bench_records import a_record, failed, ratio
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.bench.numbers.metrics import (
    UNNAMED,
    by_system,
    measures_in,
    on_common_tasks,
    summarise,
    summarise_groups,
    without_degenerate,
)
from kernelsmith.bench.numbers.scores import METRICS, Measure
from kernelsmith.bench.record import Beside, Cost
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Label, LabelName, Verdict


def passed(value, entry="suite/one", **changes):
    beside = (Beside(baseline="eager", device=ratio(value), tests=6),)
    return a_record(entry=entry, beside=beside, **changes)


def on_tasks(*values):
    """One record a task: a speed-up, or none for a failure."""
    return [
        failed(entry=f"suite/{i}") if value is None else passed(value, f"suite/{i}")
        for i, value in enumerate(values)
    ]


def summary(records, **changes):
    return summarise(records, system="rules", **changes)


def test_the_paper_counts_what_is_slower_or_failed_as_nothing():
    found = summary(on_tasks(3.0, 0.5, None, 1.0))
    assert found["average"].value == pytest.approx((3.0 + 0 + 0 + 1.0) / 4)
    assert found["geometric"].value == pytest.approx((3.0 * 0.5 * 1.0) ** (1 / 3))
    assert found["kept"].value == pytest.approx(3.0 ** (1 / 4))
    assert found["correct"].value == 0.75
    assert found["slower"].value == pytest.approx(1 / 3)


def test_fast_p_is_strict_and_counts_failures_against():
    found = summary(on_tasks(1.0, 1.2, 1.5001, 2.5, None))
    assert found["fast_1"].value == pytest.approx(3 / 5)
    assert found["fast_1.2"].value == pytest.approx(2 / 5)
    assert found["fast_1.5"].value == pytest.approx(2 / 5)
    assert found["fast_2"].value == pytest.approx(1 / 5)


def test_a_speed_up_inside_its_noise_is_fast_but_not_surely():
    noisy = a_record(beside=(Beside(baseline="eager", device=ratio(1.01, 0.1), tests=6),))
    found = summary([noisy])
    assert (found["fast_1"].value, found["sure"].value) == (1.0, 0.0)


def test_quartiles_are_those_of_the_winners():
    found = summary(on_tasks(1.0, 2.0, 4.0, 8.0, 16.0, None))
    assert found["quartile_1"].value == pytest.approx(2.0)
    assert found["median"].value == pytest.approx(4.0)
    assert found["quartile_3"].value == pytest.approx(8.0)


def test_a_kernel_that_did_not_build_does_not_compile_and_one_that_is_wrong_does():
    records = [
        failed(entry="a", verdict=Verdict.BUILD_FAILED),
        failed(entry="b", verdict=Verdict.REFUSED),
        failed(entry="c", verdict=Verdict.WRONG),
        failed(entry="d", verdict=None, message="every proposal was rejected"),
    ]
    assert summary(records)["built"].value == 0.25


def test_a_winner_that_could_not_be_timed_is_correct_and_says_nothing_about_speed():
    untimed = a_record(entry="b", beside=(Beside(baseline="eager", trouble="no clock"),))
    found = summary([passed(2.0, "a"), untimed])
    assert found["correct"].value == 1.0
    assert found["average"].value == 2.0
    assert found["average"].tasks == 1
    assert found.unmeasured == 1


def test_nothing_passed_gives_rates_and_no_ratios():
    found = summary(on_tasks(None, None, None))
    assert found["correct"].value == 0.0
    assert found["correct"].high == pytest.approx(0.5615, abs=1e-3)
    assert found["average"].value == 0.0
    assert found.get("geometric") is None
    assert found.largest is None


def test_one_record_has_figures_without_intervals():
    found = summary([passed(2.0)])
    assert found["average"].value == 2.0
    assert found["average"].low is None
    assert found.over_levels == {}


def test_no_records_are_no_summary():
    assert summary([]) is None


def test_the_first_step_is_what_one_shot_generation_gives():
    found = summary([a_record(entry="a"), failed(entry="b")])  # both fail at first
    assert found["first_correct"].value == 0.0
    assert found["first_fast"].value == 0.0
    assert found["best_step"].value == 2.0  # the second step, counted from 1
    assert found["steps_passed"].value == pytest.approx((1 / 2 + 0) / 2)


def test_entrants_that_do_not_search_have_no_steps():
    found = summary([a_record(points=(), best_step=None, cost=Cost())])
    assert not {"first_correct", "best_step", "steps", "usd", "tokens"} & set(found.figures)


def test_seeds_average_inside_their_task():
    records = [passed(4.0, "a", seed=0), failed(entry="a", seed=1), passed(2.0, "b", seed=0)]
    found = summary(records)
    assert found["correct"].value == pytest.approx((0.5 + 1) / 2)
    assert found["average"].value == pytest.approx((2.0 + 2.0) / 2)
    assert found["geometric"].value == pytest.approx(math.sqrt(8))
    assert found.seeds == (1, 2)


def test_the_mean_of_levels_weighs_levels_alike():
    records = [passed(4.0, f"a{i}", level="level 1") for i in range(9)]
    records.append(passed(2.0, "b", level="level 3"))
    found = summary(records)
    assert found["average"].value == pytest.approx(3.8)
    assert found.over_levels["average"].value == pytest.approx(3.0)


def test_baselines_and_clocks_are_kept_apart():
    beside = (
        Beside(baseline="eager", device=ratio(4.0), call=ratio(3.0), mean=ratio(3.5), tests=100),
        Beside(baseline="compile", device=ratio(2.0), tests=6),
    )
    record = a_record(beside=beside)
    assert [str(m) for m in measures_in([record])] == [
        "over eager, device time", "over eager, plain calls", "over eager, mean of plain calls",
        "over compile, device time",
    ]  # fmt: skip
    for measure, value in ((Measure(), 4.0), (Measure(how="mean"), 3.5),
                           (Measure(baseline="compile"), 2.0)):  # fmt: skip
        assert summary([record], measure=measure)["average"].value == value


def test_another_baseline_says_nothing_about_first_steps():
    found = summary([a_record()], measure=Measure(baseline="compile"))
    assert found.get("first_fast") is None
    assert (found.unmeasured, found.unasked) == (0, 1)


def test_groups_cover_all_records_and_unnamed_ones_stand_together():
    records = [passed(2.0, "a", family="matmul"), passed(3.0, "b"), failed(entry="c", family="x")]
    groups = summarise_groups(records, "family", system="rules")
    assert [each.group for each in groups] == ["matmul", UNNAMED, "x"]
    assert sum(each.tasks for each in groups) == 3
    assert summarise_groups([passed(1.0)], "family", system="rules") == []


def test_only_common_tasks_count_and_that_is_said():
    systems = {"a": on_tasks(1.0, 2.0, 3.0), "b": on_tasks(1.0, 2.0)}
    common = on_common_tasks(systems)
    assert common.tasks == ("suite/0", "suite/1")
    assert common.left_out == {"a": 1, "b": 0}
    assert "only the 2 tasks that all systems have count; left out: 1 of a's" in common.said


def test_equal_task_sets_leave_nothing_to_say():
    assert on_common_tasks({"a": on_tasks(1.0), "b": on_tasks(2.0)}).said == ""
    assert on_common_tasks({}).tasks == ()


def test_a_task_that_changed_between_two_benches_does_not_count():
    systems = {
        "a": [passed(1.0, "x", task="h1"), passed(1.0, "y", task="h")],
        "b": [passed(1.0, "x", task="h2"), passed(1.0, "y", task="h")],
    }
    common = on_common_tasks(systems)
    assert common.tasks == ("y",)
    assert common.changed == ("x",)
    assert "differ between systems in their source: x" in common.said


def test_records_by_different_judges_are_pointed_out():
    systems = {"a": [a_record(judge="1")], "b": [a_record(judge="2")]}
    assert "different versions of the judge" in on_common_tasks(systems).said


def test_devices_make_systems_of_one_entrant():
    other = Device(kind="null", name="elsewhere")
    found = by_system([a_record(), replace(a_record(), device=other)])
    assert list(found) == ["rules on elsewhere (null)", "rules on nowhere (null)"]


def test_a_task_that_any_record_calls_degenerate_goes_for_all():
    labelled = a_record(entry="a", labels=(Label(name=LabelName.DEGENERATE, reason="zeros"),))
    records = [labelled, a_record(entry="a", entrant="other"), a_record(entry="b"),
               a_record(entry="c", note="degenerate: zeros pass")]  # fmt: skip
    assert [record.entry for record in without_degenerate(records)] == ["b"]


SPEEDUPS = st.lists(
    st.one_of(st.none(), st.floats(min_value=0.05, max_value=50)), min_size=1, max_size=15
)


@settings(max_examples=40, deadline=None)
@given(SPEEDUPS)
def test_metrics_keep_their_order_for_any_speed_ups(values):
    found = summary(on_tasks(*values), metrics=METRICS[:14])
    rates = [found[f"fast_{p}"].value for p in ("1", "1.2", "1.5", "2")]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] <= found["correct"].value <= found["built"].value
    assert found["kept"].value >= 1 - 1e-12
    if (middle := found.get("geometric")) is not None:
        assert found["quartile_1"].value <= found["median"].value <= found["quartile_3"].value
        assert found["kept"].value >= middle.value ** found["correct"].value - 1e-9
