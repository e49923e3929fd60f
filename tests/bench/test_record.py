"""Records: what they refuse, and what follows from their fields."""

import math

import pytest
from bench_records import a_point, a_record, failed, ratio

from kernelsmith.bench.record import Beside, Missing, mean_ratio
from kernelsmith.domain.evaluation import Label, LabelName, Verdict


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
