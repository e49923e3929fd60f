"""What the notes teach is right: their examples pass the judge."""

import re

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.harness import judge
from kernelsmith.propose import knowledge
from kernelsmith.testing import QUICK

TASK = Task(
    name="scaled_relu",
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
    def forward(self, x):
        return self.scale * torch.relu(x)
def get_inputs():
    return [torch.randn(33, 4097)]
def get_init_inputs():
    return [0.5]
""",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu", "triton"], ids="notes on {}".format)
def test_the_example_in_the_notes_passes(name):
    (example,) = re.findall(r"```python\n(.*?)```", knowledge.language(name), re.DOTALL)
    backend = load_backend(name)
    try:
        candidate = Candidate(backend=name, source=example)
        found = judge(TASK, candidate, backend=backend, settings=QUICK)
    finally:
        backend.close()
    assert found.verdict is Verdict.PASSED, found.message
