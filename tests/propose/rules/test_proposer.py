"""Seeds, mutations, what is learnt, and rejections."""

import ast
import asyncio
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest
from rule_briefs import (
    Painted,
    a_brief,
    a_proposer,
    a_step,
    an_exemplar,
    painted,
    proposed,
    rows_and_flat,
)
from rule_tasks import KNOWN, UNKNOWN

from kernelsmith.domain.evaluation import Coverage, Verdict
from kernelsmith.errors import UsageError
from kernelsmith.propose.rules import guidance
from kernelsmith.propose.rules.families import Families
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.templates import template_for

TASK = KNOWN["softmax"]


def parameters(task, source):
    return template_for(task, "cpu").own(source)


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("name", KNOWN)
def test_every_seed_is_a_python_file_of_its_own(name, backend):
    sources, proposer = set(), a_proposer(backend)
    for number in range(40):
        proposal = proposed(a_brief(KNOWN[name], number), proposer)
        assert proposal.source is not None, proposal.rejection
        ast.parse(proposal.source)
        assert proposal.source.count("EVOLVE-BLOCK-") == 2
        sources.add(proposal.source)
    assert len(sources) == 40


def test_the_same_brief_gives_the_same_source():
    brief = a_brief(KNOWN["softmax"], 9)
    assert proposed(brief) == proposed(brief)


def a_taught_proposer(task, speed=2.0, **more):
    """One that has seen what became of all starts of the task."""
    proposer = a_proposer(**more)
    template = template_for(task, "cpu")
    for number, chosen in enumerate(template.space.starts):
        proposer.learn(a_step(task, template.source(chosen), speed, number=number))
    return proposer


def test_a_mutation_changes_one_or_two_parameters_and_says_which(monkeypatch):
    monkeypatch.setattr(guidance, "ENOUGH", 1000)
    task = KNOWN["softmax"]
    first = proposed(a_brief(task)).source
    before = parameters(task, first)
    taught, seen = a_taught_proposer(task), set()
    for number in range(8, 40):
        proposal = proposed(a_brief(task, number, parent=an_exemplar(task, first)), taught)
        after = parameters(task, proposal.source)
        changed = {name for name in before if before[name] != after[name]}
        assert 1 <= len(changed) <= 2
        assert all(name in proposal.note for name in changed)
        seen |= changed
    assert len(seen) > 4


def test_mutations_are_deterministic():
    task = KNOWN["layer_norm"]
    parent = an_exemplar(task, proposed(a_brief(task)).source)
    brief = a_brief(task, 5, parent=parent)
    assert proposed(brief) == proposed(brief)


def test_a_wrong_parent_is_answered_by_exact_arithmetic():
    task = KNOWN["softmax"]
    template = template_for(task, "cpu")
    source = template.source({**template.space.defaults, "passes": "online"})
    brief = a_brief(task, 3, parent=an_exemplar(task, source, Verdict.WRONG))
    proposal = proposed(brief)
    chosen = parameters(task, proposal.source)
    assert (chosen["math"], chosen["accumulate"], chosen["passes"]) == ("libm", "double", "multi")
    assert proposal.note.startswith("step back after wrong")


def test_a_parent_by_someone_else_is_answered_by_a_start_of_our_own():
    edited = proposed(a_brief(TASK)).source.replace("unroll", "UNROLL")
    for source in ("class ModelNew: ...", edited):
        proposal = proposed(a_brief(TASK, 1, parent=an_exemplar(TASK, source)))
        assert parameters(TASK, proposal.source) is not None
        assert proposal.note.startswith("the parent is by someone else")


def test_beside_someone_else_the_best_of_our_own_is_improved_once_all_families_were_tried():
    family = Painted()
    proposer = a_proposer(families=painted(family))
    best = {**family.space.defaults, "size": "16"}
    proposer.learn(a_step(TASK, family.source(best), 3.0))
    proposer.learn(a_step(TASK, family.source(family.space.defaults), 1.5, number=1))
    parent = an_exemplar(TASK, "class ModelNew: ...")
    proposal = proposed(a_brief(TASK, 2, parent=parent), proposer)
    chosen = family.space.read(proposal.source)
    assert "best of our own" in proposal.note
    assert sum(chosen[name] != best[name] for name in best) <= 2


