"""Evolution, and the controls that it must beat."""

import pytest
from searches import a_search, run, told

from kernelsmith.search.config import POLICY_NAMES
from kernelsmith.search.policies import POLICIES
from kernelsmith.testing import a_failure, a_pass


def source_of_parent(search):
    parent = search.ask().parent
    return None if parent is None else parent.candidate.source


def test_every_policy_that_can_be_named_is_there():
    assert tuple(POLICIES) == POLICY_NAMES


@pytest.mark.parametrize("policy", POLICY_NAMES)
def test_every_policy_takes_any_number_of_steps_and_is_the_same_twice(policy):
    first, second = a_search(2, policy=policy), a_search(2, policy=policy)
    assert run(first, 150, in_flight=5) == run(second, 150, in_flight=5)
    assert first.fingerprint() == second.fingerprint()
    assert first.best is not None


@pytest.mark.parametrize("policy", [name for name in POLICY_NAMES if name != "evolve"])
def test_controls_have_one_island(policy):
    assert len(a_search(policy=policy, islands=4).islands) == 1


def test_best_of_n_knows_nothing_of_the_others():
    search = a_search(policy="best-of-n")
    run(search, 50)
    told(search, a_failure("x"))
    brief = search.ask()
    assert (brief.parent, brief.inspirations, brief.failures) == (None, (), ())


def test_refine_follows_one_chain_and_leaves_out_what_is_worse():
    search = a_search(policy="refine")
    assert source_of_parent(search) is None
    search = a_search(policy="refine")
    for source, speedup, head in (
        ("a", 1.500, "a"),
        ("b", 1.501, "b"),
        ("c", 1.200, "b"),
        ("d", 2.000, "d"),
    ):
        told(search, a_pass(source, speedup))
        brief = search.ask()
        assert brief.parent.candidate.source == head
        assert brief.inspirations == ()
        search.tell(brief, None, None, rejection="nothing")


def test_greedy_improves_the_best_beside_the_next_best():
    search = a_search(policy="greedy", inspirations=2)
    for size, speedup in ((1, 1.1), (20, 3.5), (100, 2.2), (300, 0.9)):
        told(search, a_pass("+".join("x" * size), speedup))
    brief = search.ask()
    assert brief.parent.candidate.source.count("x") == 20
    assert [each.candidate.source.count("x") for each in brief.inspirations] == [100, 1]


def test_random_draws_from_all_that_passed_and_not_from_elites_alone():
    search = a_search(policy="random")
    sources = [f"x  # {index}" for index in range(5)]
    for source in sources:
        told(search, a_pass(source, 1.5))
    told(search, a_failure("y"))
    assert len(search.islands[0]) == 1
    assert {source_of_parent(search) for _ in range(100)} == set(sources)


def shares(**changes):
    """Parents of 400 asks, by the number of terms in their source."""
    search = a_search(islands=1, **{"pursue": 0} | changes)
    for size, speedup in ((1, 1.1), (20, 1.1), (100, 1.1), (300, 9.0)):
        told(search, a_pass("+".join("x" * size), speedup))
    drawn = []
    for _ in range(400):
        brief = search.ask()
        drawn.append(brief.parent.candidate.source.count("x"))
        search.tell(brief, None, None, rejection="nothing")
    return {size: drawn.count(size) / 400 for size in (1, 20, 100, 300)}


def test_exploiting_prefers_the_best_and_exploring_the_least_used():
    greedy, even = shares(exploit=1.0, explore=0.0), shares(exploit=0.0, explore=1.0)
    followed = shares(pursue=10**6)
    assert greedy[300] == max(greedy.values())
    assert followed[300] == pytest.approx(0.9, abs=0.1), "a new best is pursued first"
    assert greedy[300] > 0.3
    assert all(share == pytest.approx(0.25, abs=0.03) for share in even.values())
