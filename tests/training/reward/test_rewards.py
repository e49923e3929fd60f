"""Every reward keeps the three rules, and gives the numbers that its formula says."""

import math

import pytest
from training_parts import judged

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import UsageError
from kernelsmith.training.reward.profiling import keep_probability, kept
from kernelsmith.training.reward.rewards import CHEAT, REWARDS, follows_rules, reward_named
from kernelsmith.training.reward.trial import Trial

EVERY = list(REWARDS.values())
TRITON = "@triton.jit\ndef k(x): pass\n\ndef f(x):\n    k[(1,)](x)\n"


def tried(speedup=None, verdict=Verdict.PASSED, *, parent=1.0, shown=(), source=TRITON, **more):
    return Trial(
        parent=None if parent is None else judged(parent),
        evaluation=judged(speedup, verdict, **more), source=source,
        shown=tuple(judged(each) for each in shown),
    )  # fmt: skip


@pytest.mark.parametrize("reward", EVERY, ids=lambda each: each.id)
def test_what_was_lost_gives_no_reward(reward):
    assert reward(Trial(lost="the machine went away")) is None


@pytest.mark.parametrize("reward", EVERY, ids=lambda each: each.id)
def test_a_cheat_gets_less_than_anything_honest(reward):
    honest = [Trial(rejection="no program")]
    honest += [
        tried(None, v)
        for v in Verdict
        if v not in (Verdict.PASSED, Verdict.CHEATED, Verdict.REFUSED)
    ]
    honest += [
        tried(s, own=o, lazy=z) for s in (0.01, 1.0, 9.0) for o in (None, 0.0) for z in (0, 1)
    ]
    for verdict in (Verdict.CHEATED, Verdict.REFUSED):
        assert reward(tried(None, verdict)) == CHEAT < min(reward(each) for each in honest)


@pytest.mark.parametrize("reward", EVERY, ids=lambda each: each.id)
@pytest.mark.parametrize("speedup", [0.001, 0.5, 1.0, 50.0])
def test_whatever_passes_is_worth_more_than_whatever_fails(reward, speedup):
    failed = max(
        reward(tried(None, v)) for v in (Verdict.WRONG, Verdict.CRASHED, Verdict.TIMED_OUT)
    )
    assert reward(tried(speedup, parent=4.0, shown=(3.0, 5.0))) > failed
    assert reward(tried(None)) > failed, "right, but nobody timed it"


def test_the_papers_reward_is_the_speedup_over_the_parent():
    assert reward_named("paper")(tried(3.0, parent=2.0)) == pytest.approx(1.5)
    assert reward_named("paper")(tried(3.0, parent=None)) == pytest.approx(3.0)


def test_a_gain_measured_beside_the_parent_goes_before_a_quotient():
    trial = Trial(
        parent=judged(2.0), evaluation=judged(3.0), gain=Ratio(value=1.2, low=1.1, high=1.3)
    )
    assert reward_named("paper")(trial) == 1.2


def test_robust_variants_bound_what_luck_can_bring():
    assert reward_named("clipped")(tried(90.0)) == 3.0
    assert reward_named("log")(tried(2.0)) == pytest.approx(2.0)
    assert reward_named("log")(tried(1e6)) == 4.0
    assert reward_named("log")(tried(2.0)) - reward_named("log")(tried(1.0)) == pytest.approx(1.0)


def test_inside_the_noise_the_interval_reward_sees_no_difference():
    reward = reward_named("interval")
    noisy = [reward(tried(speed, width=0.4)) for speed in (0.97, 1.0, 1.08)]
    assert noisy == [1.0, 1.0, 1.0]
    assert reward(tried(2.0)) < reward_named("log")(tried(2.0)), "only the sure part counts"
    assert reward(tried(0.5)) < 1.0


def test_autotriton_asks_for_a_kernel_that_is_launched():
    reward = reward_named("autotriton")
    assert reward(tried(1.1)) == 1.0
    assert reward(tried(5.0, source="def f(x): return torch.relu(x)")) < 0.1
    assert reward(tried(5.0, lazy=True)) < 0.1
    assert not follows_rules("@triton.jit\ndef k(x): pass\n\ndef f(x): return x.relu()\n")


def test_dr_kernels_reward_pays_for_own_work():
    reward = reward_named("dr-kernel")
    assert reward(tried(2.0, own=1.0)) == pytest.approx(0.5 + 1.0 + 0.5)
    assert reward(tried(2.0, own=0.2)) == pytest.approx(0.5 + 1.0 + 0.1)
    assert reward(tried(9.0, own=0.0)) == pytest.approx(0.5 + 1.5)


def test_lazy_answers_are_rarely_kept_and_wrong_ones_always():
    lazy, busy = tried(2.0, own=0.3), tried(2.0, own=0.4)
    half = tried(2.0, own=0.35)
    assert (keep_probability(lazy), keep_probability(busy)) == (0.0, pytest.approx(1.0))
    assert keep_probability(tried(None, Verdict.WRONG)) == 1.0
    assert keep_probability(lazy, fast_enough=1.5) == 1.0
    share = sum(kept([half] * 2000, seed=1)) / 2000
    assert share == pytest.approx(0.5, abs=0.05)


def test_the_contrastive_reward_is_relative_to_what_was_shown():
    reward = reward_named("contrastive")
    among = reward(tried(2.0, parent=1.0, shown=(1.0, 4.0)))
    above = reward(tried(2.0, parent=0.5, shown=(0.5, 1.0)))
    assert above > among
    assert reward(tried(1e9, shown=(1.0,))) == pytest.approx(1 + 2 * 1.5)


def test_a_reward_is_found_by_name_and_version():
    assert reward_named("paper/1").id == "paper/1"
    with pytest.raises(UsageError, match="no reward 'gold'; known are paper"):
        reward_named("gold")
    with pytest.raises(UsageError, match="another version"):
        reward_named("paper/9")


def test_a_trial_has_one_outcome():
    with pytest.raises(ValueError, match="one of them"):
        Trial(rejection="no", lost="no")
    assert math.isclose(tried(3.0, parent=1.5).over_parent.value, 2.0)