@pytest.mark.parametrize("says", UNKNOWN)
def test_a_rejection_names_what_is_missing_and_what_to_do(says):
    proposal = proposed(a_brief(UNKNOWN[says]))
    assert proposal.source is None
    assert says in proposal.rejection
    assert proposal.rejection.endswith("configure a model with --model")


def test_what_was_learnt_moves_the_choice_and_nothing_is_tried_twice():
    task = KNOWN["softmax"]
    template = template_for(task, "cpu")
    start = template.space.defaults
    slow, fast = (
        template.source({**start, "unroll": "1"}),
        template.source({**start, "unroll": "4"}),
    )
    taught = a_proposer()
    for source, speed in ((slow, 0.5), (fast, 4.0)) * 4:
        taught.learn(a_step(task, source, speed))
    parent = an_exemplar(task, template.source(start))
    chosen = [
        parameters(task, proposed(a_brief(task, 8, seed=n, parent=parent), taught).source)
        for n in range(200)
    ]
    values = [each["unroll"] for each in chosen]
    assert values.count("4") > 3 * values.count("1")
    assert {**start, "unroll": "4"} not in chosen


def test_a_backend_without_templates_is_refused():
    with pytest.raises(UsageError, match="rules write for cpu and triton"):
        RulesProposer("null")


def test_torch_is_not_imported():
    code = "import sys, kernelsmith.propose.rules.proposer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_scikit_learn_is_not_imported_before_it_is_asked():
    code = "import sys, kernelsmith.propose.rules.proposer; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_first_start_of_every_family_comes_before_the_second_of_any():
    proposer = a_proposer(families=painted(Painted(), Painted(name="drawn")))
    sources = [proposed(a_brief(TASK, n), proposer).source for n in range(4)]
    heads = [source.splitlines()[0].split()[3:] for source in sources]
    assert [head[0] for head in heads] == ["painted", "drawn", "painted", "drawn"]
    assert ["colour=red" in head for head in heads] == [False, False, True, True]


def test_a_start_that_cannot_be_written_is_skipped_for_the_next():
    find = painted(Painted(unwritable="blue"))
    proposal = proposed(a_brief(TASK), a_proposer(families=find))
    assert "colour=red" in proposal.source


def test_a_rejection_names_every_reason_once_in_one_line():
    one = Painted(unwritable="blue", choices=("4",), seeds=((),))
    find = painted(reasons=("no such layer", "no such layer", "no graph"))
    assert (
        "no such layer; no graph; configure"
        in proposed(a_brief(TASK), a_proposer(families=find)).rejection
    )
    nothing = Families(members=(), reasons=("a", "b"))
    rejection = proposed(a_brief(TASK), a_proposer(families=lambda *_: nothing)).rejection
    assert rejection == "a; b; configure a model with --model"
    assert "colour" in proposed(a_brief(TASK), a_proposer(families=painted(one))).source


def test_families_are_found_once_however_many_ask_at_a_time():
    found, begun = [], threading.Event()

    def find(task, backend):
        found.append(begun.set())
        time.sleep(0.05)
        return rows_and_flat(task, backend)

    proposer = a_proposer(families=find)

    async def all_at_once():
        return await asyncio.gather(*(proposer.propose(a_brief(TASK, n)) for n in range(4)))

    sources = [each.source for each in asyncio.run(all_at_once())]
    assert len(found) == 1
    assert len(set(sources)) == 4


def test_what_keeps_families_from_being_found_reaches_everyone_who_asked():
    def find(task, backend):
        raise UsageError("no such thing")

    proposer = a_proposer(families=find)
    for number in range(2):
        with pytest.raises(UsageError, match="no such thing"):
            proposed(a_brief(TASK, number), proposer)


