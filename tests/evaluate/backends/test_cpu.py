"""The CPU backend: the contract, weights, builds and labels, with real processes."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Library, Task, Weights, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.testing import QUICK, BackendContract, EvaluatorContract

SCALE = Task(
    name="scale",
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
    def forward(self, x):
        return x * self.weight
def get_inputs():
    return [torch.randn(64, 256)]
def get_init_inputs():
    return [256]
""",
)

GOOD = """
import torch
from kernelsmith.kernels import cpp
lib = cpp('''
extern "C" void scale(const float* x, const float* w, float* y, int64_t rows, int64_t n) {
  for (int64_t i = 0; i < rows * n; ++i) y[i] = x[i] * w[i % n];
}
''')
class ModelNew(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(n))
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.scale(x, self.weight, y, x.shape[0], x.shape[1])
        return y
"""
BROKEN = GOOD.replace("y[i] = x[i]", "y[i] = z[i]")
WRONG = GOOD.replace("x[i] * w", "x[i] + w")


@pytest.fixture(scope="module")
def cpu():
    backend = CpuBackend()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def evaluator(cpu):
    local = LocalEvaluator(cpu, QUICK)
    yield local
    for judge in local._judges.values():
        judge.close()


class TestCpuBackend(BackendContract):
    task, good, broken, wrong = SCALE, GOOD, BROKEN, WRONG

    @pytest.fixture
    def backend(self, cpu):
        return cpu


class TestLocalEvaluator(EvaluatorContract):
    task = SCALE
    good = Candidate(backend="cpu", source=GOOD)
    wrong = Candidate(backend="cpu", source=WRONG)


@pytest.fixture
def judged(evaluator):
    def judge(source, task=SCALE):
        return evaluator.judge(task, Candidate(backend="cpu", source=source))

    return judge


def test_the_compilers_words_reach_the_proposer(judged):
    found = judged(BROKEN)
    assert "'z' was not declared" in found.message


def test_the_first_mismatch_is_named_with_index_and_values(judged):
    found = judged(WRONG)
    assert "out at (" in found.message
    assert "expected" in found.message


def test_a_python_error_comes_with_the_candidates_own_line(judged):
    found = judged(GOOD.replace("return y", "return y.no_such_method()"))
    assert found.verdict is Verdict.CRASHED
    assert "no_such_method" in found.message
    assert "program.py" not in found.message


def test_other_state_dict_keys_are_refused_by_name(judged):
    found = judged(GOOD.replace("self.weight", "self.gain"))
    assert found.verdict is Verdict.REFUSED
    assert "lacks weight" in found.message
    assert "adds gain" in found.message


def test_further_buffers_are_fine_when_they_are_not_persistent(judged):
    extra = "self.register_buffer('table', torch.arange(4.0), persistent=False)"
    found = judged(GOOD.replace("self.weight = ", f"{extra}\n        self.weight = "))
    assert found.verdict is Verdict.PASSED, found.message


FOLDING = GOOD.replace(
    "        x = x.contiguous()",
    "        if not hasattr(self, 'copy'):\n            self.copy = self.weight.detach().clone()\n"
    "        x = x.contiguous()",
).replace("lib.scale(x, self.weight", "lib.scale(x, self.copy")


def test_weights_kept_from_the_first_call_are_caught_when_they_change(judged):
    found = judged(FOLDING)
    assert found.verdict is Verdict.WRONG
    assert "weights were changed in place" in found.message


def test_static_weights_may_be_prepared_and_the_label_says_so(judged):
    prepared = GOOD.replace(
        "    def forward",
        "    def prepare(self):\n        self.copy = self.weight.detach().clone()\n    def forward",
    ).replace("lib.scale(x, self.weight", "lib.scale(x, self.copy")
    found = judged(prepared, replace(SCALE, weights=Weights.STATIC))
    assert found.verdict is Verdict.PASSED, found.message
    assert found.has(LabelName.PREPARED)


def test_algebra_that_a_candidate_names_is_a_label(judged):
    found = judged("# algebra: fold_scale: the scale goes into the weight\n" + GOOD)
    assert found.verdict is Verdict.PASSED, found.message
    (label,) = [each for each in found.labels if each.name is LabelName.ALGEBRAIC]
    assert label.reason == "fold_scale: the scale goes into the weight"
    assert not judged(GOOD).has(LabelName.ALGEBRAIC)


def test_seed_matched_weights_carry_a_label(judged):
    # drawn as the reference draws them, under the seed that both sides construct with
    same = GOOD.replace("torch.zeros(n)", "torch.randn(n)")
    found = judged(same, replace(SCALE, weights=Weights.SEED))
    assert found.verdict is Verdict.PASSED, found.message
    assert found.has(LabelName.SEED_WEIGHTS)


def test_a_task_may_demand_that_no_library_does_the_work(judged):
    heavy = replace(SCALE, library=Library.NONE, workloads=(Workload(),))
    task = replace(heavy, source=SCALE.source.replace("64, 256", "2048, 256"))
    with_library = GOOD.replace("return y", "return torch.sin(torch.asin(y / 1e6)) * 1e6 * 0 + y")
    found = judged(with_library, task)
    assert found.verdict is Verdict.CHEATED
    assert "libraries" in found.message


