"""Ask and tell: in order, seeded, bounded, and the same run every time."""

import dataclasses
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from searches import TASK, a_pair, a_search, run, told

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.trajectory import Outcome, Role
from kernelsmith.errors import UsageError
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.descriptors import cell_of, descriptors
from kernelsmith.testing import a_failure, a_pass


def test_the_first_brief_holds_the_task_and_nothing_else():
    brief = a_search().ask()
    assert (brief.number, brief.task, brief.backend, brief.island) == (0, TASK, "null", 0)
    assert (brief.parent, brief.inspirations, brief.failures) == (None, (), ())


def test_asks_are_numbered_and_go_round_the_islands():
    search = a_search(islands=3)
    briefs = [search.ask() for _ in range(7)]
    assert [brief.number for brief in briefs] == list(range(7))
    assert [brief.island for brief in briefs] == [0, 1, 2, 0, 1, 2, 0]
    assert len({brief.seed for brief in briefs}) == 7
    assert all(0 <= brief.seed < 2**31 for brief in briefs)


def test_tells_are_applied_in_the_order_of_the_asks():
    search = a_search()
    first, second = search.ask(), search.ask()
    with pytest.raises(UsageError, match="number 0 is next, got number 1"):
        search.tell(second, *a_pass("x", 1.0))
    assert search.told == 0, "a refused tell changes nothing"
    search.tell(first, *a_pass("x", 1.0))
    with pytest.raises(UsageError, match="number 1 is next, got number 0"):
        search.tell(first, *a_pass("y", 1.0))
    search.tell(second, *a_pass("z", 1.0))
    assert (search.asked, search.told) == (2, 2)


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ((None, None, {}), "a candidate, or the reason"),
        ((a_pass("x", 1.0)[0], None, {"rejection": "no code"}), "a candidate, or the reason"),
        ((a_pass("x", 1.0)[0], None, {}), "was never judged"),
        ((a_pass("x", 1.0)[0], a_pass("y", 1.0)[1], {}), "with its own candidate"),
        ((*a_pass("x", 1.0), {"lost": "the device fell off"}), "not as lost"),
        ((None, None, {"rejection": "no code", "lost": "gone"}), "cannot have been lost"),
    ],
)
def test_a_tell_says_exactly_one_thing(told, why):
    search = a_search()
    candidate, evaluation, more = told
    with pytest.raises(UsageError, match=why):
        search.tell(search.ask(), candidate, evaluation, **more)
    assert search.told == 0


def test_the_best_changes_beyond_noise_only():
    search = a_search()
    assert search.best is None
    assert told(search, a_pass("x", 1.5)).is_best
    assert not told(search, a_pass("x*1", 1.505)).is_best
    assert not told(search, a_failure("y")).is_best
    assert told(search, a_pass("z", 2.0)).is_best
    assert search.best.candidate.source == "z"


def test_a_duplicate_is_recognised_before_and_after_it_is_told():
    search = a_search()
    candidate, evaluation = a_pass("x", 1.5)
    assert search.known(candidate.id) is None
    told(search, (candidate, evaluation))
    assert search.known(candidate.id) is evaluation
    before = search.qd_score
    for again in (None, a_pass("x", 9.0)[1]):
        placed = told(search, (dataclasses.replace(candidate, parent="c0ffee"), again))
        assert (placed.outcome, placed.gained) == (Outcome.DUPLICATE, 0.0)
    assert search.known(candidate.id) is evaluation
    assert search.qd_score == before


def test_what_was_rejected_or_lost_is_counted_and_not_known():
    search = a_search()
    placed = search.tell(search.ask(), None, None, rejection="the reply holds no code")
    assert placed.outcome is Outcome.REJECTED
    candidate, evaluation = a_pass("x", 1.5)
    placed = search.tell(search.ask(), candidate, None, lost="the device stopped answering")
    assert placed.outcome is Outcome.LOST
    assert search.known(candidate.id) is None
    assert told(search, (candidate, evaluation)).outcome is Outcome.NEW


def test_failures_never_become_elites_and_are_shown_instead():
    search = a_search(islands=1)
    for verdict in (each for each in Verdict if each is not Verdict.PASSED):
        placed = told(search, a_failure(f"x  # {verdict}", verdict, f"{verdict}: so"))
        assert placed.outcome is Outcome.FAILED
        assert placed.cell is None
    assert list(search.cells()) == []
    assert search.best is None
    told(search, a_pass("x", 1.5))
    brief = search.ask()
    assert [each.role for each in brief.failures] == [Role.FAILURE] * 3
    assert [each.evaluation.verdict for each in brief.failures] == ["cheated", "wrong", "timed_out"]
    assert brief.parent.candidate.source == "x"