def test_whoever_gives_up_does_not_stop_the_finding():
    proposer, going = a_proposer(families=_slowly), threading.Event()

    async def impatient():
        asking = asyncio.create_task(proposer.propose(a_brief(TASK)))
        await asyncio.sleep(0.02)
        asking.cancel()
        going.set()

    asyncio.run(impatient())
    assert going.is_set()
    assert proposed(a_brief(TASK), proposer).source is not None


def _slowly(task, backend):
    time.sleep(0.1)
    return rows_and_flat(task, backend)


def test_briefs_in_flight_do_not_get_the_same_start():
    proposer, family = a_proposer(families=painted(Painted(), Painted(name="drawn"))), Painted()
    given = []
    for number in range(8):  # ask n is made when tell n - 3 has been applied
        if number >= 3:
            proposer.learn(a_step(TASK, given[number - 3], number=number - 3))
        given.append(proposed(a_brief(TASK, number), proposer).source)
    assert len(set(given)) == 8
    assert family.source(family.space.defaults) == given[0]


def test_only_what_was_told_when_a_brief_was_asked_for_counts():
    early, late = (a_taught_proposer(TASK, in_flight=4) for _ in range(2))
    template = template_for(TASK, "cpu")
    more = {**template.space.defaults, "tile": "1"}
    late.learn(a_step(TASK, template.source(more), 9.0, number=6))
    parent = an_exemplar(TASK, template.source(template.space.defaults))
    brief = a_brief(TASK, 9, parent=parent)
    assert proposed(brief, early) == proposed(brief, late)


def test_briefs_that_are_answered_at_the_same_time_do_not_get_the_same_start():
    proposer = a_proposer(families=painted(Painted(), Painted(name="drawn")))

    async def all_at_once():
        return await asyncio.gather(*(proposer.propose(a_brief(TASK, n)) for n in range(8)))

    sources = [each.source for each in asyncio.run(all_at_once())]
    one_by_one = a_proposer(families=painted(Painted(), Painted(name="drawn")))
    assert sources == [proposed(a_brief(TASK, n), one_by_one).source for n in range(8)]
    assert len(set(sources)) == 8


def test_whoever_gives_up_leaves_its_start_to_the_next():
    proposer = a_proposer(families=_slowly)

    async def first_gives_up():
        asking = asyncio.create_task(proposer.propose(a_brief(TASK, 0)))
        await asyncio.sleep(0)
        asking.cancel()
        return await proposer.propose(a_brief(TASK, 1))

    given = asyncio.run(first_gives_up())
    assert given.source == proposed(a_brief(TASK), a_proposer(families=rows_and_flat)).source


class Deliberate(Painted):
    """A family whose texts take a while."""

    def source(self, chosen):
        time.sleep(0.1)
        return super().source(chosen)


def test_whoever_stops_waiting_for_another_does_not_stop_that_one():
    proposer = a_proposer(families=painted(Deliberate()))

    async def second_gives_up():
        first, second = (asyncio.create_task(proposer.propose(a_brief(TASK, n))) for n in range(2))
        await asyncio.sleep(0.05)
        second.cancel()
        return await first, await proposer.propose(a_brief(TASK, 2))

    sources = [each.source for each in asyncio.run(second_gives_up())]
    assert None not in sources
    assert sources[0] != sources[1]


def test_a_run_told_again_from_its_journal_goes_on_with_the_same_source():
    def taken_up(steps, in_flight):
        proposer = a_proposer(in_flight=2)
        for step in steps:
            proposer.learn(step)
        for number, proposal in in_flight:
            proposer.recall(a_brief(TASK, number), proposal)
        return proposer

    proposer, steps = a_proposer(in_flight=2), []
    proposals = [proposed(a_brief(TASK, n), proposer) for n in range(2)]
    for number in range(2, 14):
        source = proposals[number - 2].source
        steps.append(a_step(TASK, source, 1 + number % 5, number=number - 2))
        proposer.learn(steps[-1])
        parent = an_exemplar(TASK, max(steps, key=_speed).candidate.source)
        brief = a_brief(TASK, number, parent=parent)
        again = proposed(brief, taken_up(steps, [(number - 1, proposals[-1])]))
        proposals.append(proposed(brief, proposer))
        assert again == proposals[-1]
    assert len({each.source for each in proposals}) == len(proposals)


