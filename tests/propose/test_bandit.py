"""Which model is asked, and why."""

from dataclasses import replace

import pytest
from briefs import a_step

from kernelsmith.domain.trajectory import Outcome
from kernelsmith.propose.bandit import Bandit, gain_of


def shares(bandit, asks=2000):
    chosen = [bandit.choose(seed) for seed in range(asks)]
    return {name: chosen.count(name) / asks for name in sorted(set(chosen))}


def test_without_evidence_the_weights_are_the_shares():
    found = shares(Bandit({"a": 3.0, "b": 1.0, "c": 1.0}))
    assert found["a"] == pytest.approx(0.6, abs=0.04)
    assert found["b"] == pytest.approx(0.2, abs=0.03)


def test_the_same_seed_and_the_same_tells_choose_the_same_model():
    one, other = Bandit({"a": 1.0, "b": 1.0}), Bandit({"b": 1.0, "a": 1.0})
    for n in range(30):
        assert [one.choose(s) for s in range(20)] == [other.choose(s) for s in range(20)]
        step = a_step("a" if n % 3 else "b", None if n % 2 else 1.0 + n)
        one.learn(step)
        other.learn(step)


def test_choosing_does_not_change_what_is_chosen_later():
    asked, rested = Bandit({"a": 1.0, "b": 1.0}), Bandit({"a": 1.0, "b": 1.0})
    for seed in range(50):
        asked.choose(seed)
    assert asked.choose(99) == rested.choose(99)


def test_gains_outweigh_weights():
    bandit = Bandit({"heavy": 3.0, "gainful": 1.0})
    for _ in range(40):
        bandit.learn(a_step("heavy", 1.0))
        bandit.learn(a_step("gainful", 1.4))
    assert shares(bandit)["gainful"] > 0.9


def test_the_unit_of_the_score_does_not_matter():
    small, large = Bandit({"a": 1.0, "b": 1.0}), Bandit({"a": 1.0, "b": 1.0})
    for n in range(20):
        gain = 1.0 + n % 5
        small.learn(a_step("a", gain * 1e-3, parent=0.0))
        small.learn(a_step("b", None))
        large.learn(a_step("a", gain * 1e3, parent=0.0))
        large.learn(a_step("b", None))
    assert [small.choose(s) for s in range(100)] == [large.choose(s) for s in range(100)]


def test_of_two_that_gain_alike_the_cheaper_is_asked_more_often():
    bandit = Bandit({"cheap": 1.0, "dear": 1.0})
    for n in range(40):
        score = 1.5 if n % 2 else None
        bandit.learn(a_step("cheap", score, usd=0.001))
        bandit.learn(a_step("dear", score, usd=0.1))
    assert shares(bandit)["cheap"] > 0.8
    blind = Bandit({"cheap": 1.0, "dear": 1.0}, cost_weight=0.0)
    for n in range(40):
        score = 1.5 if n % 2 else None
        blind.learn(a_step("cheap", score, usd=0.001))
        blind.learn(a_step("dear", score, usd=0.1))
    assert shares(blind)["cheap"] == pytest.approx(0.5, abs=0.05)


def test_cost_counts_only_once_all_were_charged_for():
    bandit = Bandit({"priced": 1.0, "free": 1.0})
    for _ in range(5):
        bandit.learn(a_step("priced", None, usd=0.1))
        bandit.learn(a_step("free", None))
    assert shares(bandit)["priced"] == pytest.approx(0.5, abs=0.05)


def test_a_loser_is_still_asked_now_and_then():
    bandit = Bandit({"a": 1.0, "b": 1.0})
    for n in range(20):
        bandit.learn(a_step("a", 1.5 if n % 4 == 0 else None))
        bandit.learn(a_step("b", None))
    assert 0.0 < shares(bandit)["b"] < 0.3


def test_what_it_does_not_know_is_passed_over():
    bandit = Bandit({"a": 1.0, "b": 1.0})
    before = shares(bandit, 50)
    for _ in range(20):
        bandit.learn(a_step("rules", 9.0))
    assert shares(bandit, 50) == before


def test_a_fixed_one_keeps_to_the_weights():
    bandit = Bandit({"a": 1.0, "b": 1.0}, adaptive=False)
    for _ in range(50):
        bandit.learn(a_step("a", 9.0, usd=1.0))
        bandit.learn(a_step("b", None, usd=2.0))
    assert shares(bandit)["a"] == pytest.approx(0.5, abs=0.05)


def test_a_gain_is_what_lies_above_the_parent():
    assert gain_of(a_step("a", 1.5, parent=1.0)) == pytest.approx(0.5)
    assert gain_of(a_step("a", 0.5, parent=1.0)) == 0.0
    assert gain_of(a_step("a", None)) == 0.0


def test_a_duplicate_gains_nothing_the_second_time():
    step = a_step("a", 1.5)
    again = replace(step.placement, outcome=Outcome.DUPLICATE)
    assert gain_of(replace(step, placement=again)) == 0.0


def test_arms_need_weights():
    with pytest.raises(ValueError, match="weights above 0"):
        Bandit({"a": 0.0})
