"""No cheat of the zoo passes: neither past the static guard nor past the evidence alone."""

from dataclasses import replace

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator


@pytest.mark.parametrize("animal", zoo.parameters("offenders"))
def test_no_cheat_passes(animal, guarded):
    found = guarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.expected, found.message


@pytest.mark.parametrize(
    "animal",
    [each for each in zoo.parameters("offenders") if Verdict.REFUSED in each.values[0].expected],
)
def test_no_cheat_passes_on_the_evidence_alone(animal, unguarded):
    found = unguarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.behaviour, found.message


def test_a_decoy_is_seen_where_batches_are_too_short_to_show_it():
    decoy = zoo.read(zoo.HERE / "offenders" / "a04_decoy_launch.py")
    with LocalEvaluator("cpu", replace(zoo.QUICK, sample_us=250.0)) as hasty:
        found = hasty.judge(zoo.task(decoy.task), decoy.candidate)
    assert found.verdict is Verdict.CHEATED