def test_near_a_slow_parent_the_model_prefers_what_is_near_the_best():
    family = Painted(choices=tuple(str(2**n) for n in range(9)))
    proposer = a_proposer(families=painted(family))
    start = {**family.space.defaults, "size": "1"}
    for number, size in enumerate(("1", "2", "4", "8", "16", "32")):
        source = family.source({**start, "size": size})
        proposer.learn(a_step(TASK, source, 1.5**number, number=number))
    slow = an_exemplar(TASK, family.source(start), speed=1.0)
    proposal = proposed(a_brief(TASK, 6, parent=slow), proposer)
    assert "from the best of our own" in proposal.note
    assert "('size', '64')" in proposal.source


def _speed(step):
    return step.evaluation.timing.speedup.value


def test_a_wrong_start_is_followed_by_another_one():
    family = Painted()
    proposer = a_proposer(families=painted(family))
    source = family.source(family.space.defaults)
    proposer.learn(a_step(TASK, source, verdict=Verdict.WRONG))
    brief = a_brief(TASK, 1, parent=an_exemplar(TASK, source, Verdict.WRONG))
    proposal = proposed(brief, proposer)
    assert "another start after wrong" in proposal.note
    assert "colour=red" in proposal.source


@pytest.mark.parametrize("own", [0.01, 0.6])
def test_what_leaves_the_work_to_the_library_is_not_tried_with_other_schedules(own):
    first, second = Painted(name="first"), Painted(name="second")
    proposer = a_proposer(families=painted(first, second))
    step = a_step(TASK, first.source(first.space.defaults), verdict=Verdict.CHEATED)
    covered = Coverage(own=own, library=1 - own, samples=500)
    proposer.learn(replace(step, evaluation=replace(step.evaluation, coverage=covered)))
    sources = [proposed(a_brief(TASK, number), proposer).source for number in range(1, 12)]
    again = [each for each in sources if "# first" in each]
    assert bool(again) is (own > 0.05)
    assert len(again) < len(sources)


def test_another_share_of_the_library_is_tried_after_one_that_left_too_much():
    family = Painted(size="product", choices=("library", "tiles", "4"), seeds=((),))
    proposer = a_proposer(families=painted(family))
    left = family.source({**family.space.defaults, "product": "library"})
    step = a_step(TASK, left, verdict=Verdict.CHEATED)
    covered = Coverage(own=0.01, library=0.99, samples=500)
    proposer.learn(replace(step, evaluation=replace(step.evaluation, coverage=covered)))
    sources = [proposed(a_brief(TASK, number), proposer).source for number in range(1, 12)]
    assert any("('product', 'tiles')" in each for each in sources)
    assert not any("('product', 'library')" in each for each in sources)


def test_once_all_variants_were_tried_the_rejection_says_so():
    family = Painted(choices=("4",), seeds=((),))
    proposer = a_proposer(families=painted(family))
    for number in range(12):
        source = proposed(a_brief(TASK, number), proposer).source
        proposer.learn(a_step(TASK, source, number=number))
    assert "all variants" in proposed(a_brief(TASK, 12), proposer).rejection


def test_the_note_says_when_nothing_can_learn(monkeypatch):
    monkeypatch.setattr(guidance, "is_available", lambda: False)
    taught = a_taught_proposer(TASK)
    template = template_for(TASK, "cpu")
    parent = an_exemplar(TASK, template.source(template.space.defaults))
    proposal = proposed(a_brief(TASK, 20, parent=parent), taught)
    assert "scikit-learn is not installed" in proposal.note
