"""The interval of a speed-up covers the truth as often as it says."""

import math
import time

import numpy as np
import pytest

from kernelsmith.domain.timing import Pair, Ratio
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.evaluate.timing.statistics import keep_usual, small_sample_factor, speedup

TRUE_LOG = math.log(1.5)


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def a_pair(
    generator: np.random.Generator, *, between: float = 0.01, within: float = 0.01, samples: int = 8
) -> Pair:
    """A pair whose processes are ``between`` apart and whose samples scatter by ``within``."""
    drift = generator.normal(0, 0.05, samples)  # common to both sides: must cancel
    logs = TRUE_LOG + generator.normal(0, between) + generator.normal(0, within, samples)
    return Pair(
        baseline_us=tuple(100 * np.exp(drift + logs)), candidate_us=tuple(100 * np.exp(drift))
    )


def coverage(*, pairs: int, between: float, within: float, trials: int) -> float:
    generator = seeded(pairs)
    hits = 0
    for _ in range(trials):
        drawn = [a_pair(generator, between=between, within=within) for _ in range(pairs)]
        ratio = speedup(drawn, generator=generator, resamples=200)
        hits += ratio.low <= 1.5 <= ratio.high
    return hits / trials


def test_identical_samples_give_the_exact_ratio_and_no_width():
    pair = Pair(baseline_us=(30.0,) * 5, candidate_us=(20.0,) * 5)
    ratio = speedup([pair] * 3, generator=seeded())
    assert ratio.value == pytest.approx(1.5)
    assert ratio.width < 1e-12


@pytest.mark.parametrize("pairs", range(3, 9))
@pytest.mark.parametrize(
    ("between", "within"), [(0.005, 0.003), (0.005, 0.02), (0.03, 0.003), (0.03, 0.02)]
)
def test_the_interval_covers_the_truth_in_nine_of_ten_cases_or_more(pairs, between, within):
    # 300 trials at a true 95 % fall below 91 % once in a thousand runs; the seed is fixed.
    assert coverage(pairs=pairs, between=between, within=within, trials=300) >= 0.90


@pytest.mark.parametrize("between", [0.005, 0.02])
def test_stopping_early_does_not_spend_the_coverage(between):
    generator, rule, hits = seeded(7), StopRule(), 0
    for _ in range(300):
        pairs: list[Pair] = []
        ratio = Ratio(value=1, low=0.5, high=2)
        while not pairs or not rule.enough(ratio, pairs, 0.0):
            pairs.append(a_pair(generator, between=between, within=0.003))
            ratio = speedup(pairs, generator=generator, resamples=200)
        hits += ratio.low <= 1.5 <= ratio.high
    assert hits / 300 >= 0.88


def test_one_pair_is_never_surer_than_fresh_processes_are_known_to_differ():
    pair = Pair(baseline_us=(30.0,) * 8, candidate_us=(20.0,) * 8)
    ratio = speedup([pair], generator=seeded())
    assert ratio.width == pytest.approx(2 * 1.96 * 0.02, rel=0.01)


def test_pairs_that_disagree_make_the_interval_wide_though_each_is_steady():
    steady = [Pair(baseline_us=(b,) * 50, candidate_us=(20.0,) * 50) for b in (29.0, 30.0, 31.0)]
    assert speedup(steady, generator=seeded()).width > 0.05


def test_one_stalled_sample_in_a_pair_moves_nothing():
    calm = [a_pair(seeded(i), samples=10) for i in range(3)]
    stalled = Pair(
        baseline_us=(*calm[0].baseline_us[:-1], 9000.0), candidate_us=calm[0].candidate_us
    )
    before = speedup(calm, generator=seeded())
    after = speedup([stalled, *calm[1:]], generator=seeded())
    assert after.value == pytest.approx(before.value, rel=0.005)
    assert after.width < 1.5 * before.width


def test_at_most_a_fifth_of_a_pair_is_dropped():
    logs = np.concatenate([seeded().normal(0, 0.01, 6), np.full(4, 1.0)])
    assert keep_usual(logs).size == 8
    assert keep_usual(np.concatenate([seeded().normal(0, 0.01, 3), [1.0]])).size == 4


def test_ordinary_scatter_is_not_dropped():
    logs = seeded(3).normal(0, 0.01, 1000)
    assert keep_usual(logs).size >= 995


def test_a_coarse_clock_does_not_turn_its_second_tick_into_an_outlier():
    logs = np.array([0.0, 0.0, 0.0, 0.0, 0.001])
    assert keep_usual(logs).size == 5


def test_the_same_generator_state_gives_the_same_interval():
    pairs = [a_pair(seeded(i)) for i in range(4)]
    assert speedup(pairs, generator=seeded(1)) == speedup(pairs, generator=seeded(1))


def test_three_pairs_need_more_expansion_than_eight():
    assert small_sample_factor(3) == pytest.approx(4.3027 / 1.96 * math.sqrt(1.5), rel=1e-3)
    assert small_sample_factor(8) < 1.3
    factors = [small_sample_factor(n) for n in range(2, 40)]
    assert factors == sorted(factors, reverse=True)


def test_pairs_may_hold_different_numbers_of_samples():
    pairs = [a_pair(seeded(i), samples=3 + i) for i in range(4)]
    assert speedup(pairs, generator=seeded()).value == pytest.approx(1.5, rel=0.03)


def test_a_call_with_three_pairs_of_eight_takes_a_few_milliseconds():
    pairs, generator = [a_pair(seeded(i)) for i in range(3)], seeded()
    took = []
    for _ in range(20):
        start = time.perf_counter()
        speedup(pairs, generator=generator)
        took.append(time.perf_counter() - start)
    assert min(took) < 0.005


def test_no_pairs_is_a_mistake_of_the_caller():
    with pytest.raises(ValueError, match="at least one pair"):
        speedup([], generator=seeded())
