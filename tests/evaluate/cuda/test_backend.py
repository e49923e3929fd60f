"""The judge on a GPU: the contract, what the card shows, and faults that leave no trace."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.cuda.backend import CudaBackend
from kernelsmith.evaluate.cuda.nvml import Nvml
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.testing import BackendContract

pytestmark = pytest.mark.triton

ROOT = Path(__file__).parents[3]
CASES = ROOT / "benchmarks" / "cases" / "gpu"
ZOO = ROOT / "tests" / "cheats" / "gpu"
SOFTMAX = load_task(CASES / "softmax.py")
RIGHT = (CASES / "softmax_triton.py").read_text()
BROKEN, WRONG = RIGHT.replace("tl.sum(", "tl.summ("), RIGHT.replace("e / total", "e * total")
SETTINGS = replace(effort("quick", "triton"), robust=False, timeout_s=10.0)
FREED_BYTES, FREED_S = 32 << 20, 20.0
"""Memory above what was in use before that counts as given back, and how long it may take."""

LARGE = Task(
    name="large",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs(count):
    return [torch.rand(count)]
def get_init_inputs():
    return []
""",
    workloads=(Workload(name="huge", arguments=(("count", 10**11),)),),
)


@pytest.fixture(scope="module")
def backend():
    backend = CudaBackend()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def evaluator(backend):
    evaluator = LocalEvaluator(backend, SETTINGS)
    yield evaluator
    evaluator.close()


@pytest.fixture(scope="module")
def passed(evaluator) -> Evaluation:
    return judged(evaluator, RIGHT)


def judged(evaluator: LocalEvaluator, source: str, task: Task = SOFTMAX) -> Evaluation:
    return evaluator.judge(task, Candidate(backend="triton", source=source))


def fault(name: str) -> str:
    return (CASES / "faults" / f"{name}.py").read_text()


class TestCudaBackend(BackendContract):
    task, good, broken, wrong = SOFTMAX, RIGHT, BROKEN, WRONG


def test_a_machine_with_a_gpu_opens_it_unasked(monkeypatch):
    monkeypatch.delenv("KERNELSMITH_TRITON", raising=False)
    found = load_backend("triton")
    try:
        assert found.timed
        assert found.device().kind == "cuda"
    finally:
        found.close()


def test_the_device_names_driver_libraries_and_sandbox(passed):
    assert passed.device.kind == "cuda"
    assert {"torch", "triton", "driver"} <= dict(passed.device.versions).keys()
    assert passed.device.sandbox.endswith("may start compilers")


def test_at_a_glance_processes_that_stay_change_no_verdict_and_no_ratio(backend):
    evaluator = LocalEvaluator(backend, effort("glance", "triton"))
    try:
        found = [judged(evaluator, each) for each in (RIGHT, RIGHT + "# again", WRONG, RIGHT)]
    finally:
        evaluator.forget()
    assert [each.verdict.value for each in found] == ["passed", "passed", "wrong", "passed"]
    first, *others = [each.timing.speedup.value for each in found if each.timing]
    assert others == pytest.approx([first, first], rel=0.1)
    seconds = [dict(each.device_log)["seconds"] for each in found if each.timing]
    assert "alone" in seconds[0]
    assert all("arranging" in each and "alone" not in each for each in seconds[1:])


def test_two_ratios_with_an_interval_around_each(passed):
    assert passed.verdict is Verdict.PASSED, passed.message
    (timed,) = passed.timing.workloads
    assert timed.mode == "graph"
    assert timed.call is not None
    for ratio in (timed.speedup, timed.call.speedup, passed.timing.call):
        assert 0 < ratio.low <= ratio.value <= ratio.high
    assert timed.launches > 1, "a batch of many inputs, for a kernel of microseconds"
    assert timed.samples >= 3


def test_a_plain_call_costs_no_less_than_the_device_time(passed):
    (timed,) = passed.timing.workloads
    assert timed.call.median_us > 0.9 * timed.median_us


def test_the_card_has_the_kernel_with_its_resources(passed):
    (kernel,) = [each for each in passed.kernels if each.own]
    assert kernel.name == "softmax_kernel"
    assert kernel.launches == 1
    assert kernel.registers > 0
    assert kernel.spills == 0
    assert kernel.grid[0] == 1024
    assert "float32" in kernel.precision
    assert sum(each.share for each in passed.kernels) == pytest.approx(1.0, abs=0.01)
    assert passed.coverage.own > 0.9


