"""Function-style suites: tests and timing scripts become workloads of a self-contained task."""

import json
from dataclasses import replace

import pytest
import torch

from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.bench.suites.calls import RULER
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Library, Workload
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tasks import fitting
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.propose.prompt_feedback import reference_of

HELPERS = """
import torch
def rand_tensor(shape, *, dtype=torch.float32, device="cuda", mode="standard"):
    return torch.randn(*shape, device=device, dtype=dtype)
"""
SCALE = """
import torch

def scale(input, factor=2.0, *, out=None):
    return torch.mul(input, factor, out=out)

{ruler}
import sys
import os
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), "../../../utils")))
from data_utils import rand_tensor

def test_scale():
    torch.manual_seed(0)
    results = {{}}
    results["written down"] = scale(torch.tensor([1.0, 2.0], device='cuda'))
    x = torch.randn(6, 5, device="cuda:0")
    first = scale(x)
    results["first"] = first
    results["second"] = scale(first.cuda(), factor=3.0)
    try:
        results["third"] = scale(rand_tensor((7, 3)), 0.5)
    except Exception as error:
        results["third"] = str(error)
    results["empty"] = scale(torch.randn(0, device="cuda"))
    return results

test_results = test_scale()
"""
TIMING = """
import sys
import os
sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), '..')))
from kernelbenchx.Math.{name} import {name}
from performance_utils import Performance_Metrics, do_bench_config
import torch
import triton
import triton.language as tl

class performance_metrics(Performance_Metrics):
    def __init__(self, dtype=None, is_backward=False, **kwargs):
        super().__init__('{name}', dtype=dtype, is_backward=is_backward, **kwargs)
    def get_input_tensors(self):
        self.input_tensors = []
        for i in range(10, 28):
            self.input_tensors.append(torch.rand(2 ** i, dtype=torch.float32))
    def to_cuda(self, input_tensor):
        return input_tensor.cuda()
    def call_op(self, input_tensor):
        return {name}(input_tensor)
    def get_gbps(self, input_tensor, runtime):
        return 1.0

if __name__ == '__main__':
    op_perf = performance_metrics()
    op_perf.run_benchmark()
"""


def a_file(reference: str, test: str) -> str:
    return f"import torch\n\n{reference}\n\n{RULER}\n\nimport torch\n\n{test}\n"


FILES = {
    "Math/scale": SCALE.format(ruler=RULER),
    "Math/sum": a_file(
        "def sum(input, dim):\n    return torch.sum(input, dim)",
        "def test():\n    return sum(torch.randn(4, 6, device='cuda'), 1)\nresult = test()",
    ),
    "Random/noise": a_file(
        "def noise(input, p=0.5):\n    return torch.nn.functional.dropout(input, p)",
        "def test():\n    return noise(torch.ones(64, device='cuda') + torch.rand(64))\nr = test()",
    ),
    "Index/pick": a_file(
        "def pick(input):\n    return input[input > 0]",
        "def test():\n    return pick(torch.randn(64, device='cuda'))\nr = test()",
    ),
    "Math/spectrum": a_file(
        "def spectrum(input):\n    return torch.fft.fft(input)",
        "def test():\n    return spectrum(torch.randn(8, device='cuda'))\nr = test()",
    ),
    "Math/buffer": a_file(
        "def buffer(input, out=None):\n    return torch.exp(input, out=out)",
        "def test():\n    x = torch.tensor([1.0, 2.0], device='cuda')\n"
        "    buffer(x, out=torch.rand(2))\n    return buffer(torch.randn(9))\nr = test()",
    ),
    "Math/constant": a_file(
        "def constant(input):\n    return torch.exp(input)",
        "def test():\n    return constant(torch.tensor([1.0, 2.0], device='cuda'))\nr = test()",
    ),
    "Math/prepares": a_file(
        "def prepares(input):\n    return torch.exp(input)",
        "def test():\n    return prepares(torch.tensor([1.0], device='cuda'))\nr = test()",
    ),
    "Math/two": a_file(
        "def two(x):\n    return x\n\ndef three(x):\n    return x",
        "def test():\n    return three(torch.randn(3))\nr = test()",
    ),
    "Fusion/pair": a_file(
        "def first(x):\n    return x\n\ndef second(x):\n    return x",
        "def test():\n    return second(first(torch.randn(3)))\nr = test()",
    ),
    "Quantization/linear_w8a8": a_file(
        "def linear_w8a8(x, w):\n    return x @ w.T",
        "def test():\n    return linear_w8a8(torch.randn(4, 8), torch.randn(5, 8))\nr = test()",
    ),
}
BOUNDS = {"precision_thresholds": {"cosine_sim": 0.95, "l1_relative": 0.05, "rmse": 0.1}}


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("kernelbenchx")

    def put(name, text):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    for name, text in FILES.items():
        put(f"data/kernelbenchx/{name}.py", text)
    put("data/kernelbenchx/Math/unlisted.py", FILES["Math/sum"])
    put("utils/data_utils.py", HELPERS)
    for name in ("scale", "sum"):
        timing = TIMING.format(name=name)
        put(f"metrics/golden_metrics/{name}_perf.py", timing)
    prepares = TIMING.format(name="prepares").replace(
        "            self.input_tensors.append(",
        "            prepares(torch.rand(3))\n            self.input_tensors.append(",
    )
    put("metrics/golden_metrics/prepares_perf.py", prepares)
    records = [
        {"file": f"{name}.py", "difficulty": 2} | (BOUNDS if "w8a8" in name else {})
        for name in [*FILES, "Math/lost"]
    ]
    put("data/kernelbenchx_v1.json", json.dumps(records))
    return {each.id: each for each in open_suite(f"kernelbench-x:{root}").entries()}


