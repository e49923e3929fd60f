"""Half precision inside a float32 task is refused by what it loses, not by how it is written."""

import pytest

from kernelsmith.domain.evaluation import Accuracy, Kernel, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.harness import _FLOAT32_CLASS, Judge, _Findings
from kernelsmith.testing import QUICK

TASK = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        {body}


def get_inputs():
    return [torch.rand(4, 64)]


def get_init_inputs():
    return []
"""
FORGETFUL = "return torch.tanh(x * 0.5) + x.sum(1, keepdim=True) / 64"
CHAOTIC = "h = torch.sigmoid(x)\n        for _ in range(16):\n            h = 3.99 * h * (1 - h)"
CHAOTIC += "\n        return h"


@pytest.fixture(scope="module")
def backend():
    made = CpuBackend()
    yield made
    made.close()


@pytest.fixture
def judge_of(backend):
    opened = []

    def made(body):
        opened.append(Judge(backend, Task(name="t", source=TASK.format(body=body)), QUICK))
        return opened[-1]

    yield made
    for each in opened:
        each.close()


def judged(judge, *, error, precision, own=True):
    accuracy = Accuracy(workload="default", error=error, budget=0.1, eager_error=0.01, trials=9)
    kernel = Kernel(name="k", own=own, launches=1, share=1.0, precision=precision)
    judge._judge_precision((kernel,), _Findings(accuracy=[accuracy], is_float32=True))


def test_an_error_of_half_precision_is_refused_where_halves_are_in_the_kernel(judge_of):
    judge = judge_of(FORGETFUL)
    with pytest.raises(ProgramFailed, match="half precision inside: k computes in float16") as why:
        judged(judge, error=2e-4, precision="float16, to float16")
    assert why.value.verdict is Verdict.REFUSED


def test_the_same_error_is_nobody_s_where_the_task_itself_magnifies_the_last_bits(judge_of):
    judge = judge_of(CHAOTIC)
    judged(judge, error=2e-4, precision="float16, to float16")
    with pytest.raises(ProgramFailed):  # however much it magnifies, eleven bits are too few
        judged(judge, error=2e-3, precision="float16, to float16")


@pytest.mark.parametrize(
    "said",
    [
        {"error": _FLOAT32_CLASS / 2, "precision": "float16"},
        {"error": 2e-4, "precision": "tf32"},
        {"error": 2e-4, "precision": "float16", "own": False},
    ],
)
def test_small_errors_other_formats_and_libraries_are_not_asked_about(judge_of, said):
    judged(judge_of(FORGETFUL), **said)
