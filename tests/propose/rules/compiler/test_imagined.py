"""The real compiler, asked for the text of a GPU that is not here; what it writes is read."""

import ast
import os
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.tasks import fitting, load_task
from kernelsmith.propose.rules.compiler.call import Call, Launch, Library
from kernelsmith.propose.rules.compiler.capture import (
    AUTOTUNE,
    CHANNELS_LAST,
    DEFAULT,
    Captured,
    Request,
    Skipped,
    capture_all,
)
from kernelsmith.propose.rules.compiler.facts import facts_of
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.families import Finder

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a GPU here, so none is imagined"
)
TASKS = Path(__file__).parents[4] / "tasks"
H200 = Device(kind="cuda", name="NVIDIA H200")
NAMES = (
    "layer_norm", "linear_gelu", "log_softmax_nll", "cumulative_sum", "embedding_scale",
    "depthwise_conv1d",
)  # fmt: skip
LONE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(64, 64, 3)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(16, 64, 64, 64)]


def get_init_inputs():
    return []
"""
JOINED = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(32768, 16384)
        self.hidden = torch.randn(256, 16384)

    def forward(self, x, y):
        self.hidden.copy_(y)
        self.hidden = torch.tanh(self.linear(torch.cat((x, self.hidden), dim=1)))
        return self.hidden * 2


def get_inputs():
    return [torch.rand(256, 16384), torch.rand(256, 16384)]


def get_init_inputs():
    return []
"""
LOOKS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0.1, 0.9, depth)]
        self.conv = nn.Conv2d(64, 64, 3, padding=1)
        self.register_buffer("shift", torch.ones(1, 64, 1, 1))
        self.plain = torch.ones(64, 1, 1)

    def forward(self, x):
        return torch.relu(self.conv(x) * self.rates[0] + self.shift + self.plain)


def get_inputs():
    return [torch.randn(16, 64, 64, 64)]


def get_init_inputs():
    return [3]