def test_failures_are_bounded_and_distinct_by_verdict_and_first_line():
    search = a_search(failures=16, failures_kept=16)
    for index in range(100):
        told(search, a_failure(f"x  # {index}", Verdict.WRONG, "the same\nand more"))
    told(search, a_pass("x", 1.5))
    assert [each.candidate.source for each in search.ask().failures] == ["x  # 99"]
    search = a_search(failures=16, failures_kept=16)
    for index in range(100):
        told(search, a_failure(f"x  # {index}", Verdict.WRONG, f"line {index}"))
    told(search, a_pass("x", 1.5))
    assert len(search.ask().failures) == 16


def test_while_nothing_passed_the_parent_is_a_failure_that_came_far():
    search = a_search(explore=0.0)
    told(search, a_failure("x", Verdict.BUILD_FAILED, "no"))
    assert search.ask().parent.candidate.source == "x"
    search = a_search(explore=0.0, policy="refine")
    for verdict in (Verdict.CHEATED, Verdict.WRONG, Verdict.BUILD_FAILED, Verdict.REFUSED):
        told(search, a_failure(f"x  # {verdict}", verdict))
    brief = search.ask()
    assert brief.parent.evaluation.verdict is Verdict.WRONG
    assert brief.parent.role is Role.PARENT
    assert brief.parent.candidate not in [each.candidate for each in brief.failures]


def test_who_reached_around_the_judge_is_no_parent():
    search = a_search(explore=0.0)
    told(search, a_failure("x", Verdict.CHEATED))
    told(search, a_failure("y", Verdict.REFUSED))
    assert search.ask().parent is None


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**63), st.sampled_from([1, 4, 17]), st.sampled_from([1, 3]))
def test_the_same_seed_and_tells_give_the_same_search(seed, in_flight, islands):
    first = a_search(seed, islands=islands)
    second = a_search(seed, islands=islands)
    assert run(first, 120, in_flight=in_flight) == run(second, 120, in_flight=in_flight)
    assert first.fingerprint() == second.fingerprint()
    assert first.ask() == second.ask()


def test_another_seed_or_another_tell_gives_another_fingerprint():
    prints = set()
    for seed, extra in ((0, "x"), (1, "x"), (0, "y")):
        search = a_search(seed)
        told(search, a_pass(extra, 1.0))
        prints.add(search.fingerprint())
    assert len(prints) == 3


def test_a_fresh_search_told_the_recorded_briefs_knows_the_same():
    first, briefs = a_search(7), []
    for _ in range(150):
        brief = first.ask()
        briefs.append(brief)
        first.tell(brief, *a_pair(brief))
    second = a_search(7)
    for brief in briefs:
        second.tell(brief, *a_pair(brief))
    assert second.fingerprint() == first.fingerprint()
    assert second.ask() == first.ask()


def test_what_is_in_flight_does_not_change_what_is_known():
    first, second = a_search(3), a_search(3)
    run(first, 60)
    run(second, 60)
    for _ in range(20):
        second.ask()
    assert first.fingerprint() == second.fingerprint()


def test_coverage_and_qd_score_never_fall_and_all_elites_lie_in_their_cells():
    search = a_search(1, migration_every=5)
    seen = (0.0, 0.0)
    for _ in range(400):
        brief = search.ask()
        search.tell(brief, *a_pair(brief))
        now = (search.coverage, search.qd_score)
        assert now[0] >= seen[0]
        assert now[1] >= seen[1]
        seen = now
    held = list(search.cells())
    assert len({(island, cell) for island, cell, _ in held}) == len(held)
    for _, cell, exemplar in held:
        assert cell == cell_of(descriptors(exemplar.candidate, exemplar.evaluation))


def test_other_dimensions_keep_every_occupant_that_has_a_cell():
    search = a_search(1, dimensions=("complexity", "score"))
    run(search, 200)
    best = search.best
    search.rebin(("complexity", "score", "own"))
    assert search.best == best
    assert all(len(cell) == 3 for _, cell, _ in search.cells())
    assert search.qd_score > 0
    run(search, 100)


