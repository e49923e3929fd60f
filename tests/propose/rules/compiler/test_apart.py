"""Kernels whose names the task has given to something else get other ones."""

import ast

import pytest
from compiled_cases import captured, task

from kernelsmith.propose.rules.compiler.apart import renamed, renamings
from kernelsmith.propose.rules.compiler.reader import read_call
from kernelsmith.propose.rules.compiler.triton_writer import Shaped, triton_candidate

BLOCK = '''\
@triton.jit
def mean(x, out, XBLOCK: tl.constexpr):
    max = tl.max(x, 0)
    tl.store(out, exp(max) + tl.exp(x))


def exp(x):
    """exp of x."""
    return tl.exp(x)


def compute(x):
    mean[(4,)](x, torch.clamp(x, max=3), XBLOCK=1)
    return x
'''


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (set(), {}),
        ({"max"}, {}),
        ({"mean"}, {"mean": "mean_kernel"}),
        ({"exp", "compute", "x"}, {"compute": "compute_kernel", "exp": "exp_kernel"}),
        ({"mean", "mean_kernel"}, {"mean": "mean_kernel_"}),
    ],
)
def test_only_what_both_define_is_renamed(theirs, found):
    assert renamings(BLOCK, theirs) == found


def test_attributes_keywords_and_words_in_texts_stay():
    source = renamed(BLOCK, {"exp": "exp_kernel", "mean": "mean_kernel", "max": "largest"})
    assert "largest = tl.max(x, 0)" in source
    assert "exp_kernel(largest) + tl.exp(x)" in source
    assert '"""exp of x."""' in source
    assert "mean_kernel[(4,)](x, torch.clamp(x, max=3), XBLOCK=1)" in source
    ast.parse(source)


def test_a_kernel_takes_no_name_that_the_task_means_otherwise():
    own = task("linear_gelu")
    call = read_call(captured("linear_gelu"))
    used = own.source.replace("F.gelu(self.linear(x))", "F.gelu(self.linear(addmm_gelu(x)))")
    assert used != own.source
    taken = type(own)(name=own.name, entry=own.entry, workloads=own.workloads, source=used)
    source = triton_candidate(
        taken, [Shaped(call=call, label="")], header="# kernelsmith rules: compiled",
        words="A test.", launches={},
    )  # fmt: skip
    assert "def addmm_gelu_kernel(" in source
    assert "def addmm_gelu(" not in source


@pytest.mark.parametrize("name", ["addmm_gelu", "compute", "libdevice_erf", "Other"])
def test_a_candidate_defines_no_name_twice(name):
    own = task("linear_gelu")
    used = own.source.replace("return F.gelu(", f"return {name}(")
    taken = type(own)(
        name=own.name, entry=own.entry, workloads=own.workloads,
        source=f"{used}\n\ndef {name}(x):\n    return F.gelu(x)\n",
    )  # fmt: skip
    call = read_call(captured("linear_gelu"))
    source = triton_candidate(
        taken, [Shaped(call=call, label="")], header="# kernelsmith rules: compiled",
        words="A test.", launches={},
    )  # fmt: skip
    defined = [each.name for each in ast.parse(source).body if hasattr(each, "name")]
    assert name in defined
    assert len(defined) == len(set(defined))
    kernels = {each for each in defined if f"{each}[(" in source}
    assert kernels
    assert name not in kernels
    assert f"return {next(each for each in defined if each.startswith('compute'))}(" in source or (
        "compute_kernel(*tensors)" in source
    )
