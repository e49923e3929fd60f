"""Random graphs: what a rule writes computes what stood there."""

import os

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rewrite_aims import graphs_for
from rewrite_graphs import ANY, SMOOTH, graphs
from rewrite_pairs import STEPS, pair, pairs
from rewrite_values import FINITE, INFINITE, KINDS, holds

from kernelsmith.propose.rules.rewrite.algebra import monotone, ranges, reductions, tidy
from kernelsmith.propose.rules.rewrite.algebra.catalogue import RULES
from kernelsmith.propose.rules.rewrite.cost import Peaks
from kernelsmith.propose.rules.rewrite.search import apply, search

MOST = ("normal", "near", "large", "zeros", "some zeros", *INFINITE)
EXAMPLES = int(os.environ.get("REWRITE_EXAMPLES", "100"))
usual = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def check_at(arena, site, rule, *, seed, kinds):
    """Hold the node that a rule writes against the one that stood there, where it fits.

    The nodes themselves are compared, not what follows from them: nothing hides a difference, and
    nothing blows up a rounding. A rule that is not for finite values alone must keep infinities.
    """
    new = apply(arena, (site,), rule, site)
    if new is None:
        return None
    try:
        return holds(arena, (site,), new, seed=seed, kinds=kinds, finite=rule.finite)
    except AssertionError as error:
        raise AssertionError(f"{rule.name} at {arena[site]}: {error}") from error


@usual
@given(graphs(), st.integers(0, 99))
def test_every_rule_at_every_site_keeps_the_value(drawn, seed):
    arena, roots = drawn
    for site in arena.reachable(roots):
        for rule in RULES:
            check_at(arena, site, rule, seed=seed, kinds=("normal", "some zeros", "infinities"))


def test_every_rule_keeps_the_value_after_any_two_steps():
    """All pairs are tried with ``REWRITE_EXAMPLES=2000``, otherwise those that rules look for."""
    tried = set()
    for number, (first, second) in enumerate(pairs(everything=EXAMPLES >= 2000)):
        made = pair(first, second)
        if made is not None:
            arena, site = made
            for rule in RULES:
                found = check_at(arena, site, rule, seed=number % 7, kinds=MOST)
                if found is not None:
                    tried.add(rule.name)
    assert {"choose-then-compute", "within-bounds", "shift-invariance", "clamps-compose",
            "centred-shift", "pool-before-affine", "log-softmax"} <= tried  # fmt: skip


def test_every_operator_of_the_tables_is_drawn():
    """A rule that is wrong about one of them is seen only where it stands in a graph."""
    tables = {*monotone._RISING, *monotone._FROM, *ranges._OWN, *ranges._HANDED, *tidy._FOLDED,
              *tidy._SAME_TWICE, *reductions._CASES}  # fmt: skip
    single = {name.split()[0] for name in STEPS}
    elsewhere = {"reshape", "permute", "expand", "slice", "matmul", "conv_transpose", "neg"}
    assert set(ANY) <= single
    assert tables <= single | elsewhere


@usual
@given(graphs(steps=(3, 7), unary=SMOOTH), st.integers(0, 99))
def test_what_the_search_finds_keeps_the_value(drawn, seed):
    arena, roots = drawn
    free = Peaks(launch_us=0.0)
    for found in search(arena, roots, free)[:3]:
        try:
            holds(arena, roots, found.roots, seed=seed, kinds=FINITE[:-1], finite=True)
        except AssertionError as error:
            raise AssertionError(f"{found.names}: {error}") from error


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
            found = check_at(arena, site, rule, seed=seed, kinds=kinds)
            if found is not None:
                times["fits"] += 1
                times["compared"] += found

    check()
    assert times["fits"] >= 5, times
    assert times["compared"] >= 5, times