def drawn(entry: Entry, case: str, index: int):
    scope: dict = {}
    exec(entry.task.source, scope)
    return scope["get_inputs"](case=case, index=index)


def test_sizes_of_the_timing_script_are_timed_and_tests_are_held_out(found):
    task = found["kernelbench-x/Math/scale"].task
    assert task.entry == "scale"
    timed = [each.name for each in task.workloads if not each.held_out]
    assert [name.partition(":")[0] for name in timed] == ["cpu", "gpu", "gpu"]
    assert timed[0] == "cpu: timing 12: 2097152 float32"
    held_out = [each.name for each in task.workloads if each.held_out]
    assert [name.partition(":")[0] for name in held_out] == ["test 2", "test 3", "test 4"]


def test_values_that_a_test_writes_down_and_empty_tensors_are_left_out(found):
    names = " ".join(each.name for each in found["kernelbench-x/Math/scale"].task.workloads)
    assert "test 1:" not in names
    assert "test 5:" not in names


def test_a_buffer_for_the_result_does_not_make_written_values_vary(found):
    task = found["kernelbench-x/Math/buffer"].task
    assert [each.name for each in task.workloads] == ["test 2: 9 float32"]


def test_a_timing_script_may_call_the_function_to_prepare_its_sizes(found):
    entry = found["kernelbench-x/Math/prepares"]
    assert entry.task.workloads[0].name == "cpu: timing 12: 2097152 float32"
    assert drawn(entry, "timing", 1)["input"].shape == (2**11,)


def test_arguments_are_those_of_the_call_by_name(found):
    entry = found["kernelbench-x/Math/scale"]
    second = drawn(entry, "test", 2)
    assert second["input"].shape == (6, 5)
    assert second["factor"] == 3.0
    assert drawn(entry, "timing", 3)["input"].shape == (2**13,)
    with pytest.raises(IndexError, match="no 6 calls"):
        drawn(entry, "test", 5)


def test_draws_follow_torchs_seed_and_not_the_tests_own(found):
    entry = found["kernelbench-x/Math/scale"]
    values = []
    for seed in (1, 2, 1):
        torch.manual_seed(seed)
        values.append(drawn(entry, "test", 1)["input"])
    assert torch.equal(values[0], values[2])
    assert not torch.equal(values[0], values[1])


def test_a_proposer_sees_the_sizes_and_not_the_tests(found):
    shown = reference_of(found["kernelbench-x/Math/scale"].task)
    assert "def scale(" in shown
    assert "range(10, 28)" in shown
    assert "test_scale" not in shown
    assert "data_utils" not in shown


def test_a_reference_may_have_the_name_of_a_function_of_python(found):
    assert found["kernelbench-x/Math/sum"].task.entry == "sum"


def test_the_suites_bounds_by_dtype_hold(found):
    assert found["kernelbench-x/Math/scale"].task.tolerance.atol == 1e-5
    quantised = found["kernelbench-x/Quantization/linear_w8a8"]
    assert quantised.task.tolerance.atol == 0.1
    assert quantised.task.compute_dtype == "bfloat16"
    assert "l1_relative 0.05" in quantised.note


def test_random_references_bring_a_statistic(found):
    entry = found["kernelbench-x/Random/noise"]
    assert "random" in entry.note
    scope: dict = {}
    exec(entry.task.source, scope)
    said = scope["statistic"](torch.tensor([0.0, 2.0]))
    assert said.tolist() == [1.0, 2.0, 0.5]


def test_the_test_that_is_named_like_the_file_wins_over_helpers(found):
    assert isinstance(found["kernelbench-x/Math/two"], Entry)
    assert found["kernelbench-x/Math/two"].task.entry == "three"


