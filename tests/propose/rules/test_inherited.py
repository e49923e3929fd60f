"""Tasks whose ``Model`` takes its forward from a base: read, written and judged."""

import dataclasses
import types

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.propose.rules.compiler.cpp_family import cpp_compiled_family
from kernelsmith.propose.rules.families import templates_only
from kernelsmith.propose.rules.forms import Form
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.kinds import kinds_for
from kernelsmith.propose.rules.source import read_module
from kernelsmith.propose.rules.templates import template_for
from kernelsmith.testing import QUICK

torch = pytest.importorskip("torch")

HEAD = "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"

RMS = (
    HEAD
    + '''
class Scaled(nn.Module):
    power = 1.5

    def __init__(self, dim, eps=1e-6, **unused):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))
        self.register_buffer("shift", torch.full((dim,), 0.25))

    def forward(self, x):
        mean = (x * x).mean(-1, keepdim=True)
        return x * torch.rsqrt(mean + self.eps) * self.weight * self.power + self.shift


class Wide(Scaled):
    def __init__(self, width, **more):
        super().__init__(width * 2, **more)
        self.width = width


class Model(Wide):
    """An RMS norm, three classes deep."""

    power = 2.5

    def __init__(self, half, eps):
        super().__init__(half, eps=eps)


def get_inputs(rows=5):
    return [torch.randn(rows, 68)]


def get_init_inputs(eps=1e-3):
    return [34, eps]
'''
)
COLUMNS = (
    HEAD
    + """
class Base(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, x):
        return torch.softmax(x, dim=self.dim)


class Model(Base):
    pass


def get_inputs():
    return [torch.randn(3, 20, 33)]


def get_init_inputs():
    return [1]
"""
)
ATTENTION = (
    HEAD
    + """
class Attention(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, dim * 3)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * self.scale).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).reshape(b, n, c)


class Model(Attention):
    def __init__(self):
        super().__init__(64)


def get_inputs():
    return [torch.randn(2, 40, 64)]


def get_init_inputs():
    return []
"""
)
FRAMES = (
    HEAD
    + """
class Frames(nn.GroupNorm):
    def forward(self, frames):
        b, c, t, h, w = frames.shape
        flat = frames.permute(0, 2, 1, 3, 4).reshape(b * t, c, h, w)
        return super().forward(flat).view(b, t, c, h, w).permute(0, 2, 1, 3, 4).contiguous()


class Model(Frames):
    def __init__(self, num_groups=2, num_channels=8, eps=1e-5):
        super().__init__(num_groups=num_groups, num_channels=num_channels, eps=eps)


def get_inputs():
    return [torch.randn(2, 8, 3, 10, 10)]


def get_init_inputs(eps=1e-5):
    return [2, 8, eps]
"""
)
TORCHS = (
    HEAD
    + """
class Model(nn.GroupNorm):
    pass


def get_inputs():
    return [torch.randn(4, 8, 20, 20)]


def get_init_inputs(eps=1e-5):
    return [2, 8, eps]
"""
)
MIXED = (
    HEAD
    + """
class Mixed(nn.ModuleDict):
    def __init__(self, channels):
        super().__init__()
        for number in range(2):
            self.add_module(str(number), nn.Conv2d(channels, channels, 2 * number + 1,
                                                   padding=number))

    def forward(self, x):
        return torch.relu(sum(layer(x) for layer in self.values()))


class Model(Mixed):
    def __init__(self):
        super().__init__(4)


def get_inputs():
    return [torch.randn(2, 4, 16, 16)]


def get_init_inputs():
    return []
"""
)


def a_task(source: str, *workloads: Workload) -> Task:
    return Task(name="inherited", source=source, workloads=workloads or (Workload(),))


@pytest.fixture(scope="module")
def judge():
    opened = LocalEvaluator("cpu", dataclasses.replace(QUICK, robust=True, contention=1.0))
    yield opened
    opened.close()


