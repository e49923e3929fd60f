"""Odd but legitimate candidates pass: a judge that cries wolf is of no use either."""

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict


@pytest.mark.parametrize("animal", zoo.parameters("honest"))
def test_an_honest_candidate_passes(animal, guarded):
    found = guarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is Verdict.PASSED, found.message
