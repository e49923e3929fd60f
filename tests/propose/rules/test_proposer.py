"""Seeds, mutations, what is learnt, and rejections."""

import ast
import asyncio
import sys

import pytest
from rule_tasks import KNOWN, UNKNOWN

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Exemplar, Outcome, Placement, Proposal, Role, Step
from kernelsmith.errors import UsageError
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.templates import template_for

DEVICE = Device(kind="cpu", name="test")


def a_brief(task, number=0, **changes) -> Brief:
    usual = {"number": number, "task": task, "backend": "cpu", "island": 0, "seed": 7 + number}
    return Brief(**{**usual, **changes})


def a_timing(speed=2.0) -> Timing:
    pair = Pair(baseline_us=(100.0 * speed,), candidate_us=(100.0,))
    return Timing(workloads=(WorkloadTiming(
        workload="default", pairs=(pair,), launches=1,
        speedup=Ratio(value=speed, low=speed, high=speed),
    ),))  # fmt: skip


def an_exemplar(task, source, verdict=Verdict.PASSED, speed=2.0) -> Exemplar:
    candidate = Candidate(backend="cpu", source=source)
    passed = verdict is Verdict.PASSED
    evaluation = Evaluation(
        task=task.name, candidate=candidate.id, device=DEVICE, verdict=verdict,
        timing=a_timing(speed) if passed else None, message="" if passed else "why",
    )  # fmt: skip
    return Exemplar(role=Role.PARENT, candidate=candidate, evaluation=evaluation, score=speed)


def proposed(brief, proposer=None) -> Proposal:
    return asyncio.run((proposer or RulesProposer("cpu")).propose(brief))


def parameters(task, source):
    return template_for(task, "cpu").own(source)


@pytest.mark.parametrize("backend", ["cpu", "triton"])
@pytest.mark.parametrize("name", KNOWN)
def test_every_seed_is_a_python_file_of_its_own(name, backend):
    sources = set()
    for number in range(40):
        proposal = proposed(a_brief(KNOWN[name], number), RulesProposer(backend))
        assert proposal.source is not None, proposal.rejection
        ast.parse(proposal.source)
        assert proposal.source.count("EVOLVE-BLOCK-") == 2
        sources.add(proposal.source)
    assert len(sources) == 40


def test_the_same_brief_gives_the_same_source():
    brief = a_brief(KNOWN["softmax"], 9)
    assert proposed(brief) == proposed(brief)


def test_a_mutation_changes_one_or_two_parameters_and_says_which():
    task = KNOWN["softmax"]
    first = proposed(a_brief(task)).source
    before = parameters(task, first)
    seen = set()
    for number in range(1, 30):
        proposal = proposed(a_brief(task, number, parent=an_exemplar(task, first)))
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


def test_a_parent_by_someone_else_is_left_alone():
    task = KNOWN["softmax"]
    edited = proposed(a_brief(task)).source.replace("unroll", "UNROLL")
    for source in ("class ModelNew: ...", edited):
        proposal = proposed(a_brief(task, 1, parent=an_exemplar(task, source)))
        assert proposal.source is None
        assert "someone else" in proposal.rejection


@pytest.mark.parametrize("says", UNKNOWN)
def test_a_rejection_names_what_is_missing_and_what_to_do(says):
    proposal = proposed(a_brief(UNKNOWN[says]))
    assert proposal.source is None
    assert says in proposal.rejection
    assert proposal.rejection.endswith("configure a model with --model")


def a_step(task, source, speed) -> Step:
    parent = an_exemplar(task, source, speed=speed)
    return Step(
        brief=a_brief(task), proposal=Proposal(source=source), candidate=parent.candidate,
        evaluation=parent.evaluation, placement=Placement(outcome=Outcome.NEW, island=0),
    )  # fmt: skip


def test_what_was_learnt_moves_the_choice_and_nothing_is_tried_twice():
    task = KNOWN["softmax"]
    template = template_for(task, "cpu")
    start = template.space.defaults
    slow, fast = (
        template.source({**start, "unroll": "1"}),
        template.source({**start, "unroll": "4"}),
    )
    taught = RulesProposer("cpu")
    for source, speed in ((slow, 0.5), (fast, 4.0)) * 4:
        taught.learn(a_step(task, source, speed))
    parent = an_exemplar(task, template.source(start))
    chosen = [
        parameters(task, proposed(a_brief(task, n, parent=parent), taught).source)
        for n in range(200)
    ]
    values = [each["unroll"] for each in chosen]
    assert values.count("4") > 3 * values.count("1")
    assert {**start, "unroll": "4"} not in chosen


def test_a_backend_without_templates_is_refused():
    with pytest.raises(UsageError, match="rules write for cpu and triton"):
        RulesProposer("null")


def test_torch_is_not_imported():
    asyncio.run(RulesProposer("cpu").propose(a_brief(KNOWN["softmax"])))
    import subprocess

    code = "import sys, kernelsmith.propose.rules.proposer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