def check(judge, task, source):
    found = judge.judge(task, Candidate(backend="cpu", source=source))
    assert found.verdict is Verdict.PASSED, f"{found.verdict}: {found.message}\n{source}"


def loaded(source: str) -> types.ModuleType:
    module = types.ModuleType("task")
    exec(source, module.__dict__)
    return module


def same_state(task: Task, source: str) -> None:
    """Parameters and buffers of a candidate are the reference's, by name, shape and order."""
    theirs = loaded(task.source)
    given = theirs.get_init_inputs()
    model, made = theirs.Model(*given), loaded(source).ModelNew(*given)
    for kind in ("state_dict", "named_parameters", "named_buffers"):
        want, got = dict(getattr(model, kind)()), dict(getattr(made, kind)())
        assert [*got] == [*want]
        assert [each.shape for each in got.values()] == [each.shape for each in want.values()]


def test_a_forward_and_its_numbers_are_read_through_three_classes(judge):
    task = a_task(RMS)
    template = template_for(task, "cpu")
    source = template.source(template.space.defaults)
    assert "class ModelNew(Wide)" in source
    same_state(task, source)
    check(judge, task, source)


def test_a_number_of_the_constructor_is_not_written_into_the_kernel(judge):
    template = template_for(a_task(RMS), "cpu")
    others = a_task(RMS, Workload(), Workload(name="other", init=(("eps", 1.0),)))
    check(judge, others, template.source(template.space.defaults))


def test_a_kind_of_kernel_keeps_the_inherited_forward_for_other_inputs(judge):
    task = a_task(COLUMNS)
    (family,) = (each for each in kinds_for(task, "cpu") if each.space.template == "columns")
    source = family.source(family.space.defaults)
    made = loaded(source).ModelNew(1)
    x = torch.randn(2, 3, 4)
    assert torch.equal(made.plain(x), torch.softmax(x, 1))
    check(judge, task, source)


@pytest.mark.slow
def test_attention_in_a_base_is_replaced_there(judge):
    task = a_task(ATTENTION)
    (family,) = (each for each in kinds_for(task, "cpu") if each.space.template == "attention")
    source = family.source(family.space.defaults)
    same_state(task, source)
    check(judge, task, source)


def test_a_forward_of_torchs_own_is_no_forward_of_the_file():
    with pytest.raises(NotRecognised, match=r"forward of 'Model' in torch\.nn\.GroupNorm, not in"):
        read_module(a_task(TORCHS))
    assert not templates_only(a_task(TORCHS), "cpu").members


@pytest.mark.parametrize("head", ["@torch.compiler.disable\nclass Base(nn.Module):",
                                  "class Base(nn.Module, metaclass=Changed):"])  # fmt: skip
def test_a_class_that_something_else_may_change_is_not_read(head):
    with pytest.raises(NotRecognised, match="what becomes of the class 'Base'"):
        read_module(a_task(COLUMNS.replace("class Base(nn.Module):", head)))


def written(task: Task) -> Form:
    return Form(name="written", source=task.source)


@pytest.mark.slow
@pytest.mark.parametrize("source", [FRAMES, TORCHS], ids=["frames", "torchs"])
def test_what_the_compiler_begins_holds_for_other_arguments_of_the_constructor(judge, source):
    task = a_task(source)
    family = cpp_compiled_family(task, (written(task),))
    made = family.source(family.space.defaults)
    same_state(task, made)
    others = a_task(source, Workload(), Workload(name="other", init=(("eps", 0.5),)))
    check(judge, others, made)
    x = loaded(source).get_inputs()[0]
    ours, theirs = (getattr(loaded(text), name)(2, 8, 0.5)
                    for text, name in ((made, "ModelNew"), (source, "Model")))  # fmt: skip
    with torch.no_grad():
        torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.slow
def test_layers_that_lie_under_numbers_as_names_are_found(judge):
    task = a_task(MIXED)
    family = cpp_compiled_family(task, (written(task),))
    made = family.source(family.space.defaults)
    assert "self['0'].weight" in made
    check(judge, task, made)
