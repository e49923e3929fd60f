"""Advantages: the trap of the standard deviation, and the bias that Dr. Kernel found."""

import itertools
import math

import pytest

from kernelsmith.errors import UsageError
from kernelsmith.training.reward.advantages import (
    estimator_named,
    grpo,
    loo,
    mean,
    over_turns,
    returns,
)
from kernelsmith.training.reward.mismatch import Correction

EAGER = [0.0, 1.0, 3.0, 8.0]
"""Speed-ups over the baseline of one group; its parent has 4."""
PARENT = [each / 4 for each in EAGER]


def test_with_group_deviations_the_parents_baseline_has_no_effect():
    """The trap: all of a group share the parent, and dividing by the deviation takes it out."""
    assert grpo(EAGER) == pytest.approx(grpo(PARENT), abs=1e-3)


@pytest.mark.parametrize("estimate", [mean, loo])
def test_without_the_division_it_has_one(estimate):
    assert max(abs(a - b) for a, b in zip(estimate(EAGER), estimate(PARENT), strict=True)) > 3


def test_a_bound_makes_it_matter_even_with_deviations():
    bounded = [grpo([min(each, 3.0) for each in rewards]) for rewards in (EAGER, PARENT)]
    assert max(abs(a - b) for a, b in zip(*bounded, strict=True)) > 0.3


def test_leaving_oneself_out_is_the_mean_stretched():
    stretched = [each * 4 / 3 for each in mean(EAGER)]
    assert loo(EAGER) == pytest.approx(stretched)


def test_what_was_lost_moves_nobody():
    for estimate in (grpo, mean, loo):
        with_lost = estimate([1.0, None, 3.0])
        assert with_lost[1] == 0.0
        assert [with_lost[0], with_lost[2]] == pytest.approx(estimate([1.0, 3.0]))
        assert estimate([1.0, None]) == [0.0, 0.0]


def test_an_unknown_estimator_is_named():
    with pytest.raises(UsageError, match="no advantage 'ppo'; known are grpo, mean, loo, trloo"):
        estimator_named("ppo")


def test_returns_add_up_what_comes_after():
    assert returns([1.0, 2.0, 4.0]) == [7.0, 6.0, 4.0]
    assert returns([1.0, 2.0], gamma=0.5) == [2.0, 2.0]
    assert returns([1.0, None, 4.0]) == [5.0, None, 4.0]


# A game of two turns, small enough to add up every course of it. In each turn the policy wins with
# probability p = sigmoid(theta), which brings 1 in the first turn and 3 in the second; whoever
# loses the first turn does not get to the second, so the group of the second turn is smaller.
THETA = (0.4, -0.3)


def _sigmoid(x):
    return 1 / (1 + math.exp(-x))


def _exact_gradient():
    """Of the expected return: p1 * (1 + 3 p2)."""
    first, second = (_sigmoid(each) for each in THETA)
    return (first * (1 - first) * (1 + 3 * second), first * second * (1 - second) * 3)


def _expected_gradient(estimator, group):
    """What a policy gradient with this estimator expects, over all courses of ``group`` games."""
    p = [_sigmoid(each) for each in THETA]
    courses = {(0,): 1 - p[0], (1, 0): p[0] * (1 - p[1]), (1, 1): p[0] * p[1]}
    total = [0.0, 0.0]
    for games in itertools.product(courses, repeat=group):
        chance = math.prod(courses[each] for each in games)
        rewards = [[won * (1.0, 3.0)[turn] for turn, won in enumerate(each)] for each in games]
        advantages = over_turns(rewards, estimator)
        for game, own in zip(games, advantages, strict=True):
            for turn, (won, advantage) in enumerate(zip(game, own, strict=True)):
                total[turn] += chance * advantage * (won - p[turn]) / group
    return tuple(total)


@pytest.mark.parametrize("group", [2, 3, 4])
def test_turn_level_leave_one_out_is_unbiased_and_self_inclusion_is_not(group):
    """Dr. Kernel's finding: a baseline that holds the answer itself shrinks its gradient, and by
    another factor in each turn, as fewer episodes get there: the direction is wrong."""
    exact = _exact_gradient()
    fair, biased = _expected_gradient(loo, group), _expected_gradient(mean, group)
    assert fair == pytest.approx(exact, rel=1e-9)
    shrunk = [found / right for found, right in zip(biased, exact, strict=True)]
    assert shrunk[0] == pytest.approx((group - 1) / group)
    assert abs(shrunk[1] - shrunk[0]) > 0.02, "another factor: the direction is off"


def test_episodes_are_compared_turn_by_turn():
    advantages = over_turns([[1.0, 2.0], [0.0], [1.0, 0.0]], loo)
    assert [len(each) for each in advantages] == [2, 1, 2]
    assert advantages[0][1] == pytest.approx(2.0)
    assert advantages[2][1] == pytest.approx(-2.0)
    assert advantages[0][0] == pytest.approx(3.0 - 0.5)


def test_a_mismatch_beyond_the_bounds_drops_an_answer():
    correction = Correction()
    same = [-0.5, -1.0, -2.0]
    assert correction.weight(same, same) == 1.0
    assert correction.weight([each + 0.01 for each in same], same) == 0.0
    assert Correction(low=0.9, high=1.1).weight([each + 0.01 for each in same], same) > 1.0
    one_impossible = [-0.5, -1.0, -30.0]
    assert Correction(low=1e-9, high=9.0).weight(one_impossible, same) == 0.0
    with pytest.raises(ValueError, match="same answer"):
        correction.weight([0.0], same)
