"""MultiKernelBench: plain files as they are, and cases in JSON made part of the task."""

import json

import pytest

from kernelsmith.bench.suite import Absent, open_suite

PLAIN = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""
CASES = """
import json
import os
import torch
class Model(torch.nn.Module):
    def forward(self, x, k):
        return {forward}
def get_input_groups():
    path = os.path.join(os.path.dirname(__file__), "any.json")
    groups = []
    with open(path, "r") as f:
        for case in [json.loads(line) for line in f if line.strip()]:
            x, k = case["inputs"]
            groups.append([torch.randn(x["shape"]), k["value"]])
    return groups
def get_init_inputs():
    return []
"""


def lines(*shapes, dtype="float32") -> str:
    return "\n".join(
        json.dumps(
            {
                "inputs": [
                    {"name": "x", "type": "tensor", "dtype": dtype, "shape": list(shape)},
                    {"name": "k", "type": "attr", "value": 2},
                ]
            }
        )
        for shape in shapes
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("multikernelbench")
    for name, text in {
        "activation/relu.py": PLAIN,
        "npu_level0/1_scale.py": CASES.format(forward="x * k"),
        "npu_level0/1_scale.json": lines((4, 5), (8, 5), (3, 7), (4096, 1024)),
        "npu_level0/2_nonzero.py": CASES.format(forward="x.clamp(min=0).nonzero()"),
        "npu_level0/2_nonzero.json": lines((4, 5), (8, 5)),
        "npu_level0/3_npu.py": CASES.format(forward="torch_npu.x()") + "import torch_npu\n",
        "npu_level0/3_npu.json": lines((4, 5)),
        "npu_level0/4_lost.py": CASES.format(forward="x"),
    }.items():
        path = root / "reference" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return {each.id: each for each in open_suite(f"multikernelbench:{root}").entries()}


def test_plain_files_load_as_they_are(found):
    entry = found["multikernelbench/activation/relu"]
    assert (entry.category, entry.family) == ("activation", "activation")
    assert entry.task.source == PLAIN


def test_cases_are_part_of_the_text_and_each_is_drawn_alone(found):
    task = found["multikernelbench/npu_level0/1_scale"].task
    scope: dict = {}
    exec(task.source, scope)
    drawn = [scope["get_inputs"](**dict(each.arguments)) for each in task.workloads]
    assert [(tuple(x.shape), k) for x, k in drawn][:2] == [((8, 5), 2), ((4096, 1024), 2)]
    names = [each.name for each in task.workloads if not each.held_out]
    assert [name[:5] for name in names] == ["cpu: ", "gpu: "]
    assert sum(each.held_out for each in task.workloads) == 2


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("2_nonzero", "returns other shapes for other values"),
        ("3_npu", "needs torch_npu"),
        ("4_lost", "its cases are missing"),
    ],
)
def test_what_cannot_be_judged_is_absent_with_its_reason(found, which, reason):
    entry = found[f"multikernelbench/npu_level0/{which}"]
    assert isinstance(entry, Absent)
    assert reason in entry.reason
