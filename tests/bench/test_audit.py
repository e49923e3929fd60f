"""Audits: reading what others published, matching it to tasks, and holding it to its claims."""

import json
from dataclasses import replace

import pytest

from kernelsmith.bench.audit import NEEDS_CUDA, Auditor, Finding, Opinion, held, limited, tally
from kernelsmith.bench.published.folder import published_in
from kernelsmith.bench.published.kernel import Published, language_of
from kernelsmith.bench.suite import open_suite
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import UsageError

REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return []
"""
RIGHT = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0) + torch.clamp(x, min=0)
"""
INPLACE = RIGHT.replace("return torch.clamp(x, min=0) + torch.clamp(x, min=0)",
                        "return x.clamp_(min=0).mul_(2)")  # fmt: skip
CUDA = 'from torch.utils.cpp_extension import load_inline\nsource = "__global__ void f() {}"\n'
ON_GPU = RIGHT.replace("return torch", "x = x.cuda(); return torch")
TRITON = """
import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, tl.maximum(value, 0.0) * 2, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        if n:
            kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
        return y
"""


def found_in(path):
    return list(published_in(path))


@pytest.mark.parametrize(
    ("source", "language"),
    [
        (RIGHT, "pytorch"),
        (TRITON, "triton"),
        (CUDA, "cuda"),
        (f"from kernelsmith.kernels import cpp\n{RIGHT}", "cpp"),
    ],
)
def test_a_language_is_read_from_the_source(source, language):
    assert language_of(source) == language


def test_kernelbenchs_generations_are_known_by_their_names(tmp_path):
    (tmp_path / "level_1_problem_23_sample_0_kernel.py").write_text(RIGHT)
    (tmp_path / "notes.py").write_text("x = 1")
    (kernel,) = found_in(tmp_path)
    assert (kernel.level, kernel.number, kernel.language) == (1, 23, "pytorch")


@pytest.mark.parametrize("name", ["level2/17_Conv.py", "level2/sub/17_x/17_Conv.py", "l2_p17.py"])
def test_other_ways_to_name_a_problem_are_known(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RIGHT)
    (kernel,) = found_in(tmp_path)
    assert (kernel.level, kernel.number) == (2, 17)


def test_a_file_may_bring_its_reference(tmp_path):
    (tmp_path / "both.py").write_text(REFERENCE + RIGHT)
    (kernel,) = found_in(tmp_path)
    assert kernel.reference == REFERENCE + RIGHT


def test_tables_are_read_row_by_row_with_their_claims(tmp_path):
    rows = [
        {"level_id": 1, "task_id": 3, "ref_code": REFERENCE, "custom_code": RIGHT,
         "score_default": 1.5},
        {"level_id": 1, "task_id": 4, "ref_code": REFERENCE, "custom_code": "None"},
    ]  # fmt: skip
    (tmp_path / "h100.json").write_text("\n".join(json.dumps(row) for row in rows))
    (kernel,) = found_in(tmp_path)
    assert kernel.id == "h100.json#level1/3"
    assert (kernel.claim, kernel.claimed_on, kernel.reference) == (1.5, "h100", REFERENCE)


def test_tables_of_other_forms_are_read_too(tmp_path):
    nested = {"2": [{"task_id": 9, "custom_code": RIGHT}]}
    (tmp_path / "a.json").write_text(json.dumps(nested))
    (tmp_path / "b.csv").write_text('task_name,Code,Speedup\nrelu,"#include <x>\n",2.5\n')
    first, second = found_in(tmp_path)
    assert (first.level, first.number) == (2, 9)
    assert (second.name, second.language, second.claim) == ("relu", "cuda", 2.5)


def test_a_file_that_cannot_be_read_is_named_with_the_folder_that_holds_nothing_else(tmp_path):
    (tmp_path / "set.json").write_text("{")
    (tmp_path / "null.py").write_text("class Other:\0 pass")
    with pytest.raises(UsageError, match=r"holds no kernel: .*; set\.json: is not JSON"):
        found_in(tmp_path)


def test_a_folder_without_kernels_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(UsageError, match="holds no kernel"):
        found_in(tmp_path)


@pytest.fixture(scope="module")
def auditor(tmp_path_factory):
    folder = tmp_path_factory.mktemp("suite")
    (folder / "level1").mkdir()
    (folder / "level1" / "7_relu.py").write_text(REFERENCE)
    made = Auditor("quick", open_suite(f"kernelbench:{folder}"))
    yield made
    made.close()


def a_kernel(source, **more):
    usual = {"id": "k", "source": source, "language": language_of(source), "level": 1, "number": 7}
    return Published(**{**usual, **more})


CLAIMED = a_kernel(RIGHT, claim=9.0, claimed_on="h100")


@pytest.fixture(scope="module")
def right(auditor):
    return auditor.audit(CLAIMED)


