"""The Python around a kernel: what it must bring along of the reference's file."""

import pytest

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.module_source import import_order
from kernelsmith.propose.rules.templates import template_for

torch = pytest.importorskip("torch")

SOURCE = '''\
import torch

START = 0.25


def begin():
    return START


class Base(torch.nn.Module):
    def __init__(self, times):
        super().__init__()
        self.times = self.counted(times)


class Model(Base):
    """A scale that methods of methods fill."""

    TWICE = 2.0

    def __init__(self):
        super().__init__(times=3)
        self.scale = torch.nn.Parameter(torch.empty(67))
        self.reset_parameters()

    def reset_parameters(self):
        """All of them."""
        self._fill(begin())

    def _fill(self, value):
        torch.nn.init.constant_(self.scale, value * Model.TWICE)

    def counted(self, times):
        return times + 1

    def unused(self):
        return self.reset_parameters()

    def forward(self, x):
        return x.sum(dim=-1, keepdim=True) * x * self.scale


def get_inputs():
    return [torch.randn(5, 67)]


def get_init_inputs():
    return []
'''
TASK = Task(name="filled", source=SOURCE, workloads=(Workload(),))


def test_a_constructor_finds_all_that_it_needs():
    template = template_for(TASK, "cpu")
    source = template.source(template.space.defaults)
    assert "def unused" not in source
    names: dict = {}
    exec(source, names)  # builds the kernel
    model = names["ModelNew"]()
    assert model.times == 4
    assert torch.equal(model.scale.detach(), torch.full((67,), 0.5))
    x = torch.randn(5, 67)
    with torch.no_grad():
        assert torch.allclose(model(x), x.sum(-1, keepdim=True) * x * 0.5, atol=1e-5)


def test_a_class_without_a_constructor_is_written_with_its_forward_alone():
    text = SOURCE.replace("super().__init__(times=3)", "super().__init__()")
    head, rest = text.split("class Base"), text.index("def get_inputs")
    plain = (
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x * START\n\n\n"
    )
    template = template_for(
        Task(name="plain", source=head[0] + plain + text[rest:], workloads=(Workload(),)), "cpu"
    )
    source = template.source(template.space.defaults)
    assert "class ModelNew(torch.nn.Module):\n    def forward(self, x):" in source
    assert "def begin" not in source


def test_what_comes_from_the_future_is_imported_before_all_else():
    lines = {
        "from kernelsmith.kernels import cpp", "from PIL import Image", "import torch",
        "from __future__ import annotations", "from abc import ABC",
    }  # fmt: skip
    source = "\n".join(sorted(lines, key=import_order))
    compile(source, "imports.py", "exec")
    assert source.endswith("from kernelsmith.kernels import cpp")