"""


def of(name):
    return fitting(load_task(TASKS / f"{name}.py"), gpu=True)


def asked(task, source, *options, gpu):
    requests = [
        Request(source=source, workload=task.workloads[0], options=each) for each in options
    ]
    return capture_all(task, requests, device="cuda", gpu=gpu)


@pytest.fixture(scope="module")
def found():
    return {name: asked(task := of(name), task.source, DEFAULT, gpu=facts_of(H200))[0]
            for name in NAMES}  # fmt: skip


@pytest.fixture(scope="module")
def looking():
    task = Task(name="looks", source=LOOKS)
    return asked(task, LOOKS, DEFAULT, CHANNELS_LAST, AUTOTUNE, gpu=facts_of(H200))


def read(captured) -> Call:
    assert isinstance(captured, Captured), captured
    call = read_call(captured)
    assert isinstance(call, Call), call
    return call


@pytest.mark.parametrize("name", NAMES)
def test_kernels_are_written_for_it_and_can_be_read(found, name):
    call = read(found[name])
    assert any(isinstance(step, Launch) for step in call.steps)
    assert "cc=90" in found[name].code
    assert "multi_processor_count=132" in found[name].code


def test_arguments_are_the_module_s_own_and_its_inputs(found):
    paths = [each.path for each in found["layer_norm"].arguments]
    assert sorted(paths) == ["self.norm.bias", "self.norm.weight", "x"]
    assert found["layer_norm"].tree == "{0}"


def test_nothing_is_tried_so_no_block_sizes_are_known(found):
    assert all(each.tuned == () for each in found.values())


def test_a_constructor_may_look_at_numbers(looking):
    call = read(looking[0])
    paths = {each.path for each in call.arguments}
    assert paths == {"self.conv.weight", "self.conv.bias", "self.shift", "self.plain", "x"}


def test_a_convolution_s_result_lies_as_the_library_leaves_it(looking):
    """With channels last it comes out with channels last; this torch knows no cuDNN to ask."""
    call = read(looking[1])
    (convolution,) = [
        step for step in call.steps
        if isinstance(step, Library) and step.target == "torch.convolution"
    ]  # fmt: skip
    assert convolution.shape == (16, 64, 64, 64)
    assert convolution.stride == (64 * 64 * 64, 1, 64 * 64, 64)


def test_templates_that_are_chosen_by_trying_are_not_to_be_had(looking):
    assert isinstance(looking[2], Skipped)
    assert "no GPU here to try" in looking[2].reason


def test_without_a_data_sheet_nothing_is_imagined():
    unknown = facts_of(Device(kind="cuda", name="Somebody's first GPU"))
    assert unknown is None
    task = of("layer_norm")
    (said,) = asked(task, task.source, DEFAULT, gpu=unknown)
    assert said == Skipped(reason="there is no GPU here to compile for")


def test_a_concatenation_has_a_kernel_for_each_of_its_tensors():
    """Joined into one, they are launched on a grid that no candidate has."""
    task = Task(name="joined", source=JOINED)
    (said,) = asked(task, task.source, DEFAULT, gpu=facts_of(H200))
    assert [each.grid for each in read(said).kernels][:2] == ["Grid1D", "Grid1D"]


def test_a_forward_may_make_a_number_on_the_device():
    made = "torch.log(torch.tensor(100.0, device=x.device))"
    source = LONE.replace("self.conv(x)", f"torch.clamp(torch.relu(x), max={made}).exp()")
    task = Task(name="made", source=source)
    (said,) = asked(task, source, DEFAULT, gpu=facts_of(H200))
    assert len(read(said).kernels) == 1


def test_others_are_written_for_as_their_data_sheets_say():
    task = of("layer_norm")
    gpu = facts_of(Device(kind="cuda", name="NVIDIA A100-SXM4-80GB"))
    (said,) = asked(task, task.source, DEFAULT, gpu=gpu)
    assert isinstance(said, Captured)
    assert "cc=80" in said.code
    assert "multi_processor_count=108" in said.code


def test_the_rules_go_on_from_it():
    (family,) = Finder(options=(), device=H200).begun(of("layer_norm"), "triton").families.members
    source = family.source(family.space.defaults)
    ast.parse(source)
    assert "@triton.jit" in source
    assert "torch._inductor" not in source


def test_a_convolution_alone_is_the_library_s_and_ours_go_first():
    find = Finder(options=(), device=H200)
    task = Task(name="lone", source=LONE)
    names = [each.name for each in islice(find(task, "triton").starts(), 4)]
    assert names == ["packed", "packed", "packed", "compiled"]
    fused = replace(task, source=LONE.replace("self.conv(x)", "torch.relu(self.conv(x))"))
    assert next(find(fused, "triton").starts()).name == "compiled"


def test_tied_weights_stay_one_argument_when_they_are_cast():
    source = LONE.replace("nn.Conv2d(64, 64, 3)", "nn.Conv2d(64, 64, 3, bias=False)").replace(
        "    def forward", "        self.other = nn.Conv2d(64, 64, 3, bias=False)\n"
        "        self.other.weight = self.conv.weight\n\n    def forward",
    ).replace("self.conv(x)", "self.other(torch.relu(self.conv(x)))")  # fmt: skip
    task = Task(name="tied", source=source, workloads=(Workload(dtype="float16"),))
    (said,) = asked(task, source, DEFAULT, gpu=facts_of(H200))
    assert [each.path for each in said.arguments].count("self.other.weight") == 0
    assert {each.dtype for each in said.arguments} == {"float16"}
    assert len(said.arguments) == 2


def test_who_has_a_gpu_imagines_none(tmp_path):
    """Else untuned text would be kept under its name."""
    find = Finder(options=(), device=H200, lock=tmp_path / "lock")
    found = find.begun(of("layer_norm"), "triton").families
    assert not found.members
    assert any("no GPU here to compile for" in each for each in found.reasons)


@pytest.mark.parametrize("compiler", ["/bin/false", "no-such-compiler"])
def test_where_no_compiler_is_it_says_so(monkeypatch, compiler):
    """In a process of its own: what is forked has the guard already."""
    monkeypatch.setenv("KERNELSMITH_NURSERY", "none")
    monkeypatch.setenv("CXX", compiler)
    task = of("layer_norm")
    (said,) = asked(task, task.source, DEFAULT, gpu=facts_of(H200))
    assert isinstance(said, Skipped)
    assert f"no guard for a GPU that is not here: {compiler}: " in said.reason


@pytest.mark.slow
def test_what_is_written_for_any_built_in_task_is_read_or_refused_with_a_reason():
    without = {}
    for path in sorted(TASKS.glob("*.py")):
        task = of(path.stem)
        (said,) = asked(task, task.source, DEFAULT, gpu=facts_of(H200))
        call = said if isinstance(said, Skipped) else read_call(said)
        if isinstance(call, Skipped):
            without[path.stem] = call.reason
    assert len(without) <= len(os.listdir(TASKS)) // 5
    assert not any("not public" in reason for reason in without.values()), without
