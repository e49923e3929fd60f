"""Two systems on the same tasks."""

import json
from dataclasses import replace

import pytest
from bench_records import a_record, failed, ratio

from kernelsmith.bench.numbers.compare import compare, contrast, every_pair
from kernelsmith.bench.record import Beside
from kernelsmith.domain.device import Device
from kernelsmith.errors import UsageError


def system(name, *values, seed=0, **changes):
    return [
        failed(entrant=name, entry=f"suite/{i}", seed=seed, **changes)
        if value is None
        else a_record(
            entrant=name, entry=f"suite/{i}", seed=seed,
            beside=(Beside(baseline="eager", device=ratio(value), tests=6),), **changes,
        )
        for i, value in enumerate(values)
    ]  # fmt: skip


def two(first, second, **changes):
    return contrast(system("a", *first), system("b", *second), names=("a", "b"), **changes)


def test_a_ratio_of_geometric_means_is_paired_over_tasks_that_both_solved():
    found = two([1.0, 2.0, 4.0, None], [2.0, 4.0, 8.0, 100.0])
    assert found["geometric"].change.value == pytest.approx(2.0)
    assert found["geometric"].change.tasks == 3
    assert found["correct"].change.value == pytest.approx(0.25)
    assert found.gained == ("suite/3",)
    assert found.lost == ()


def test_a_difference_on_every_task_is_significant_and_none_is_not():
    clear = two([1.0 + i / 10 for i in range(20)], [2.0 + i / 5 for i in range(20)])
    assert clear["kept"].is_significant
    assert all(test.p < 0.001 for name, test in clear.tests if name == "kept")
    same = two([1.5, 2.0, 3.0], [1.5, 2.0, 3.0])
    assert same["kept"].change.value == pytest.approx(1.0)
    assert not same["kept"].is_significant


def test_two_sides_of_one_name_are_not_taken_for_one():
    with pytest.raises(ValueError, match="two names"):
        compare(system("a", 1.0), system("a", 2.0), names=("builtin", "builtin"))


def test_failures_alone_say_nothing_of_speed_where_no_winner_was_timed():
    measured = system("a", *[9.0] * 7, *[None] * 3)
    others = [replace(each, beside=()) for each in system("b", *[9.0] * 7, *[None] * 3)]
    found = contrast(measured, others, names=("a", "b"))
    assert [each.metric for each in found.differences if each.metric.startswith("fast")] == []
    assert found["correct"].change.value == 0.0
    assert {name for name, _ in found.tests} == {"correct"}
    assert two([None, None], [2.0, 3.0])["average"].first.value == 0.0, "where all failed, it is 0"


def test_three_tasks_have_no_star_however_large_the_difference():
    found = two([1.0, 1.1, 1.2], [7.0, 1.2, 1.3])
    assert found["geometric"].p >= 0.25
    assert not any(each.is_significant for each in found.differences)


def test_a_star_never_stands_beside_an_interval_that_holds_no_difference():
    found = two([1.0 + i / 10 for i in range(20)], [2.0 + i / 5 for i in range(20)])["kept"]
    assert found.is_significant
    wide = replace(found.change, low=0.9)
    assert not replace(found, change=wide).is_significant


def test_shares_differ_by_at_most_a_hundred_points():
    found = two([2.0, None, 2.0], [None, 2.0, None])
    assert (found["correct"].change.low, found["correct"].change.high) == (-1.0, 1.0)


def test_which_is_first_turns_the_answer_round():
    values = [1.0, 2.0, 3.0], [1.5, 2.1, 5.0]
    here, there = two(*values), two(*reversed(values))
    assert here["kept"].change.value == pytest.approx(1 / there["kept"].change.value)
    assert here["average"].change.value == pytest.approx(-there["average"].change.value)


def test_only_common_tasks_count_and_that_is_said():
    found = contrast(system("a", 1.0, 2.0, 3.0), system("b", 2.0, 3.0), names=("a", "b"))
    assert found.tasks == 2
    assert "left out: 1 of a's" in found.said


def test_what_does_not_quite_compare_is_said():
    there = Device(kind="null", name="elsewhere")
    found = contrast(
        system("a", 1.0, 2.0), system("b", 1.0, 2.0, device=there) + system("b", 3.0, seed=1),
        names=("a", "b"),
    )  # fmt: skip
    assert "measured on different devices: nowhere (null) and" in found.said
    assert "2 records against 3" in found.said


def test_systems_without_a_common_task_have_no_contrast():
    other = [replace(record, entry=f"x/{i}") for i, record in enumerate(system("b", 1.0))]
    assert contrast(system("a", 1.0), other, names=("a", "b")) is None
    with pytest.raises(UsageError, match="no task in common"):
        compare(system("a", 1.0), other)


def test_one_system_on_each_side_is_a_pair_whatever_they_are_called():
    (only,) = compare(system("old", 1.0, 2.0), system("new", 2.0, 4.0)).contrasts
    assert (only.first, only.second) == ("old", "new")


def test_several_systems_are_paired_by_name():
    found = compare(
        system("a", 1.0, 2.0) + system("b", 1.0, 2.0),
        system("a", 3.0, 4.0) + system("c", 1.0, 2.0),
        names=("before", "after"),
    )
    (only,) = found.contrasts
    assert (only.first, only.second) == ("a (before)", "a (after)")
    assert set(found.unpaired) == {"b", "c"}