@pytest.mark.parametrize(
    ("which", "reason"),
    [
        ("Index/pick", "returns other shapes for other values"),
        ("Math/spectrum", "returns a complex64 tensor"),
        ("Math/constant", "has its values written down"),
        ("Fusion/pair", "call 2 functions (first, second)"),
        ("Math/lost", "not in the checkout"),
        ("Math/unlisted", "not published"),
    ],
)
def test_what_cannot_be_judged_is_absent_with_its_reason(found, which, reason):
    entry = found[f"kernelbench-x/{which}"]
    assert isinstance(entry, Absent)
    assert reason in entry.reason


def test_a_generated_task_is_judged_as_any_other(found):
    task = fitting(found["kernelbench-x/Math/scale"].task, gpu=False)
    small = Workload(name="small", arguments=(("case", "timing"), ("index", 3)))
    chosen = (small, task.workloads[2])
    assert chosen[1].held_out
    task = replace(task, library=Library.ANY, workloads=chosen)
    honest = "import torch\ndef scale(input, factor=2.0, *, out=None):\n    return input * factor\n"
    stop = StopRule(target_width=0.5, min_pairs=1, max_pairs=1, budget_s=1.0)
    with LocalEvaluator("cpu", Settings(stop=stop)) as evaluator:
        right = evaluator.judge(task, Candidate(backend="cpu", source=honest))
        careless = honest.replace("* factor", "* 2.0")
        wrong = evaluator.judge(task, Candidate(backend="cpu", source=careless))
    assert right.verdict is Verdict.PASSED
    assert not any(label.name is LabelName.DEGENERATE for label in right.labels)
    assert wrong.verdict is Verdict.WRONG


KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def _double(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * 2, mask=at < n)

def double(x):
    with torch.cuda.device(x.device.index):
        y = torch.empty_like(x)
        _double[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y, y
"""


@pytest.fixture
def tritonbench(put, tmp_path):
    tests = (
        "def test():\n"
        "    a, b = double(torch.randn(16, device='cuda'))\n"
        "    return double(torch.randn(4, 8, device='cuda')), a.sum()\n"
        "result_gold = test()\n"
    )
    put("data/TritonBench_G_v1/twice.py", f"{KERNEL}\n{RULER}\n{tests}")
    put("data/TritonBench_G_v1.json", json.dumps([{"file": "twice.py", "difficulty": "3"}]))
    put("data/TritonBench_T_v1/sum.py", FILES["Math/sum"])
    timing = TIMING.format(name="sum").replace("kernelbenchx.Math", "TorchBench_v1")
    put("performance_metrics/perf_T/golden_metrics/sum_perf.py", timing)
    listed = [{"name": "torch.sum", "file": "sum.py", "difficulty": 1}]
    put("data/TritonBench_T_v1.jsonl", json.dumps(listed, indent=1))
    return tmp_path


def test_triton_references_are_surveyed_without_a_gpu(tritonbench):
    (entry,) = open_suite(f"tritonbench-g:{tritonbench}").entries()
    assert isinstance(entry, Entry)
    assert (entry.id, entry.level) == ("tritonbench-g/twice", "difficulty 3")
    assert [each.name.partition(":")[0] for each in entry.task.workloads] == ["test 2", "test 1"]
    assert "the reference is a Triton kernel" in entry.note
    assert "without_gpu" not in entry.task.source
    assert "get_device_capability" not in entry.task.source


def test_a_call_that_the_timing_script_gets_wrong_is_not_timed(tritonbench):
    (entry,) = open_suite(f"tritonbench-t:{tritonbench}").entries()
    assert isinstance(entry, Entry)
    assert entry.level == "difficulty 1"
    assert [each.name for each in entry.task.workloads] == ["test 1: 4x6, dim=1 float32"]
    assert "timed on its largest test" in entry.note


def test_a_reference_and_a_timing_script_may_begin_with_the_future(put, tritonbench):
    timing = "performance_metrics/perf_T/golden_metrics/sum_perf.py"
    for name in ("data/TritonBench_G_v1/twice.py", timing):
        text = (tritonbench / name).read_text()
        put(name, f'"""What it is."""\nfrom __future__ import annotations\n{text}')
    for spec in ("tritonbench-g", "tritonbench-t"):
        (entry,) = open_suite(f"{spec}:{tritonbench}").entries()
        assert isinstance(entry, Entry), entry
        assert entry.task.workloads


@pytest.mark.parametrize("spec", ["tritonbench-t", "kernelbench-x"])
def test_only_what_is_asked_for_is_run(spec, put, tritonbench):
    put("data/TritonBench_T_v1/other.py", FILES["Math/sum"])
    put("data/kernelbenchx/Math/sum.py", FILES["Math/sum"])
    listed = [{"file": "Math/sum.py"}, {"file": "Math/other.py"}]
    put("data/kernelbenchx_v1.json", json.dumps(listed))
    wanted = f"{spec}/sum" if spec == "tritonbench-t" else f"{spec}/Math/sum"
    suite = open_suite(f"{spec}:{tritonbench}", lambda id: id == wanted)
    assert [each.id for each in suite.entries()] == [wanted]
