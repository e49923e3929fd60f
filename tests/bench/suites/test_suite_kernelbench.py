"""KernelBench's levels, from a made-up checkout of the same form."""

import re

import pytest

from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.bench.suites.degenerate import note_of

FILE = """
import torch
{imports}
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu(){more}
def get_inputs():
    return [torch.rand(8)]
def get_init_inputs():
    return []
"""


def text(imports="", more="") -> str:
    return FILE.format(imports=imports, more=more)


@pytest.fixture
def checkout(put, tmp_path):
    put("KernelBench/level1/2_Standard_matmul.py", text())
    put("KernelBench/level1/10_Conv2d_ReLU_Softmax.py", text(more=".half()  # torch.float16"))
    put("KernelBench/level1/13_Matmul_for_symmetric_matrices.py", text())
    put("KernelBench/level1/23_Softmax.py", text())
    put("KernelBench/level1/98_KLDivLoss.py", text())
    put("KernelBench/level2/8_Conv3d_Divide_Max.py", text())
    put("KernelBench/level3/48_Mamba.py", text("import no_such_package_at_all"))
    put("KernelBench/level3/49_Broken.py", "import torch\ndef get_inputs(:\n")
    put("KernelBench/level4/1_gpt2.py", text(more="  # AutoModel.from_pretrained('gpt2')"))
    return {each.id: each for each in open_suite(f"kernelbench:{tmp_path}").entries()}


def test_ids_are_level_and_number_in_the_order_of_numbers(checkout):
    assert list(checkout)[:5] == [f"kernelbench/level1/{n}" for n in (2, 10, 13, 23, 98)]


def test_what_is_absent_has_the_level_that_it_would_be_of(checkout):
    assert checkout["kernelbench/level3/48"].level == "level 3"
    assert checkout["kernelbench/level4/1"].level == "level 4"


def test_what_a_recipe_promises_without_saying_so_is_declared(checkout):
    assert checkout["kernelbench/level1/13"].task.structure == ("symmetric",)
    assert checkout["kernelbench/level1/98"].task.structure == ("probabilities",)
    assert checkout["kernelbench/level1/2"].task.structure == ()


def test_degenerate_problems_say_so(checkout):
    assert checkout["kernelbench/level1/23"].is_degenerate
    assert checkout["kernelbench/level2/8"].is_suspect
    assert not checkout["kernelbench/level2/8"].is_degenerate
    assert not checkout["kernelbench/level1/2"].is_suspect


def test_level_family_and_dtype_are_there_to_group_by(checkout):
    fused = checkout["kernelbench/level1/10"]
    assert (fused.level, fused.family, fused.dtype) == ("level 1", "convolution", "float16")
    assert checkout["kernelbench/level1/2"].family == "matmul"
    assert checkout["kernelbench/level1/2"].dtype == "float32"


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("level3/48", "needs no_such_package_at_all: pip install"),
        ("level3/49", "invalid syntax|is not Python"),
        ("level4/1", "pretrained model from Hugging Face"),
    ],
)
def test_what_cannot_be_judged_is_absent_with_its_reason(checkout, which, reason):
    found = checkout[f"kernelbench/{which}"]
    assert isinstance(found, Absent)
    assert re.search(reason, found.reason)


def test_a_level_that_is_not_in_the_checkout_is_said_once(put, tmp_path):
    put("level1/1_A.py", text())
    entries = list(open_suite(f"kernelbench:{tmp_path}").entries())
    assert isinstance(entries[0], Entry)
    assert [each.id for each in entries[1:]] == [f"kernelbench/level{n}" for n in (2, 3, 4)]


def test_the_list_of_degenerate_problems_is_the_one_that_was_measured():
    degenerate = {
        (level, n)
        for level in (1, 2, 3)
        for n in range(1, 101)
        if note_of(level, n).startswith("degenerate:")
    }
    first = {(1, n) for n in (19, 20, 23, 31, 32, 37)}
    assert degenerate == first | {(2, n) for n in (9, 23, 36, 38, 42, 65, 80, 83)}