ELSEWHERE = Device(kind="null", name="elsewhere")


def test_a_file_of_one_device_is_compared_with_one_of_two():
    both = system("a", 3.0, 4.0) + system("a", 9.0, 9.0, device=ELSEWHERE)
    found = compare(system("a", 1.0, 2.0), both, names=("before", "merged"))
    (only,) = found.contrasts
    assert (only.first, only.second) == (
        "a on nowhere (null) (before)", "a on nowhere (null) (merged)",
    )  # fmt: skip
    assert only["geometric"].second.value == pytest.approx(12**0.5)
    assert found.unpaired == ("a on elsewhere (null)",)
    assert compare(both, system("a", 1.0, 2.0)).unpaired == found.unpaired


def test_entrants_of_one_device_each_are_paired_across_devices():
    here = system("a", 1.0, 2.0) + system("b", 1.0, 2.0)
    there = system("a", 2.0, 2.0, device=ELSEWHERE) + system("b", 2.0, 2.0, device=ELSEWHERE)
    found = compare(here, there)
    assert [(each.first, each.second) for each in found.contrasts] == [
        ("a (A)", "a (B)"), ("b (A)", "b (B)"),
    ]  # fmt: skip
    assert "different devices" in found.contrasts[0].said


def test_a_device_that_the_other_side_has_not_is_named():
    third = Device(kind="null", name="third")
    both = system("a", 1.0, device=ELSEWHERE) + system("a", 1.0, device=third)
    with pytest.raises(UsageError, match=r"A \(a on nowhere \(null\)\) is in B .*one device each"):
        compare(system("a", 1.0), both)


def test_a_comparison_is_written_for_machines():
    body = json.loads(compare(system("old", 1.0, 2.0), system("new", 2.0, 4.0)).as_json())
    (only,) = body["contrasts"]
    change = next(each for each in only["differences"] if each["metric"] == "geometric")["change"]
    assert change["value"] == pytest.approx(2.0)


def test_nothing_to_pair_is_the_users_to_know():
    with pytest.raises(UsageError, match=r"no system of A \(a, b\) is in B \(c\)"):
        compare(system("a", 1.0) + system("b", 1.0), system("c", 1.0))
    with pytest.raises(UsageError, match="B holds no record"):
        compare(system("a", 1.0), [])


def test_one_common_task_gives_figures_and_no_significance():
    found = two([1.0], [2.0])
    assert found["average"].change is None
    assert found["average"].second.value == 2.0
    assert not found["average"].is_significant


def test_nothing_passed_on_either_side_still_compares_correctness():
    found = two([None, None], [None, None])
    assert found["correct"].change.value == 0.0
    assert "geometric" not in [each.metric for each in found.differences]
    assert [task.ratio for task in found.each] == [None, None]


def test_p_values_of_several_pairs_are_corrected():
    systems = {name: system(name, *(factor + i / 9 for i in range(9)))
               for name, factor in (("a", 1.0), ("b", 1.3), ("c", 1.9))}  # fmt: skip
    pairs = every_pair(systems)
    assert [(pair.first, pair.second) for pair in pairs] == [("a", "b"), ("a", "c"), ("b", "c")]
    for pair in pairs:
        assert pair["kept"].p <= pair["kept"].corrected <= 3 * pair["kept"].p + 1e-12


def test_several_pairs_of_two_files_are_corrected_for_their_number():
    values = {"x": ([1.0, 1.1, 1.2, 1.4], [1.3, 1.2, 1.6, 1.7]),
              "y": ([1.0, 2.0, 1.5, 1.1], [1.1, 2.1, 1.4, 1.2])}  # fmt: skip
    before, after = (
        [record for name, own in values.items() for record in system(name, *own[side])]
        for side in (0, 1)
    )
    alone = [
        compare(system(name, *old), system(name, *new)).contrasts[0]
        for name, (old, new) in values.items()
    ]
    both = compare(before, after).contrasts
    assert [each["kept"].corrected for each in alone] == [None, None]
    smaller, larger = sorted([each["kept"] for each in both], key=lambda each: each.p)
    assert [each["kept"].p for each in both] == [each["kept"].p for each in alone]
    assert smaller.corrected == pytest.approx(2 * smaller.p)
    assert larger.corrected >= max(larger.p, smaller.corrected)


def test_levels_are_contrasted_apart():
    one = system("a", 1.0, 1.0, level="level 1")
    hard = [replace(r, entry=f"hard/{r.entry}") for r in system("a", 1.0, 1.0, level="level 3")]
    other = system("b", 2.0, 2.0, level="level 1")
    worse = [replace(r, entry=f"hard/{r.entry}") for r in system("b", 0.5, 0.5, level="level 3")]
    found = contrast(one + hard, other + worse, names=("a", "b"))
    levels = {level: {d.metric: d for d in own} for level, own in found.by_level}
    assert levels["level 1"]["geometric"].change.value == pytest.approx(2.0)
    assert levels["level 3"]["geometric"].change.value == pytest.approx(0.5)
