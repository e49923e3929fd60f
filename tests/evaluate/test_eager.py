"""Eager that computes otherwise in the process that is timed: who is as exact as that is right."""

from dataclasses import replace

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Library, Task, Workload
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.eager import EagerElsewhere
from kernelsmith.evaluate.harness import Judge
from kernelsmith.testing import QUICK

SOURCE = '''
import sys

import torch
from torch import nn


def is_timed():
    """Stands for a library that finds less memory in one of its processes."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("worker/program.py"):
            return True
        frame = frame.f_back
    return False


class Model(nn.Module):
    def forward(self, x):
        coarse = COARSE and is_timed() and x.dtype is torch.float32
        return torch.tanh(x) * (1 + 3e-4 if coarse else 1)


def get_inputs():
    return [torch.rand(64, 100)]


def get_init_inputs():
    return []
'''
CANDIDATE = """
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * (1 + OFF)
"""


def a_task(*, coarse, workloads=("default",)):
    source = SOURCE.replace("COARSE", str(coarse))
    named = tuple(Workload(name=each) for each in workloads)
    return Task(name="tanh", source=source, library=Library.ANY, workloads=named)


def a_candidate(off):
    return Candidate(backend="cpu", source=CANDIDATE.replace("OFF", str(off)))


@pytest.fixture
def judge_of():
    opened, backend = [], CpuBackend()

    def judge(**of):
        opened.append(Judge(backend, a_task(**of), replace(QUICK, robust=True)))
        return opened[-1]

    yield judge
    for each in opened:
        each.close()
    backend.close()


def test_who_is_as_exact_as_the_eager_that_is_timed_is_right_and_the_judge_remembers(judge_of):
    judge = judge_of(coarse=True)
    first = judge.judge(a_candidate(-4e-4))
    assert first.verdict is Verdict.PASSED, first.message
    assert "off by 0.0004" in dict(first.device_log)["eager elsewhere"]
    assert first.accuracy[0].budget > 1e-3
    second = judge.judge(a_candidate(-5e-4))
    assert second.verdict is Verdict.PASSED, second.message
    assert "eager elsewhere" not in dict(second.device_log), "that is known by now"


def test_each_workload_is_looked_at_and_odd_inputs_are_held_to_the_same(judge_of):
    found = judge_of(coarse=True, workloads=("one", "other")).judge(a_candidate(-4e-4))
    assert found.verdict is Verdict.PASSED, found.message
    assert LabelName.FRAGILE not in {each.name for each in found.labels}
    assert LabelName.ROBUST in {each.name for each in found.labels}


def test_a_process_that_ends_while_it_is_asked_leaves_the_verdict_as_it_is(judge_of, monkeypatch):
    def lost(*_):
        raise EvaluationLost("the process is gone")

    judge = judge_of(coarse=True)
    monkeypatch.setattr(EagerElsewhere, "look", lost)
    assert judge.judge(a_candidate(-4e-4)).verdict is Verdict.WRONG


def test_who_is_much_further_off_than_that_stays_wrong(judge_of):
    found = judge_of(coarse=True).judge(a_candidate(0.02))
    assert found.verdict is Verdict.WRONG
    assert "the worst row is off by 0.02" in found.message


def test_where_eager_is_as_exact_in_every_process_nothing_is_forgiven(judge_of):
    judge = judge_of(coarse=False)
    for off in (4e-4, -4e-4):
        found = judge.judge(a_candidate(off))
        assert found.verdict is Verdict.WRONG
        assert "eager elsewhere" not in dict(found.device_log)