def visits(search):
    """How many lines one ask and one tell execute, and how many items they touch."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        inside = "kernelsmith/search" in frame.f_code.co_filename
        lines += inside and event == "line"
        return trace if inside else None

    brief = search.ask()
    pair = a_pair(brief)
    before = sys.gettrace()
    sys.settrace(trace)
    try:
        search.ask()
        search.tell(brief, *pair)
    finally:
        sys.settrace(before)
    search.tell(dataclasses.replace(brief, number=brief.number + 1), None, None, rejection="none")
    return lines


class Counted(list):
    """A list that counts what is read from it."""

    reads = 0

    def __getitem__(self, at):
        type(self).reads += 1
        return super().__getitem__(at)

    def __iter__(self):
        for item in super().__iter__():
            type(self).reads += 1
            yield item


@pytest.mark.parametrize("policy", ["evolve", "greedy", "refine", "random", "best-of-n"])
def test_what_an_ask_costs_does_not_depend_on_how_many_were_told(policy):
    search = a_search(policy=policy, islands=1, migration_every=10**9)
    most = []
    for told_before in (100, 5000):
        run(search, told_before - search.told, size=20)
        most.append(max(visits(search) for _ in range(30)))
    few, many = most
    assert many <= 1.3 * few


def test_an_ask_reads_a_few_elites_and_never_all():
    search = a_search(islands=1)
    for size in range(1, 1500, 20):
        for speedup in (0.4, 0.9, 1.1, 1.8, 4.0):
            told(search, a_pass("+".join("x" * size) + f"  # {speedup}", speedup))
    archive = search.islands[0]
    assert len(archive) > 30
    archive._cells = Counted(archive._cells)
    search.ask()
    assert 0 < Counted.reads <= 24 < len(archive)


def test_a_parent_with_children_is_drawn_less_often():
    search = a_search(islands=1, exploit=0.0, explore=0.0, pursue=0)
    for size in (1, 20, 100):
        told(search, a_pass("+".join("x" * size), 1.5))
    drawn = [search.ask().parent.evaluation.candidate for _ in range(300)]
    counts = [drawn.count(id) for id in set(drawn)]
    assert len(counts) == 3
    assert max(counts) - min(counts) < 40, "damping evens out what is in flight"


def test_children_in_flight_count_until_they_are_told():
    search = a_search(islands=1)
    told(search, a_pass("x", 1.5))
    brief = search.ask()
    parent = brief.parent.evaluation.candidate
    assert search.children(parent) == 1
    search.tell(brief, None, None, rejection="nothing")
    assert search.children(parent) == 1


def test_migration_brings_the_best_round_and_marks_it():
    search = a_search(islands=2, migration_every=4, migrants=1)
    for index, speedup in enumerate((1.1, 3.5, 1.1, 1.1)):
        told(search, a_pass("+".join("x" * (20 * index + 1)), speedup))
    arrived = [elite for elite in search.islands[0] if elite.migrant]
    assert [round(elite.score, 1) for elite in arrived] == [3.2]


def test_inspirations_are_distinct_best_first_and_not_the_parent():
    search = a_search(5)
    run(search, 300)
    for _ in range(50):
        brief = search.ask()
        ids = [each.evaluation.candidate for each in (brief.parent, *brief.inspirations)]
        assert len(set(ids)) == len(ids) == 5
        scores = [each.score for each in brief.inspirations]
        assert scores == sorted(scores, reverse=True)
        assert {each.role for each in brief.inspirations} == {Role.TOP, Role.DIVERSE}


def test_a_brief_of_an_island_that_is_not_there_is_refused():
    search = a_search(islands=1)
    brief = dataclasses.replace(search.ask(), island=4)
    with pytest.raises(UsageError, match="island 4"):
        search.tell(brief, *a_pass("x", 1.0))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"policy": "magic"}, "no policy 'magic'; known are evolve"),
        ({"topology": "star"}, "no topology 'star'"),
        ({"islands": 0}, "islands is at least 1"),
        ({"exploit": 0.9, "explore": 0.2}, "shares of 1"),
        ({"dimensions": ()}, "has dimensions"),
        ({"dimensions": ("score", "colour")}, "no dimension 'colour'"),
        ({"failures": 5, "failures_kept": 4}, "failures_kept is at least 5"),
    ],
)
def test_a_config_that_makes_no_sense_is_refused(changes, why):
    with pytest.raises(UsageError, match=why):
        SearchConfig(**changes)
