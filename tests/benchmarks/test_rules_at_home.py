"""Candidates for a GPU that is not here: real kernels, compiled for it without it."""

from pathlib import Path

import pytest
from benchmarks.rules_at_home import at_true_size, shown, small
from benchmarks.rules_tasks import Chosen

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytestmark = pytest.mark.skipif(
    torch.cuda.is_available(), reason="there is a GPU here, so none is imagined"
)
TASKS = Path(__file__).parents[2] / "tasks"
HEAD = """
import torch
import triton
import triton.language as tl


class ModelNew(torch.nn.Module):
    def __init__(self, *given, **named):
        super().__init__()

    def forward(self, x):
        y = torch.empty_like(x)
        kernel[(x.shape[0],)](x, y, COLUMNS=x.shape[1], num_warps=4)
        return y


@triton.jit
def kernel(x, y, COLUMNS: tl.constexpr):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, 1024)
"""
GOOD = HEAD + "    tl.store(y + at, tl.load(x + at) * 2)\n"
NO_POWER = HEAD + "    tl.store(y + at, tl.load(x + tl.arange(0, 1000)))\n"
REFUSED = GOOD + "\n\ncompiled = torch.compile(torch.sin)\n"


@pytest.fixture(scope="module")
def found():
    chosen = Chosen(key="layer_norm", path=TASKS / "layer_norm.py")
    sources = {"good": GOOD, "no power": NO_POWER, "refused": REFUSED}
    said = at_true_size(chosen.task(gpu=True), chosen.path, list(sources.items()), "NVIDIA H200")
    return dict(zip(sources, said, strict=True))


def test_what_compiles_is_named_with_its_shared_memory(found):
    assert found["good"] == {"kernels": {"kernel": 0}, "failed": "", "refused": ""}


def test_what_does_not_compile_is_a_fault_with_its_reason(found):
    assert "power of 2" in found["no power"]["failed"]


def test_what_the_guards_refuse_is_seen_although_it_compiles(found):
    assert found["refused"]["failed"] == ""
    assert "compile" in found["refused"]["refused"]


def test_a_smaller_size_is_the_same_task_with_fewer_numbers():
    task = Chosen(key="conv", path=TASKS / "depthwise_conv1d.py").task(gpu=True)
    reduced = small(task)
    assert reduced is not None
    assert reduced.entry == task.entry
    assert reduced.compute_dtype == "float16"  # eager's own is TF32 on a GPU


def test_the_table_counts_what_was_built_and_what_is_right():
    record = {
        "task": "t", "reasons": [], "small": [{"said": "wrong", "message": "by far", "note": ""}],
        "true": [{"failed": "", "refused": "", "kernels": {}}],
    }  # fmt: skip
    text = shown({"level1/1": record})
    assert "1/1" in text
    assert "0/1" in text
    assert "wrong: by far" in text
