"""Figures over tasks and seeds: known closed forms, and what must hold for any scores."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelsmith.bench.numbers.resampling import Draws, Grid, draw_tasks
from kernelsmith.bench.numbers.statistics import (
    Estimate,
    mean,
    quantile,
    stratified,
    wilson,
)
from kernelsmith.bench.numbers.statistics import estimate as estimated

SCORE = st.floats(min_value=-50, max_value=50, allow_nan=False)
ROWS = st.lists(st.lists(SCORE, min_size=1, max_size=4), min_size=1, max_size=12)


def dice(seed=0):
    return np.random.default_rng(seed)


def estimate(grid, combine, *, generator, resamples=2000, **options):
    draws = Draws.of(grid.seeds, generator, resamples=resamples)
    return estimated(grid, combine, draws, **options)


def test_the_mean_of_tasks_does_not_depend_on_how_many_seeds_each_has():
    grid = Grid.of([[1.0, 1.0, 1.0, 1.0], [3.0]])
    assert mean(grid.per_task[None])[0] == 2.0


def test_a_seed_that_says_nothing_leaves_its_task_to_the_others():
    grid = Grid.of([[math.nan, 4.0], [math.nan, math.nan], [2.0]])
    assert grid.per_task.tolist()[0] == 4.0
    assert math.isnan(grid.per_task[1])
    found = estimate(grid, mean, generator=dice())
    assert found is not None
    assert found.value == 3.0
    assert found.tasks == 2


def test_nothing_to_say_gives_no_figure_and_one_task_gives_no_interval():
    assert estimate(Grid.of([[math.nan], [math.nan]]), mean, generator=dice()) is None
    alone = estimate(Grid.of([[5.0, 7.0]]), mean, generator=dice())
    assert alone == Estimate(value=6.0, tasks=1)


def test_an_infinite_score_is_refused():
    with pytest.raises(ValueError, match="infinite"):
        Grid.of([[1.0], [math.inf]])


def test_an_empty_grid_is_refused():
    with pytest.raises(ValueError, match="at least one seed"):
        Grid.of([[1.0], []])


def test_the_interval_of_a_mean_is_students_for_normal_scores():
    values = dice(3).normal(2.0, 1.0, 200)
    found = estimate(Grid.of([[v] for v in values]), mean, generator=dice(), resamples=20_000)
    reach = 1.9720 * values.std(ddof=1) / math.sqrt(200)
    assert found.low == pytest.approx(values.mean() - reach, abs=0.01)
    assert found.high == pytest.approx(values.mean() + reach, abs=0.01)


def test_nineteen_of_twenty_intervals_hold_the_truth_with_ten_tasks():
    generator, held = dice(11), 0
    for _ in range(1000):
        grid = Grid.of([[v] for v in generator.normal(0.0, 1.0, 10)])
        found = estimate(grid, mean, generator=generator, resamples=400)
        held += found.low <= 0 <= found.high
    assert 0.92 <= held / 1000 <= 0.97


def test_seeds_add_to_the_spread_of_tasks():
    generator = dice(5)
    tasks = generator.normal(0, 1, (40, 1))
    noisy = Grid.of((tasks + generator.normal(0, 3, (40, 5))).tolist())
    levelled = Grid.of([[v] for v in noisy.per_task])
    wide = Draws.of(noisy.seeds, dice(), resamples=4000).means(noisy).std()
    # drawing seeds as well adds their variance, sigma^2 / (seeds * tasks), to that of tasks
    inside = noisy.values.var(axis=1).mean() / 5 / 40
    between = Draws.of(levelled.seeds, dice(), resamples=4000).means(levelled).std() ** 2
    assert wide**2 == pytest.approx(between + inside, rel=0.1)


def test_missing_seeds_are_never_drawn():
    grid = Grid.of([[1.0, 1.0, 1.0], [5.0]])
    draws = Draws.of(grid.seeds, dice(), resamples=500)
    assert (draws.per_task(grid) == np.where(draws.tasks == 0, 1.0, 5.0)).all()


@settings(max_examples=30, deadline=None)
@given(ROWS, st.integers(0, 50))
def test_both_ways_to_a_mean_agree(rows, seed):
    grid = Grid.of(rows)
    draws = Draws.of(grid.seeds, dice(seed), resamples=50)
    assert draws.means(grid) == pytest.approx(mean(draws.per_task(grid)), abs=1e-9)
    assert draws.weights.sum(axis=1) == pytest.approx(np.ones(50))


def test_two_systems_can_share_the_tasks_that_were_drawn():
    one, other = Grid.of([[1.0], [2.0]]), Grid.of([[1.0, 2.0], [3.0]])
    first = Draws.of(one.seeds, dice(), resamples=50)
    second = Draws.of(other.seeds, dice(), like=first)
    assert (first.tasks == second.tasks).all()


def test_strata_keep_their_sizes():
    groups = [0] * 3 + [1] * 7
    drawn = draw_tasks(10, dice(), 200, strata=groups)
    assert (drawn[:, :3] < 3).all()
    assert (drawn[:, 3:] >= 3).all()


def test_levels_weigh_the_same_however_many_tasks_they_have():
    grid = Grid.of([[1.0]] * 9 + [[5.0]])
    assert stratified([0] * 9 + [1])(grid.per_task[None])[0] == 3.0


def test_a_quantile_of_tasks_that_say_nothing_is_nothing():
    values = np.asarray([[math.nan, math.nan], [1.0, 3.0]])
    assert math.isnan(quantile(0.5)(values)[0])
    assert quantile(0.5)(values)[1] == 2.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.one_of(SCORE, st.just(math.nan)), min_size=1, max_size=9),
    st.floats(min_value=0, max_value=1),
)
def test_quantiles_are_numpys(values, share):
    row = np.asarray([values])
    if not np.isnan(row).all():
        assert quantile(share)(row)[0] == pytest.approx(np.nanquantile(row, share), abs=1e-9)


def test_wilson_gives_the_textbook_interval():
    low, high = wilson(0.8, 10)
    assert low == pytest.approx(0.4902, abs=1e-4)
    assert high == pytest.approx(0.9433, abs=1e-4)


def test_a_rate_at_which_all_tasks_agree_is_not_certain():
    found = estimate(Grid.of([[1.0]] * 10), mean, generator=dice(), bounds=(0, 1))
    assert found.high == 1.0
    assert found.low == pytest.approx(0.7225, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(ROWS, st.integers(0, 1000))
def test_an_estimate_lies_inside_its_interval_and_the_same_dice_give_the_same_one(rows, seed):
    grid = Grid.of(rows)
    first = estimate(grid, mean, generator=dice(seed), resamples=100)
    assert first == estimate(grid, mean, generator=dice(seed), resamples=100)
    if first.low is not None:
        assert first.low <= first.value + 1e-9
        assert first.high >= first.value - 1e-9


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=2, max_size=30), st.integers(0, 100))
def test_a_rate_and_its_interval_stay_between_0_and_1(passed, seed):
    grid = Grid.of([[float(each)] for each in passed])
    found = estimate(grid, mean, generator=dice(seed), resamples=100, bounds=(0, 1))
    assert 0 <= found.low <= found.value <= found.high <= 1


@settings(max_examples=40, deadline=None)
@given(ROWS, st.floats(min_value=-5, max_value=5))
def test_moving_every_score_moves_figure_and_interval(rows, by):
    moved = Grid.of([[value + by for value in row] for row in rows])
    a = estimate(Grid.of(rows), mean, generator=dice(1), resamples=100)
    b = estimate(moved, mean, generator=dice(1), resamples=100)
    assert b.value == pytest.approx(a.value + by, abs=1e-6)
    if a.low is not None:
        assert b.low == pytest.approx(a.low + by, abs=1e-6)
