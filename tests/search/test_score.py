"""What search ranks by."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelsmith.domain.evaluation import Evaluation, Label, LabelName, Verdict
from kernelsmith.search.score import grade, improves, score
from kernelsmith.testing import SIMULATED, a_failure, a_pass

speedups = st.floats(0.01, 1000)
spreads = st.floats(0, 0.5)


def passed(speedup, spread=0.01, *labels):
    found = a_pass("x", speedup, spread=spread)[1]
    return dataclasses.replace(found, labels=tuple(Label(name=name) for name in labels))


def failed(verdict):
    return a_failure("x", verdict)[1]


def test_the_ladder_goes_by_how_far_a_candidate_got():
    ladder = [
        [Verdict.REFUSED, Verdict.CHEATED],
        [Verdict.BUILD_FAILED],
        [Verdict.CRASHED, Verdict.TIMED_OUT],
        [Verdict.WRONG],
    ]
    rungs = [{score(failed(verdict)) for verdict in same} for same in ladder]
    assert all(len(rung) == 1 for rung in rungs)
    flat = [rung.pop() for rung in rungs]
    assert flat == sorted(flat)
    assert flat[-1] < score(passed(0.01))


def test_as_fast_as_the_baseline_is_two_and_three_times_as_fast_is_three():
    assert score(passed(1.0, 0)) == 2.0
    assert score(passed(3.0, 0)) == 3.0


@given(speedups, speedups)
def test_faster_scores_higher(one, other):
    if one < other:
        assert score(passed(one, 0)) <= score(passed(other, 0))


@given(speedups, spreads)
def test_noise_lowers_a_score_and_never_lifts_it(speedup, spread):
    assert score(passed(speedup, spread)) <= score(passed(speedup, 0))


def test_a_lazy_optimisation_counts_half():
    assert score(passed(3.0, 0, LabelName.TRIVIAL)) == 2.0
    assert score(passed(3.0, 0, LabelName.DEGENERATE)) == 3.0


def test_right_but_untimed_is_better_than_wrong_and_worse_than_timed():
    untimed = Evaluation(
        task="test", candidate="c0ffee", device=SIMULATED, verdict=Verdict.PASSED,
        labels=(Label(name=LabelName.UNTIMED),),
    )  # fmt: skip
    assert score(failed(Verdict.WRONG)) < score(untimed) < score(passed(0.01))


def test_an_improvement_lies_beyond_the_noise():
    assert not improves(passed(1.02, 0.02), passed(1.00, 0.02))
    assert improves(passed(1.06, 0.02), passed(1.00, 0.02))


def test_a_wide_interval_protects_nobody():
    assert improves(passed(1.9, 0.01), passed(2.0, 0.6))
    assert not improves(passed(2.0, 0.6), passed(1.9, 0.01))


@given(speedups, spreads, speedups, spreads)
def test_of_two_at_most_one_improves_on_the_other_and_scores_higher(one, s1, other, s2):
    first, second = passed(one, s1), passed(other, s2)
    assert not (improves(first, second) and improves(second, first))
    if improves(first, second):
        assert score(first) > score(second)


@pytest.mark.parametrize("verdict", list(Verdict))
def test_nothing_improves_on_itself(verdict):
    same = passed(2.0) if verdict is Verdict.PASSED else failed(verdict)
    assert not improves(same, same)
    assert grade(same).noise >= 0
