"""Whether two systems differ: known p-values, symmetry, and levels that tests keep."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.bench.numbers.resampling import Draws, Grid
from kernelsmith.bench.numbers.significance import holm, sign_test, signed_rank_test
from kernelsmith.bench.numbers.significance import paired_difference as paired
from kernelsmith.bench.numbers.statistics import mean

DIFFERENCES = st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=25)


def dice(seed=0):
    return np.random.default_rng(seed)


def column(values):
    return Grid.of([[float(value)] for value in values])


def paired_difference(a, b, combine, *, generator, resamples=2000, **options):
    first = Draws.of(a.seeds, generator, resamples=resamples)
    second = Draws.of(b.seeds, generator, like=first)
    return paired(a, b, combine, (first, second), **options)


@pytest.mark.parametrize(
    ("wins", "losses", "p"), [(9, 1, 22 / 1024), (5, 5, 1.0), (6, 0, 2 / 64), (0, 0, 1.0)]
)
def test_the_sign_test_is_the_binomials(wins, losses, p):
    found = sign_test([1.0] * wins + [-1.0] * losses + [0.0] * 3)
    assert found.p == pytest.approx(p)
    assert (found.wins, found.losses, found.ties) == (wins, losses, 3)


def test_signed_ranks_agree_with_the_table():
    # all of 5 positive: 1 of 32 signings on each side
    assert signed_rank_test([1.0, 2.0, 3.0, 4.0, 5.0]).p == pytest.approx(2 / 32)
    # n = 10, W = 8: 25 of 1,024 signings have a sum of 8 or less
    ranks = [-1.0, 2.0, 3.0, 4.0, 5.0, 6.0, -7.0, 8.0, 9.0, 10.0]
    assert signed_rank_test(ranks).p == pytest.approx(2 * 25 / 1024)


def test_signed_ranks_agree_with_scipy_without_ties():
    scipy_stats = pytest.importorskip("scipy.stats")
    values = dice(2).normal(0.3, 1.0, 40)
    expected = scipy_stats.wilcoxon(values, method="exact").pvalue
    assert signed_rank_test(values).p == pytest.approx(expected, rel=1e-9)


def test_signed_ranks_with_ties_and_zeros_are_all_signings_counted():
    values = [0.0, 1.0, 1.0, -1.0, 2.0, 2.0, -3.0, 4.0]
    ranks = [3.0, 3.0, 3.0, 5.5, 5.5, 7.0, 8.0]  # the zero takes rank 1 and leaves
    plus = 3.0 + 3.0 + 5.5 + 5.5 + 8.0
    sums = [
        sum(rank for index, rank in enumerate(ranks) if signing >> index & 1)
        for signing in range(2**7)
    ]
    low = min(plus, sum(ranks) - plus)
    assert signed_rank_test(values).p == pytest.approx(2 * sum(s <= low for s in sums) / 2**7)


def test_five_hundred_tasks_do_not_overflow():
    assert 0 < signed_rank_test(np.arange(1.0, 501.0)).p < 1e-80


def test_missing_differences_take_no_part():
    assert sign_test([math.nan, 1.0, math.nan]).tasks == 1
    assert sign_test([math.nan]) is None
    assert signed_rank_test([]) is None


@settings(max_examples=60, deadline=None)
@given(DIFFERENCES)
def test_which_system_stands_first_does_not_matter(values):
    for test in (sign_test, signed_rank_test):
        here, there = test(values), test([-v for v in values])
        assert here.p == pytest.approx(there.p)
        assert (here.wins, here.losses) == (there.losses, there.wins)
        assert 0 < here.p <= 1


def test_a_paired_difference_is_narrower_than_the_spread_of_tasks():
    hard = dice(4).normal(0, 5, 60)
    found, p = paired_difference(
        column(hard + 0.2 + dice(5).normal(0, 0.1, 60)), column(hard), mean, generator=dice()
    )
    assert found.value == pytest.approx(0.2, abs=0.05)
    assert found.high - found.low < 0.1
    assert p < 0.01


def test_equal_systems_do_not_differ():
    found, p = paired_difference(column([1, 2, 3]), column([1, 2, 3]), mean, generator=dice())
    assert (found.value, found.low, found.high, p) == (0.0, 0.0, 0.0, 1.0)


def test_a_task_where_one_side_says_nothing_is_left_out_of_both():
    a, b = column([math.log(2), math.log(4), math.nan]), column([0.0, math.log(2), math.log(100)])
    found, _ = paired_difference(a, b, mean, generator=dice(), scale=math.exp)
    assert found.value == pytest.approx(2.0)
    assert found.tasks == 2
    assert paired_difference(column([1, math.nan]), column([1, 2]), mean, generator=dice()) is None


def wrongly_seen(tasks, draw, *, trials=400):
    """How often equals are called different."""
    generator, seen = dice(8), 0
    for _ in range(trials):
        a, b = draw(generator, (2, tasks))
        found, p = paired_difference(column(a), column(b), mean, generator=generator, resamples=300)
        seen += p < 0.05 and not found.low <= 0 <= found.high
    return seen / trials


@pytest.mark.parametrize("tasks", [6, 10, 30])
@pytest.mark.parametrize("name", ["normal", "exponential"])
def test_one_in_twenty_comparisons_of_equals_is_significant(tasks, name):
    draw = getattr(np.random.Generator, f"standard_{name}")
    assert 0.01 <= wrongly_seen(tasks, draw) <= 0.085


@pytest.mark.parametrize("tasks", [2, 3, 5])
def test_few_tasks_show_no_difference_whatever_they_are(tasks):
    assert wrongly_seen(tasks, np.random.Generator.standard_normal, trials=100) == 0
    _, p = paired_difference(
        column(range(1, tasks + 1)), column([0] * tasks), mean, generator=dice()
    )
    assert p >= sign_test([1.0] * tasks).p > 0.05


def test_a_p_below_one_in_twenty_stands_beside_an_interval_without_zero():
    generator = dice(3)
    for tasks in (6, 7, 9, 15):
        for shift in np.linspace(0.2, 1.5, 15):
            a, b = generator.exponential(1, (2, tasks)) ** 2
            found, p = paired_difference(column(a + shift), column(b), mean, generator=generator)
            assert (p < 0.05) <= (not found.low <= 0 <= found.high)


def test_a_difference_of_shares_stays_between_the_shares_there_are():
    found, _ = paired_difference(
        column([0, 1, 0]), column([1, 0, 1]), mean, generator=dice(), bounds=(-1.0, 1.0)
    )
    assert (found.low, found.high) == (-1.0, 1.0)
    assert found.value == pytest.approx(-1 / 3)


def test_different_task_sets_cannot_be_paired():
    with pytest.raises(ValueError, match="same tasks"):
        paired_difference(column([1, 2]), column([1]), mean, generator=dice())


def test_holm_corrects_stepwise():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []
