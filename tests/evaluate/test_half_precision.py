"""Half precision inside a float32 task is refused by what it loses, not by how it is written."""

import pytest

from kernelsmith.domain.evaluation import Kernel, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.findings import Findings
from kernelsmith.evaluate.harness import Judge
from kernelsmith.evaluate.outcome import Worst
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


def judged(judge, *, error, precision, own=True, path="out", variant="plain"):
    worst = Worst(error=error, budget=0.1, eager_error=0.01, path=path, variant=variant)
    kernel = Kernel(name="k", own=own, launches=1, share=1.0, precision=precision)
    (workload,) = judge._task.workloads
    judge._judge_precision((kernel,), Findings(coarse=[(workload, worst)]))


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


def test_what_another_output_or_other_inputs_magnify_excuses_nobody(judge_of):
    both = judge_of(f"{CHAOTIC.replace('return h', 'return h, torch.tanh(x)')}")
    judged(both, error=2e-4, precision="float16", path="out[0]")
    with pytest.raises(ProgramFailed):
        judged(both, error=2e-4, precision="float16", path="out[1]")
    wide = judge_of("return torch.sin(x * 50)")
    judged(wide, error=2e-4, precision="float16", variant="wide")
    with pytest.raises(ProgramFailed):
        judged(wide, error=2e-4, precision="float16")


def test_where_nobody_can_say_what_is_magnified_the_error_speaks(judge_of):
    judge = judge_of("assert (x.double() == x.double().float()).all()\n        return x * 2")
    with pytest.raises(ProgramFailed, match="half precision"):
        judged(judge, error=2e-4, precision="float16")


@pytest.mark.parametrize(
    "said",
    [{"precision": "tf32"}, {"precision": "float16", "own": False}, {"precision": ""}],
)
def test_other_formats_and_libraries_are_not_asked_about(judge_of, said):
    judged(judge_of(FORGETFUL), error=2e-4, **said)
