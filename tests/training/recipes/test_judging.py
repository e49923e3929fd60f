"""Answers are judged beside generation, and gains are of one machine."""

import asyncio
from dataclasses import replace

import pytest
from training_parts import a_sample, judged

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.judging import tried

THERE = Device(kind="null", name="another clock")
PARENT = "x + y + 0"


def answered(speedups, *, device, verdict=Verdict.PASSED):
    """One reply to a question whose parent was recorded at twice the baseline's speed."""
    asked = []

    async def evaluate(task, candidate):
        asked.append(candidate.source.strip())
        speedup = speedups[candidate.source == PARENT]
        if speedup is None:
            raise EvaluationLost("gone")
        return replace(judged(speedup, verdict), device=device)

    brief = a_sample(1, parent=(PARENT, 2.0)).brief
    reply = "```\nx + y\n```"
    trial = asyncio.run(tried(form_named("whole", "null"), evaluate, brief, reply))
    return trial, asked


def test_a_parent_from_another_machine_is_judged_again_beside_its_child():
    trial, asked = answered((6.0, 4.0), device=THERE)
    assert asked == ["x + y", PARENT]
    assert trial.over_parent.value == pytest.approx(6.0 / 4.0)


def test_a_parent_from_this_machine_is_believed():
    here = judged(1.0).device
    trial, asked = answered((6.0, 4.0), device=here)
    assert asked == ["x + y"]
    assert trial.over_parent.value == pytest.approx(6.0 / 2.0)


def test_nobody_asks_for_the_parent_of_what_fails():
    trial, asked = answered((None, 4.0), device=THERE)
    assert (asked, trial.lost) == (["x + y"], "gone")
    trial, asked = answered((6.0, 4.0), device=THERE, verdict=Verdict.WRONG)
    assert (asked, trial.correct) == (["x + y"], False)


def test_a_parent_that_is_lost_here_loses_the_trial():
    trial, _ = answered((6.0, None), device=THERE)
    assert trial.lost == "gone"
