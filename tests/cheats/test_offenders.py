"""No cheat of the zoo passes: neither past the static guard nor past the evidence alone."""

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict

OFFENDERS = zoo.animals("offenders")


@pytest.mark.parametrize("animal", OFFENDERS, ids=lambda each: each.path.stem)
def test_no_cheat_passes(animal, guarded):
    found = guarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.expected, found.message


@pytest.mark.parametrize(
    "animal",
    [each for each in OFFENDERS if Verdict.REFUSED in each.expected],
    ids=lambda each: each.path.stem,
)
def test_no_cheat_passes_on_the_evidence_alone(animal, unguarded):
    found = unguarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is not Verdict.PASSED
    assert found.verdict in animal.behaviour, found.message