def test_a_right_kernel_is_right_and_its_claim_for_another_device_is_left_alone(right):
    found = right
    assert (found.opinion, found.verdict) == (Opinion.RIGHT, Verdict.PASSED)
    assert "claimed 9.000x on h100" in found.evidence
    assert not found.own_kernel
    assert found.speedup is not None


def test_a_kernel_that_changes_its_inputs_is_wrong(auditor):
    found = auditor.audit(a_kernel(INPLACE))
    assert found.opinion is Opinion.WRONG
    assert "input" in found.evidence


def test_a_triton_kernel_is_judged_in_the_interpreter_without_a_time(auditor):
    found = auditor.audit(a_kernel(TRITON))
    assert (found.opinion, found.own_kernel) == (Opinion.RIGHT, True), found.evidence
    assert found.speedup is None


def test_what_cannot_be_judged_here_is_not_held_against_anyone(auditor):
    assert auditor.audit(a_kernel(CUDA)).evidence == NEEDS_CUDA
    assert auditor.audit(a_kernel(CUDA)).opinion is Opinion.UNJUDGED
    on_gpu = auditor.audit(a_kernel(ON_GPU))
    assert on_gpu.opinion is Opinion.UNJUDGED
    assert "needs an NVIDIA GPU" in on_gpu.evidence
    nowhere = auditor.audit(a_kernel(RIGHT, number=99))
    assert "no task for it" in nowhere.evidence


def test_a_finding_stands_while_nothing_that_decides_it_is_another(auditor, right):
    kernel, found = CLAIMED, right
    assert auditor.stands(found, kernel)
    for name in ("sha256", "suite", "task_hash", "effort", "device", "judge"):
        assert getattr(found, name), name
        assert not auditor.stands(replace(found, **{name: "another"}), kernel)
    assert not auditor.stands(found, replace(kernel, claim=8.0))
    assert not auditor.stands(replace(found, opinion=Opinion.UNJUDGED), kernel)
    assert not auditor.stands(found, replace(kernel, number=99))


def test_only_what_can_be_judged_here_is_taken(auditor):
    assert auditor.takes(a_kernel(RIGHT))
    assert auditor.takes(a_kernel(RIGHT, number=99, reference=REFERENCE))
    assert not auditor.takes(a_kernel(RIGHT, number=99))
    assert not auditor.takes(a_kernel(CUDA))  # it defines no ModelNew


@pytest.mark.triton
def test_cuda_is_taken_where_there_is_a_gpu_and_a_compiler(auditor):
    assert auditor.takes(a_kernel(f"{CUDA}{RIGHT}"))


@pytest.mark.parametrize(
    ("limit", "here", "kept", "left_out"),
    [
        (2, "acde", "abc", "de"),  # b is in a language that nothing runs here
        (2, "abcde", "ab", "cde"),
        (9, "ace", "abcde", ""),
        (1, "e", "abcde", ""),
        (None, "abcde", "abcde", ""),
    ],
)
def test_a_limit_counts_whatever_is_judged(limit, here, kept, left_out):
    kernels = [a_kernel(CUDA if name in "bd" else RIGHT, id=name) for name in "abcde"]
    found = limited(kernels, limit, lambda kernel: kernel.id in here)
    assert tuple("".join(each.id for each in side) for side in found) == (kept, left_out)


def test_a_refused_source_is_run_all_the_same(auditor):
    loud = RIGHT.replace(
        "import torch.nn", "torch.backends.cudnn.benchmark = True\nimport torch.nn"
    )
    found = auditor.audit(a_kernel(loud))
    assert found.opinion is Opinion.REFUSED
    assert "cudnn.benchmark" in found.evidence
    assert found.if_run == "passed"


def a_finding(**changes):
    usual = {"id": "k", "language": "triton", "opinion": Opinion.RIGHT}
    return Finding(**{**usual, **changes})


def test_a_claim_is_held_against_the_whole_interval():
    measured = Ratio(value=1.5, low=1.4, high=1.6)
    over = a_finding(claim=2.0, speedup=measured)
    within = a_finding(claim=1.55, speedup=measured)
    assert held(over, comparable=True)[0] is Opinion.SLOWER
    assert held(within, comparable=True)[0] is Opinion.HOLDS
    assert held(over, comparable=False)[0] is Opinion.RIGHT


def test_without_a_claim_slower_means_slower_than_eager():
    slow = a_finding(speedup=Ratio(value=0.5, low=0.4, high=0.6))
    assert held(slow, comparable=True) == (
        Opinion.SLOWER, "slower than eager here: 0.500x [0.400, 0.600]",
    )  # fmt: skip


def test_a_tally_begins_with_the_worst():
    some = [a_finding(), a_finding(opinion=Opinion.CHEATED), a_finding()]
    assert list(tally(some).items()) == [("cheated", 1), ("right", 2)]
