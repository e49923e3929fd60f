"""Explained deviance: closed forms, a fit by another program, and what chance explains."""

import math

import numpy as np
import pytest

from kernelsmith.bench.numbers.deviance import Trial, explained


def dice(seed=0):
    return np.random.default_rng(seed)


def trials(passed, *, categories=2, systems=2, tasks=20):
    """``passed(category, system, task)`` for each task of each category under each system."""
    return [
        Trial(
            task=f"t{category}-{task}", category=f"c{category}", system=f"s{system}",
            passed=bool(passed(category, system, task)),
        )
        for category in range(categories)
        for task in range(tasks)
        for system in range(systems)
    ]  # fmt: skip


def share(found, name):
    return next(factor for factor in found.factors if factor.name == name)


def test_a_category_that_decides_everything_explains_everything():
    found = explained(trials(lambda category, system, task: category == 0), generator=dice())
    assert share(found, "category").alone == pytest.approx(1.0)
    assert share(found, "category").p < 0.01
    assert share(found, "system").alone == pytest.approx(0.0, abs=1e-9)
    assert found.both == pytest.approx(1.0)


def test_one_factor_alone_is_the_closed_form():
    # category 0 passes 15 of 20, category 1 passes 5 of 20, for both systems alike
    found = explained(trials(lambda c, s, t: t < (15, 5)[c]), generator=dice())
    null, fitted = 2 * 80 * math.log(2), -2 * 80 * (0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert share(found, "category").alone == pytest.approx(1 - fitted / null)
    assert share(found, "category").beside == pytest.approx(1 - fitted / null, abs=1e-6)


def test_both_factors_agree_with_a_logistic_regression_fitted_elsewhere():
    linear_model = pytest.importorskip("sklearn.linear_model")
    generator = dice(3)
    data = trials(
        lambda c, s, t: generator.random() < 1 / (1 + math.exp(-(c - 1.5) - 0.7 * s)),
        categories=4, systems=3, tasks=25,
    )  # fmt: skip
    y = np.asarray([t.passed for t in data], dtype=float)
    x = np.asarray(
        [[t.category == f"c{c}" for c in range(1, 4)] + [t.system == f"s{s}" for s in (1, 2)]
         for t in data], dtype=float,
    )  # fmt: skip
    fitted = linear_model.LogisticRegression(C=np.inf, tol=1e-10, max_iter=5000).fit(x, y)
    rates = fitted.predict_proba(x)[:, 1]
    deviance = -2 * (y * np.log(rates) + (1 - y) * np.log(1 - rates)).sum()
    p = y.mean()
    null = -2 * y.size * (p * math.log(p) + (1 - p) * math.log(1 - p))
    assert explained(data, generator=dice()).both == pytest.approx(1 - deviance / null, abs=1e-6)


def test_many_categories_explain_something_by_chance_and_the_adjusted_share_does_not():
    generator = dice(7)
    data = trials(lambda c, s, t: generator.random() < 0.5, categories=15, systems=5, tasks=6)
    category = share(explained(data, generator=dice()), "category")
    assert category.alone > 0.015
    assert category.by_chance == pytest.approx(category.alone, abs=0.02)
    assert abs(category.adjusted) < 0.02
    assert category.p > 0.05


def test_groups_that_always_pass_do_not_upset_the_fit():
    found = explained(
        trials(lambda c, s, t: c == 0 or (s == 0 and t % 2), categories=3), generator=dice()
    )
    assert 0 < found.both <= 1
    assert found.both >= share(found, "category").alone - 1e-9


def test_systems_are_shuffled_inside_their_tasks():
    # every task is passed by exactly one of two systems, always the first: nothing to do with tasks
    found = explained(trials(lambda c, s, t: s == 0), generator=dice())
    assert share(found, "system").alone == pytest.approx(1.0)
    assert share(found, "system").p < 0.01
    assert share(found, "category").p == 1.0


@pytest.mark.parametrize(
    "data",
    [
        [],
        trials(lambda c, s, t: True),
        trials(lambda c, s, t: False),
        trials(lambda c, s, t: t % 2, systems=1),
        trials(lambda c, s, t: t % 2, categories=1),
    ],
    ids=["nothing", "all pass", "none pass", "one system", "one category"],
)
def test_where_there_is_nothing_to_explain_nothing_is_said(data):
    assert explained(data, generator=dice()) is None
