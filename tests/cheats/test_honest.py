"""Odd but legitimate candidates pass: a judge that cries wolf is of no use either."""

import pytest
import zoo

from kernelsmith.domain.evaluation import Verdict


def _honest() -> list:
    return [
        pytest.param(animal, id=animal.path.stem, marks=[pytest.mark.slow] if animal.slow else [])
        for animal in zoo.animals("honest")
    ]


@pytest.mark.parametrize("animal", _honest())
def test_an_honest_candidate_passes(animal, guarded):
    found = guarded.judge(zoo.task(animal.task), animal.candidate)
    assert found.verdict is Verdict.PASSED, found.message
