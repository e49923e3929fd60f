"""``torch.compile`` as an entrant and as a baseline."""

import ast
import asyncio

import pytest

from kernelsmith.api import load_task
from kernelsmith.bench.compiled import Compilers, compiling, eager, opened, renamed
from kernelsmith.bench.final import Exam, Examiner
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.settings import effort

MODULE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super(Model, self).__init__()
        self.weight = nn.Parameter(torch.ones(64))
        self.scale = scale

    def forward(self, x):
        return torch.sigmoid(x * self.weight) * x * self.scale + torch.tanh(x)


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return [2.0]
"""
FUNCTION = """
from torch import randn, sigmoid

def swish(x):
    return x * sigmoid(x)

def get_inputs():
    return [randn(64, 64)]
"""


def test_the_reference_becomes_a_candidate_of_the_same_text():
    assert "class ModelNew(nn.Module):" in renamed(MODULE)
    assert "super(ModelNew, self)" in renamed(MODULE)
    task = Task(name="f", source=FUNCTION, entry="swish")
    assert eager(task) == FUNCTION


def test_what_is_compiled_is_the_reference_and_nothing_else():
    module = compiling(Task(name="m", source=MODULE), "compile")
    assert MODULE in module
    assert "torch.compile(super().forward)" in module
    function = compiling(Task(name="f", source=FUNCTION, entry="swish"), "max-autotune")
    assert 'swish = torch.compile(swish, mode="max-autotune-no-cudagraphs")' in function
    assert "\nimport torch\n" in function  # the reference does not import that name


@pytest.mark.parametrize(("text", "entry"), [(MODULE, "Model"), (FUNCTION, "swish")])
@pytest.mark.parametrize("mode", ["compile", "max-autotune"])
def test_a_reference_with_a_docstring_and_the_future_in_it_is_python_still(text, entry, mode):
    source = f'"""What it computes."""\n\nfrom __future__ import annotations\n{text}'
    task = Task(name="m", source=source, entry=entry)
    tree = ast.parse(compiling(task, mode))
    compile(tree, "compiled.py", "exec")  # the future is looked at here, and not by the parser
    assert ast.get_docstring(tree) == "What it computes."
    compile(eager(task), "eager.py", "exec")


def test_a_class_is_renamed_where_it_stands_whatever_else_ends_a_line():
    odd = MODULE.replace("import torch\n", 'NOTE = "\u2028\f\x1c\x85"\n\f\nimport torch\n', 1)
    assert renamed(odd) == odd.replace("Model", "ModelNew")


def test_a_backend_without_a_compiler_is_refused():
    with pytest.raises(UsageError, match="has no form on the backend 'null'"):
        opened("null")


@pytest.mark.slow
def test_the_compiled_reference_is_judged_and_stands_beside_others(tmp_path):
    path = tmp_path / "swish.py"
    path.write_text(MODULE)
    task = load_task(path)
    compilers = Compilers("cpu", effort("quick"))
    try:
        entrant = compilers.judge(task, "compile")
        assert entrant.verdict is Verdict.PASSED, entrant.message
        assert entrant.timing.speedup.value > 0.2
        free = Task(**{name: getattr(task, name) for name in task.__slots__} | {
            "library": Library.ANY,
        })  # fmt: skip
        candidate = Candidate(backend="cpu", source=eager(task))
        beside = compilers.judge_beside(free, candidate, "compile")
        assert beside.verdict is Verdict.PASSED, beside.message
        # the same two programs, the other way round
        product = beside.timing.speedup.value * entrant.timing.speedup.value
        assert 0.3 < product < 3
        cheat = Candidate(backend="cpu", source=compiling(task, "compile"))
        refused = compilers.judge_beside(task, cheat, "compile")
        assert refused.verdict is Verdict.REFUSED
    finally:
        compilers.close()


@pytest.mark.slow
def test_the_compiled_reference_beside_itself_says_that_it_is_the_same(tmp_path):
    path = tmp_path / "swish.py"
    path.write_text(MODULE)
    exam = Exam(backend="cpu", effort="quick", baselines=("eager", "compile", "max-autotune"))
    examiner = Examiner(exam)
    try:
        found = asyncio.run(examiner.fixed(load_task(path), "compile"))
    finally:
        examiner.close()
    said = {each.baseline: each.trouble for each in found.beside}
    assert said == {
        "eager": "", "compile": "it is this baseline itself",
        "max-autotune": "two modes of torch.compile are not measured beside each other",
    }  # fmt: skip
