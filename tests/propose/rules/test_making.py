"""What is said of an input beside what it is once it is made."""

from dataclasses import replace

import pytest
from rule_tasks import a_task

from kernelsmith.domain.task import Workload
from kernelsmith.propose.rules.source import read_module

torch = pytest.importorskip("torch")

TOLD = [
    "torch.randn(5, 67)", "torch.rand((5, 67))", "torch.rand([n, 67])", "torch.rand(size=(5, n))",
    "torch.randn(n)", "torch.randn(SHAPE)", "torch.randn(*SHAPE)", "torch.randn(2, *SHAPE)",
    "torch.randn(5, 67, dtype=torch.float64)", "torch.zeros(5, dtype=kind)", "torch.ones(n).half()",
    "torch.randn(5, 67, dtype=KIND)", "torch.ones(5, dtype=float)", "torch.rand(())",
    "torch.full((5, 67), 2.5)", "torch.full((5, 67), 3)", "torch.full(SHAPE, True)",
    "torch.tensor([1, 2, 3])", "torch.tensor([[1.0, 2], [3, 4]])", "torch.tensor(2.5)",
    "torch.tensor([True, False])", "torch.linspace(0, 1, 67)", "torch.linspace(0, 1, steps=n)",
    "torch.arange(n)", "torch.arange(5) * 2.0", "torch.randint(0, 9, (5, n))",
    "torch.randint(0, 9, (5,)).float()", "torch.randint(0, 2, (5, n), dtype=torch.int32)",
    "torch.randperm(n)", "torch.eye(4)", "torch.eye(4, 5)", "torch.normal(0.0, 1.0, (5, 67))",
    "torch.randn(5, 67) > 0", "torch.rand(5, 67).bool()", "torch.rand(5, 1) * torch.rand(67) + 1",
    "torch.rand(5, 67) * math.sqrt(n) / 3", "2 * torch.ones(5, n, dtype=torch.int64)",
    "torch.ones(5, dtype=torch.int64) / 2", "-torch.rand(5, n)", "~(torch.rand(n) > 0.5)",
    "torch.randn(5, 67).t()", "torch.randn(5, 67).T", "torch.randn(4, 5, 67).transpose(0, -1)",
    "torch.randn(4, 5, 67).permute(2, 0, 1)", "torch.rand(5, 67).unsqueeze(0)",
    "torch.rand(5, 67).unsqueeze(-1)", "torch.rand(5, 67)[None]", "torch.rand(5, 67)[:, None]",
    "torch.rand(5, 67)[0]", "torch.rand(10).view(2, 5)", "torch.rand(10).reshape((2, 5))",
    "torch.rand(1, n).expand(5, n)", "torch.softmax(torch.randn(5, 67), dim=-1)",
    "torch.softmax(torch.randn(5, 67), -1, dtype=torch.float64)", "torch.randn_like(twice)",
    "torch.nn.functional.normalize(torch.randn(5, 67))", "torch.rand(5, 67).clamp(min=0.1)",
    "torch.where(torch.rand(5, 67) > 0.5, 1.0, 0.0)", "torch.rand(5).to(torch.float16)",
    "torch.rand(5).to('cpu')", "torch.rand(5).to('cpu', torch.float64)", "torch.rand(5).double()",
    "torch.rand(5).type_as(twice)", "torch.rand(5, dtype=twice.dtype)", "twice", "first * second",
    "torch.nn.init.uniform_(torch.empty(5, 3))", "torch.rand(5, 3).uniform_(1, 2)",
    "torch.tril(torch.ones(4, 4))", "torch.add(torch.rand(5, 1), torch.rand(3))", "n", "2.5",
]  # fmt: skip
"""Expressions whose dtype and size are known; n, SHAPE, kind, KIND, twice, first, second: below."""

HALF_TOLD = [
    "torch.rand(n).sum()", "torch.cat([torch.rand(3), torch.rand(4)])", "torch.rand(5, 6)[1:3]",
    "torch.rand(10).view(2, -1)", "torch.rand(3, 4) @ torch.rand(4, 5)", "torch.rand(5, 6)[..., 0]",
    "torch.rand(wide)", "torch.rand(5, wide)", "torch.rand(5, 3).mean(dim=-1, keepdim=True)",
    "torch.arange(0.0, 5.0)",
]  # fmt: skip
"""Expressions whose dtype is known."""

UNTOLD = [
    "torch.rand(5, 67).argmax(-1)", "torch.rand(5, 67).sort().values", "made(5)", "later",
    "torch.rand(3).view(torch.int32)", "torch.rand(5).to(made(5))", "torch.rand(5).topk(2)[0]",
    "torch.full((5,), made(1))", "torch.zeros(3, dtype=torch.float64) * torch.tensor(2.0)",
    "torch.ones(3, dtype=torch.int64).clamp(min=0.5)", "changed",
]  # fmt: skip
"""Expressions of which nothing is said: it would be wrong, or take more reading."""

HEAD = """\
SHAPE = (5, 67)
KIND = torch.bfloat16


def made(*sizes):
    return torch.zeros(sizes, dtype=torch.int64)


def get_inputs(n=6, kind=torch.float16):
    twice = torch.rand(5, 67)
    twice = twice.double()
    first, second = torch.rand(5, 1), torch.rand(4)
    changed = torch.rand(5)
    wide = 3
    if n:
        wide = 4
        changed = later = made(3)
"""


def read(expression: str):
    text = a_task("return x", inputs=expression).source
    return read_module(
        replace(a_task("return x"), source=text.replace("def get_inputs():\n", HEAD))
    )


def said_and_made(expression: str):
    module, names = read(expression), {}
    exec(module.task.source, names)
    (said,), (made,) = module.made(), names["get_inputs"]()
    sizes = None if said.shape is None else module.sizes(said.shape, Workload())
    return said, sizes, made


@pytest.mark.parametrize("expression", TOLD)
def test_dtype_and_size_are_those_that_it_has(expression):
    said, sizes, made = said_and_made(expression)
    assert said.number is not isinstance(made, torch.Tensor)
    if isinstance(made, torch.Tensor):
        assert said.dtype == str(made.dtype).removeprefix("torch.")
        assert sizes == made.shape


@pytest.mark.parametrize("expression", HALF_TOLD)
def test_where_the_size_is_not_told_the_dtype_may_be(expression):
    said, sizes, made = said_and_made(expression)
    assert said.dtype == str(made.dtype).removeprefix("torch.")
    assert sizes is None


@pytest.mark.parametrize("expression", UNTOLD)
def test_nothing_is_guessed(expression):
    (said,) = read(expression).made()
    assert said.dtype is None


def test_another_default_dtype_leaves_all_dtypes_open():
    task = a_task("return x")
    begin = "import torch\ntorch.set_default_dtype(torch.float64)\n"
    task = replace(task, source=begin + task.source)
    assert [each.dtype for each in read_module(task).made()] == [None]
