"""Small tasks of many kinds through the real compiler, and what becomes of them."""

import dataclasses

import pytest
import torch
from cpp_cases import task
from test_cpp_family import same

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Workload
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.propose.rules.compiler.capture import Request, capture_all
from kernelsmith.propose.rules.compiler.cpp_family import SCALAR, family_of
from kernelsmith.propose.rules.forms import Form
from kernelsmith.testing import QUICK

pytestmark = pytest.mark.slow

F = "torch.nn.functional"
KINDS = {
    "chain": ("torch.tanh(x + y) * torch.sigmoid(x) - torch.exp(-y * y)", "x, y",
              "torch.randn(9, 70), torch.randn(70)"),
    "gelu": (f"{F}.gelu(x) + {F}.gelu(x, approximate='tanh')", "x", "torch.randn(300, 67)"),
    "functions": ("x.abs().pow(1.7) + torch.log1p(x.abs()) + torch.expm1(x) + x.sign() + "
                  "torch.round(x) + torch.clamp(x, -1, 1) + torch.atan(x)", "x",
                  "torch.randn(9, 70)"),
    "columns": ("x.sum(0), x.amax(0), x.var(0)", "x", "torch.randn(40, 70)"),
    "inner": ("torch.softmax(x, 1)", "x", "torch.randn(4, 30, 40)"),
    "everything": ("((x - y) ** 2).mean(), x.amin()", "x, y",
                   "torch.randn(300, 200), torch.randn(300, 200)"),
    "layer_norm": (f"{F}.layer_norm(x + y, (70,))", "x, y",
                   "torch.randn(9, 70), torch.randn(9, 70)"),
    "group_norm": (f"{F}.silu({F}.group_norm(x, 4))", "x", "torch.randn(3, 16, 12, 12)"),
    "pool": (f"{F}.avg_pool2d(x, 3, 2, 1), {F}.max_pool2d(x, 2)", "x", "torch.randn(2, 3, 17, 16)"),
    "bilinear": (f"{F}.interpolate(x, scale_factor=2, mode='bilinear')", "x",
                 "torch.randn(2, 3, 8, 8)"),
    "transposed": ("(x.transpose(1, 2) * 2 + y).contiguous()", "x, y",
                   "torch.randn(4, 60, 50), torch.randn(4, 50, 60)"),
    "masked": ("torch.softmax(x.masked_fill(torch.ones(50, 50, dtype=torch.bool).triu(1), "
               "float('-inf')), -1)", "x", "torch.randn(4, 50, 50)"),
    "places": ("x.argmax(-1), x.argmin(0)", "x", "torch.randn(40, 70)"),
    "whole": ("(x // 3) + (x % 5), x.sum(), (x > 3).any(-1)", "x",
              "torch.randint(-100, 100, (64, 20))"),
    "bytes": ("(x * 50).clamp(-128, 127).to(torch.int8).float() * 2, x.to(torch.int32)", "x",
              "torch.cat([torch.randn(8, 70), torch.full((1, 70), float('nan'))])"),
    "loss": (f"{F}.cross_entropy(x, t)", "x, t",
             "torch.randn(64, 70), torch.randint(0, 70, (64,))"),
    "added": ("torch.zeros(10, 20).index_add(0, i, x)", "i, x",
              "torch.randint(0, 10, (64,)), torch.randn(64, 20)"),
    "readout": ("torch.cat((torch.zeros(10, 300).index_add(0, i, x) / torch.zeros(10).index_add("
                "0, i, torch.ones(400))[:, None], torch.zeros(10, 300).scatter_reduce(0, "
                "i[:, None].expand_as(x), x, 'amax', include_self=False)), 1)", "i, x",
                "torch.arange(400) * 7 % 10, torch.randn(400, 300)"),
    "written": ("torch.zeros(30, 900).index_copy(1, i, x.t())", "i, x",
                "torch.randperm(900)[:300], torch.randn(300, 30)"),
    "warped": (f"{F}.grid_sample(x, g, align_corners=True)", "x, g",
               "torch.randn(2, 3, 20, 30), 1.2 * torch.randn(2, 20, 30, 2)"),
    "picked": ("x[:, i] * 2 + x.gather(1, j)", "x, i, j",
               "torch.randn(40, 70), torch.randint(-70, 70, (300,)), "
               "torch.randint(0, 70, (40, 300))"),
    "joined": ("torch.cat([x, y.exp()], 1)", "x, y", "torch.randn(64, 20), torch.randn(64, 30)"),
    "linear": (f"torch.relu({F}.linear(x, w, b)) * 2", "x, w, b",
               "torch.randn(50, 40), torch.randn(64, 40), torch.randn(64)"),
    "router": ("torch.topk(torch.softmax(x, -1), 2)[0]", "x", "torch.randn(300, 64)"),
    "convolution": (f"{F}.silu({F}.conv1d({F}.pad(x, (3, 0)), w, groups=8))", "x, w",
                    "torch.randn(2, 8, 100), torch.randn(8, 1, 4)"),
    "running": ("torch.cumsum(x * 2, -1)", "x", "torch.randn(9, 300)"),
    "half": ("torch.softmax(x.float() * 2, -1).half()", "x", "torch.randn(9, 70).half()"),
    "brain": ("(x.float() * y.float()).sum(-1)", "x, y",
              "torch.randn(9, 70).bfloat16(), torch.randn(9, 70).bfloat16()"),
    "in_place": ("x.add_(1) * 2", "x", "torch.randn(9, 70)"),
}  # fmt: skip
TASKS = {
    name: dataclasses.replace(task(forward, given=given, inputs=inputs), name=name)
    for name, (forward, given, inputs) in KINDS.items()
}
ROBUST = dataclasses.replace(QUICK, robust=True, contention=1.0)


@pytest.fixture(scope="module")
def families():
    requests = [
        Request(source=each.source, workload=Workload(), options=SCALAR) for each in TASKS.values()
    ]
    captured = capture_all(TASKS["chain"], requests, device="cpu")
    return {
        name: family_of(each, [(Form(name="written", source=each.source), [("default", one)])])
        for (name, each), one in zip(TASKS.items(), captured, strict=True)
    }


@pytest.mark.parametrize("name", TASKS)
def test_a_kind_of_task_is_right_in_every_start(families, name):
    family = families[name]
    scope: dict[str, object] = {}
    exec(family.task.source, scope)
    torch.manual_seed(0)
    inputs = scope["get_inputs"]()  # type: ignore[operator]
    for chosen in [*family.space.starts, {**family.space.defaults, **threads_everywhere(family)}]:
        same(family, chosen, *inputs)


def threads_everywhere(family):
    """Threads everywhere, whatever the size."""
    return {"serial_below": "0"} if "serial_below" in family.space.defaults else {}


@pytest.mark.parametrize("name", ["chain", "layer_norm", "columns", "linear", "router", "running"])
def test_the_judge_lets_it_pass(families, name):
    family = families[name]
    evaluator = LocalEvaluator("cpu", ROBUST)
    try:
        source = family.source(family.space.defaults)
        found = evaluator.judge(family.task, Candidate(backend="cpu", source=source))
    finally:
        evaluator.close()
    assert found.verdict is Verdict.PASSED, f"{found.verdict}: {found.message}\n{source}"
    assert "fragile" not in [label.name for label in found.labels], found.labels
