"""Sampling goes on while the interval is wide, and stops at every stated limit."""

import pytest

from kernelsmith.domain.timing import Pair, Ratio
from kernelsmith.evaluate.timing.sampling import StopRule, batch_size

NARROW = Ratio(value=2.0, low=1.99, high=2.01)
WIDE = Ratio(value=2.0, low=1.8, high=2.2)


def pairs(count: int, *, samples: int = 8) -> list[Pair]:
    return [Pair(baseline_us=(2.0,) * samples, candidate_us=(1.0,) * samples)] * count


def test_a_narrow_interval_over_three_pairs_is_enough():
    assert StopRule().enough(NARROW, pairs(3), 1.0)
    assert not StopRule().noisy(NARROW, pairs(3))


def test_a_narrow_interval_over_two_pairs_is_not():
    assert not StopRule().enough(NARROW, pairs(2), 1.0)


def test_pairs_of_too_few_samples_do_not_count_as_founded():
    assert not StopRule(min_samples=5).enough(NARROW, pairs(3, samples=4), 1.0)


def test_a_wide_interval_calls_for_more_until_the_pairs_run_out():
    assert not StopRule().enough(WIDE, pairs(7), 1.0)
    assert StopRule().enough(WIDE, pairs(8), 1.0)
    assert StopRule().noisy(WIDE, pairs(8))


def test_a_spent_budget_ends_it_and_one_pair_is_called_noisy_however_narrow():
    assert StopRule(budget_s=10).enough(NARROW, pairs(1), 10.0)
    assert StopRule(budget_s=10).noisy(NARROW, pairs(1))


@pytest.mark.parametrize("changes", [{"target_width": 0}, {"min_pairs": 9}, {"budget_s": 0}])
def test_an_impossible_rule_is_refused(changes):
    with pytest.raises(ValueError, match="got StopRule"):
        StopRule(**changes)


def test_short_kernels_get_many_launches_and_long_ones_get_one():
    assert batch_size(4.0, 1024) == 1000
    assert batch_size(5000.0, 1024) == 1


def test_memory_limits_the_batch_but_never_below_one():
    assert batch_size(1.0, 1 << 20, max_bytes=100 << 20) == 100
    assert batch_size(1.0, 1 << 30, max_bytes=1 << 20) == 1


def test_a_launch_too_short_to_see_does_not_ask_for_endless_inputs():
    assert batch_size(1e-6, 0) == 2048


def test_a_launch_without_duration_is_refused():
    with pytest.raises(ValueError, match="takes time"):
        batch_size(0.0, 8)
