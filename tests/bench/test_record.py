"""Records: what they refuse, and what follows from their fields."""

import math

import pytest
from bench_records import a_point, a_record, failed, ratio

from kernelsmith.bench.ledger import RECORDS, Ledger, read
from kernelsmith.bench.record import Archive, Beside, Cost, Missing, WorkloadRatio, mean_ratio
from kernelsmith.cli.main import main
from kernelsmith.domain.evaluation import Label, LabelName, Verdict


def an_archive(**changes) -> Archive:
    return Archive(**({"cells": 3, "coverage": 0.25, "qd_score": 2.5} | changes))


def a_workload(**changes) -> WorkloadRatio:
    usual = {"workload": "w", "speedup": ratio(2.0), "us": 3.5, "baseline_us": 7.25}
    return WorkloadRatio(**(usual | changes))


def a_full_record(**changes):
    """One that says everything that can be counted or measured."""
    beside = Beside(baseline="eager", device=ratio(2.0), workloads=(a_workload(),))
    points = (a_point(0, usd=0.125, tokens=11, seconds=9.5, is_best=True, parent=0),)
    cost = Cost(tokens=17, usd=0.75, seconds=21.5, judging_s=4.5)
    usual = {"beside": (beside,), "points": points, "cost": cost, "archive": an_archive()}
    return a_record(**(usual | {"best_step": 0} | changes))


def test_a_record_without_a_winner_has_no_ratio():
    with pytest.raises(ValueError, match="go with a winner that passed"):
        a_record(verdict=Verdict.WRONG)
    assert failed().speedup() is None


def test_a_baseline_that_could_not_be_measured_says_why():
    with pytest.raises(ValueError, match="a reason why not"):
        Beside(baseline="compile")
    found = a_record(beside=(Beside(baseline="compile", trouble="it does not compile"),))
    assert found.speedup("compile") is None
    assert found.over("compile").trouble == "it does not compile"


def test_an_unknown_baseline_is_refused_by_name():
    with pytest.raises(ValueError, match="no baseline 'jax'"):
        Beside(baseline="jax", device=ratio(1.0))


def test_each_baseline_is_measured_once():
    twice = (Beside(baseline="eager", device=ratio(1.0)),) * 2
    with pytest.raises(ValueError, match="once"):
        a_record(beside=twice)


def test_plain_calls_are_the_device_ratio_where_nothing_else_was_taken():
    on_cpu = a_record()
    on_gpu = a_record(beside=(Beside(baseline="eager", device=ratio(1.5), call=ratio(1.2)),))
    assert on_cpu.speedup(how="call") == ratio(1.5)
    assert on_gpu.speedup(how="call") == ratio(1.2)
    assert on_gpu.speedup(how="device") == ratio(1.5)


def test_the_best_by_step_holds_until_a_better_one_comes():
    points = (
        a_point(0, verdict=None, outcome="rejected", speedup=None),
        a_point(1, speedup=ratio(1.1), is_best=True),
        a_point(2, speedup=ratio(3.0)),  # a lucky sample that was not confirmed
        a_point(3, speedup=ratio(1.4), is_best=True),
    )
    best = a_record(points=points).best_by_step()
    assert [each and each.value for each in best] == [None, 1.1, 1.1, 1.4]


@pytest.mark.parametrize(
    ("verdict", "built"),
    [(None, False), (Verdict.REFUSED, False), (Verdict.BUILD_FAILED, False),
     (Verdict.WRONG, True), (Verdict.PASSED, True)],
)  # fmt: skip
def test_a_step_counts_as_compiled_from_its_verdict(verdict, built):
    assert a_point(0, verdict=verdict, speedup=None).is_built is built


def test_a_task_is_degenerate_by_the_suites_word_or_the_judges():
    label = Label(name=LabelName.DEGENERATE, reason="zeros pass")
    assert a_record(note="degenerate: zeros pass").is_degenerate
    assert a_record(labels=(label,)).is_degenerate
    assert not a_record(note="suspect: loose").is_degenerate


def test_what_is_missing_is_missing_for_a_reason():
    with pytest.raises(ValueError, match="for a reason"):
        Missing(entry="suite/one", reason="")


def test_the_mean_of_tests_has_students_interval():
    found = mean_ratio((1.0, 2.0, 3.0, 4.0))
    spread = math.sqrt(5 / 3)
    assert found.value == 2.5
    # Student's 97.5 % quantile for three degrees of freedom is 3.1824
    assert found.high - 2.5 == pytest.approx(3.1824 * spread / 2, rel=2e-2)


def test_one_test_gives_no_mean_with_an_interval():
    assert mean_ratio((1.5,)) is None


@pytest.mark.parametrize("value", [-1, math.nan, math.inf])
@pytest.mark.parametrize(
    ("made", "name"),
    [(Cost, each) for each in ("tokens", "usd", "seconds", "judging_s")]
    + [(an_archive, each) for each in ("cells", "coverage", "qd_score")]
    + [(a_workload, each) for each in ("us", "baseline_us")]
    + [(lambda **said: a_point(**({"step": 0} | said)), each)
       for each in ("step", "parent", "tokens", "usd", "seconds")],
)  # fmt: skip
def test_what_was_counted_or_measured_is_not_negative(made, name, value):
    with pytest.raises(ValueError, match=r"not negative|more than 0 us"):
        made(**{name: value})


def test_a_share_is_at_most_the_whole_and_a_launch_takes_time():
    with pytest.raises(ValueError, match="share of the cells; got 7"):
        an_archive(coverage=7)
    with pytest.raises(ValueError, match="more than 0 us"):
        a_workload(baseline_us=0.0)


def test_an_empty_archive_a_free_search_and_a_full_archive_are_possible():
    assert an_archive(cells=0, coverage=0.0, qd_score=0.0).cells == 0
    assert an_archive(coverage=1.0).coverage == 1
    assert Cost(tokens=0, usd=0.0).usd == 0
    assert a_point(0, parent=0, tokens=0, usd=0.0, seconds=0.0).tokens == 0


@pytest.mark.parametrize(
    ("was", "spoiled"),
    [
        ('"tokens": 17', '"tokens": -5000'),
        ('"usd": 0.75', '"usd": -0.75'),
        ('"seconds": 21.5', '"seconds": -21.5'),
        ('"qd_score": 2.5', '"qd_score": -2'),
        ('"coverage": 0.25', '"coverage": 7'),
        ('"baseline_us": 7.25', '"baseline_us": -1'),
        ('"us": 3.5', '"us": 0'),
        ('"seconds": 9.5', '"seconds": -9.5'),
        ('"tokens": 11', '"tokens": -11'),
    ],
)
def test_a_line_with_an_impossible_number_is_named_and_the_rest_is_shown(
    tmp_path, capsys, was, spoiled
):
    with Ledger(tmp_path / RECORDS) as ledger:
        ledger.append(a_full_record(entry="suite/one"), a_full_record(entry="suite/two"))
    first, second = (tmp_path / RECORDS).read_text().splitlines()
    assert first.count(was) == 1
    (tmp_path / RECORDS).write_text(f"{first.replace(was, spoiled)}\n{second}\n")
    found = read(tmp_path)
    assert [each.entry for each in found.records] == ["suite/two"]
    assert [each.line for each in found.corrupt] == [1]
    assert main(["bench", "show", str(tmp_path), "--full"]) == 0
    said = capsys.readouterr()
    assert f"{tmp_path / RECORDS}:1: " in said.err
    assert "rules" in said.out