def test_the_card_has_the_roofline(passed):
    (roofline,) = passed.rooflines
    assert roofline.bytes == pytest.approx(2 * 4 * 1024 * 1024, rel=0.05)
    assert 0 < roofline.floor_us < passed.timing.workloads[0].median_us / 0.8
    assert roofline.bandwidth_share > 0


def test_the_card_says_what_the_device_did_meanwhile(passed):
    said = dict(passed.device_log)
    assert "MHz" in said["sm clock"]
    assert said["throttled"]
    stages = [name for name, _ in passed.spent]
    assert stages[:4] == ["room", "reference", "build", "check"]


def test_an_evaluation_on_a_gpu_is_one_line_of_json(passed):
    assert loads(dumps(passed)) == passed


def test_an_autotuners_choice_is_recorded(evaluator):
    source = (ZOO / "honest" / "softmax_autotuned.py").read_text()
    found = judged(evaluator, source, load_task(ZOO / "tasks" / "softmax.py"))
    assert found.verdict is Verdict.PASSED, found.message
    (kernel,) = [each for each in found.kernels if each.own]
    assert "BLOCK: " in kernel.config
    assert "num_warps" in kernel.config


def test_what_was_rehearsed_is_what_the_device_launches(backend, evaluator, passed):
    def kernels() -> set[str]:
        return {name for name in backend._settled[source].files if name.endswith(".cubin")}

    assert passed.verdict is Verdict.PASSED, "the backend knows its device now"
    source = RIGHT + "\n# rehearsed\n"
    candidate = Candidate(backend="triton", source=source)
    backend.rehearse(SOFTMAX, candidate, timeout_s=30.0)
    ahead = kernels()
    assert ahead
    assert judged(evaluator, source).verdict is Verdict.PASSED
    assert not backend._settled[source].seeded, "its own process left it"
    assert kernels() == ahead, "nothing was compiled anew"


def test_a_kernel_that_triton_does_not_compile_is_told_the_line(evaluator):
    found = judged(evaluator, BROKEN)
    assert found.verdict is Verdict.BUILD_FAILED
    assert "summ" in found.message


def test_a_task_too_large_for_the_device_is_refused_with_the_figure(evaluator):
    with pytest.raises(UsageError, match=r"needs about [\d.]+ GB of device memory") as raised:
        judged(evaluator, RIGHT, LARGE)
    assert "inputs 400.0, outputs 400.0" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("illegal_address", Verdict.CRASHED),
        ("out_of_memory", Verdict.CRASHED),
        ("endless_kernel", Verdict.TIMED_OUT),
    ],
)
def test_a_fault_is_the_candidates_and_the_next_one_is_judged_right(evaluator, name, verdict):
    found = judged(evaluator, fault(name))
    assert found.verdict is verdict, found.message
    assert found.message
    assert judged(evaluator, RIGHT).verdict is Verdict.PASSED


@pytest.mark.parametrize("name", ["illegal_address", "memory_hoarder", "left_spinning"])
def test_memory_is_given_back_when_the_judge_closes(name):
    with Nvml() as nvml:
        gpu = nvml.device(used_gpu())
        before = gpu.memory().used
        unguarded = replace(SETTINGS, static=False)
        with LocalEvaluator(CudaBackend(), unguarded) as evaluator:
            assert judged(evaluator, RIGHT).verdict is Verdict.PASSED
            assert judged(evaluator, fault(name)).verdict is not Verdict.PASSED
            assert gpu.memory().used > before
        until = time.monotonic() + FREED_S
        while gpu.memory().used > before + FREED_BYTES and time.monotonic() < until:
            time.sleep(0.1)
        assert gpu.memory().used <= before + FREED_BYTES


def used_gpu() -> str:
    backend = CudaBackend()
    try:
        return backend.gpu.uuid
    finally:
        backend.close()


def test_nothing_of_one_process_is_left_to_the_next():
    source = RIGHT.replace(
        "class ModelNew",
        "import os, pathlib\n"
        "print(sorted(os.listdir('/tmp')), flush=True)\n"
        "pathlib.Path('/tmp/left-behind').write_text('here')\n"
        "class ModelNew",
    )
    with LocalEvaluator(CudaBackend(), replace(SETTINGS, static=False)) as evaluator:
        found = judged(evaluator, source)
    assert found.verdict is Verdict.PASSED, found.message
    assert found.output.strip().startswith("[")
    assert "left-behind" not in found.output
