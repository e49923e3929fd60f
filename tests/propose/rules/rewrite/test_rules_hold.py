"""Random graphs: what a rule writes computes what stood there."""

import os

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rewrite_aims import graphs_for
from rewrite_graphs import KINDS, graphs, holds, run

from kernelsmith.propose.rules.rewrite.algebra.catalogue import RULES
from kernelsmith.propose.rules.rewrite.cost import Peaks
from kernelsmith.propose.rules.rewrite.search import apply, search

EXAMPLES = int(os.environ.get("REWRITE_EXAMPLES", "100"))
usual = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


@usual
@given(graphs(), st.integers(0, 99))
def test_every_rule_at_every_site_keeps_the_value(drawn, seed):
    arena, roots = drawn
    for site in arena.reachable(roots):
        for rule in RULES:
            new = apply(arena, roots, rule, site)
            if new is not None:
                try:
                    holds(arena, roots, new, seed=seed, kinds=("normal", "large", "some zeros"))
                except AssertionError as error:
                    raise AssertionError(f"{rule.name}: {error}") from error


@usual
@given(graphs(steps=(3, 7)), st.integers(0, 99))
def test_what_the_search_finds_keeps_the_value(drawn, seed):
    arena, roots = drawn
    free = Peaks(launch_us=0.0)
    for found in search(arena, roots, free)[:3]:
        try:
            holds(arena, roots, found.roots, seed=seed)
        except AssertionError as error:
            raise AssertionError(f"{found.names}: {error}") from error


ALL_VALUES = ("size-one-reduction", "reductions-compose", "cancelling-pair", "within-bounds",
              "clamps-compose", "pools-compose", "choose-then-compute")  # fmt: skip


@usual
@given(graphs(ranks=(2, 3), steps=(1, 4)), st.integers(0, 99))
def test_rules_that_claim_all_values_keep_infinities_and_nan(drawn, seed):
    arena, roots = drawn
    shape = next(n.shape for n in arena.nodes if n.op == "input")
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(shape, generator=generator, dtype=torch.float64)
    pick = torch.randint(0, 8, shape, generator=generator)
    for number, value in enumerate((torch.inf, -torch.inf, torch.nan)):
        x = torch.where(pick == number, torch.tensor(value, dtype=torch.float64), x)
    try:
        want, _ = run(arena, roots, given={"x": x}, seed=seed)
    except ValueError:
        return  # torch refuses a group norm of one value in all
    for rule in (each for each in RULES if each.name in ALL_VALUES):
        assert not rule.finite
        for site in arena.reachable(roots):
            new = apply(arena, roots, rule, site)
            if new is not None:
                found, _ = run(arena, new, given={"x": x}, seed=seed)
                for f, w in zip(found, want, strict=True):
                    near = torch.isclose(f, w, rtol=1e-9, atol=1e-9, equal_nan=True)
                    assert bool(near.all()), (rule.name, f, w)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_keeps_the_value_where_it_is_meant_to_fit(rule):
    times = {"fits": 0, "compared": 0}

    few = rule.name == "triangular-product"  # large matrices, where one draw is like another

    @settings(usual, max_examples=8 if few else max(EXAMPLES // 3, 50))
    @given(graphs_for(rule.name), st.integers(0, 99))
    def check(drawn, seed):
        arena, roots = drawn
        kinds = ("normal",) if few else KINDS
        for site in arena.reachable(roots):
            new = apply(arena, roots, rule, site)
            if new is not None:
                times["fits"] += 1
                times["compared"] += holds(arena, roots, new, seed=seed, kinds=kinds)

    check()
    assert times["fits"] >= 5, times
    assert times["compared"] >= 5, times