def test_little_own_code_is_labelled_trivial(judged):
    task = Task(
        name="chain",
        source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(6):
            x = torch.sin(torch.exp(torch.tanh(x)))
        return torch.softmax(x, -1) + 1
def get_inputs():
    return [torch.randn(512, 512)]
""",
    )
    lazy = """
import torch
from kernelsmith.kernels import cpp
lib = cpp('''extern "C" void inc(float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = y[i] + 1.0f; }''', flags=("-O0",))  # some of it
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(6):
            x = torch.sin(torch.exp(torch.tanh(x)))
        y = torch.softmax(x, -1)
        lib.inc(y, y.numel())
        return y
"""
    found = judged(lazy, task)
    assert found.verdict is Verdict.PASSED, found.message
    assert found.has(LabelName.TRIVIAL)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("return torch.relu(x.abs())", "relu"),
        ("return x * 0", "does not depend on the inputs"),
        ("return torch.softmax(x, 0) * 0 + x.mean() * torch.ones_like(x)", "constant"),
        ("return torch.clamp(x, -100, 100)", "one of the inputs unchanged"),
    ],
)
def test_a_degenerate_task_is_labelled(judged, body, words):
    source = f"""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        {body}
def get_inputs():
    return [torch.randn(16, 64)]
"""
    task = Task(name="degenerate", source=source, library=Library.ANY)
    found = judged(source.replace("class Model", "class ModelNew"), task)
    labels = {label.name: label.reason for label in found.labels}
    assert found.verdict is Verdict.PASSED, found.message
    assert words in labels[LabelName.DEGENERATE]


def test_an_ordinary_task_is_not_labelled_degenerate(judged):
    assert not judged(GOOD).has(LabelName.DEGENERATE)


def test_a_random_reference_without_a_statistic_is_the_users_mistake(judged):
    source = SCALE.source.replace("return x * self.weight", "return x + torch.rand_like(x)")
    with pytest.raises(UsageError, match="is random"):
        judged(GOOD, replace(SCALE, source=source))


def test_a_reference_that_forgets_what_it_draws_is_judged_by_its_values(judged):
    """As recurrent layers do, where a first state is drawn in forward and many steps follow."""
    source = SCALE.source.replace(
        "return x * self.weight", "return x * self.weight + 1e-12 * torch.rand_like(x)"
    )
    found = judged(GOOD, replace(SCALE, source=source))
    assert found.verdict is Verdict.PASSED, found.message


def test_a_reference_that_fails_is_the_users_mistake(judged):
    source = SCALE.source.replace("return x * self.weight", "return x @ x")
    with pytest.raises(UsageError, match=r"fails: .*line \d+ of the task"):
        judged(GOOD, replace(SCALE, source=source))


def test_robustness_is_a_label_not_a_verdict(cpu):
    settings = replace(QUICK, robust=True)
    judge = LocalEvaluator(cpu, settings)
    sturdy = judge.judge(SCALE, Candidate(backend="cpu", source=GOOD))
    brittle = GOOD.replace("        x = x.contiguous()\n", "")
    frail = judge.judge(SCALE, Candidate(backend="cpu", source=brittle))
    assert sturdy.has(LabelName.ROBUST)
    assert frail.verdict is Verdict.PASSED
    assert frail.has(LabelName.FRAGILE)
    reason = next(label.reason for label in frail.labels if label.name is LabelName.FRAGILE)
    assert "strided" in reason


def test_a_second_build_of_the_same_source_comes_from_the_cache(tmp_path):
    backend = CpuBackend(cache=tmp_path)
    try:
        local = LocalEvaluator(backend, QUICK)
        local.judge(SCALE, Candidate(backend="cpu", source=GOOD))
        built = list(Path(tmp_path, "builds").iterdir())
        local.judge(SCALE, Candidate(backend="cpu", source=GOOD + "# again\n"))
        assert list(Path(tmp_path, "builds").iterdir()) == built
        assert len(built) == 1
    finally:
        backend.close()


def test_the_device_names_all_that_a_timing_depends_on(cpu):
    device = cpu.device()
    names = [name for name, _ in device.versions]
    assert device.cores == len(os.sched_getaffinity(0))
    assert {"torch", "python", "compiler", "kernel"} <= set(names)
    assert "seccomp" in device.sandbox or "limits-only" in device.sandbox


WITH_ITS_BUFFER = """
import torch
{imports}
class {name}(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(n))
        self.register_buffer("zero", torch.zeros(()), persistent=False)
    def forward(self, x):
        {body}
        return y, self.zero
"""


def test_a_buffer_that_the_reference_returns_too_is_the_modules_own(judged):
    inputs = SCALE.source[SCALE.source.index("def get_inputs") :]
    plain = WITH_ITS_BUFFER.format(imports="", name="Model", body="y = x * self.weight")
    task = replace(SCALE, source=plain + inputs)
    lines = GOOD.partition("x = x.contiguous()")[2].partition("return y")[0]
    own = WITH_ITS_BUFFER.format(
        imports=GOOD.partition("import torch\n")[2].partition("class ")[0], name="ModelNew",
        body="x = x.contiguous()" + lines.rstrip(),
    )  # fmt: skip
    assert judged(own, task).verdict is Verdict.PASSED
    poisoned = own.replace("y, self.zero", "y, y.new_empty(())")
    assert judged(poisoned, task).verdict is Verdict.WRONG
