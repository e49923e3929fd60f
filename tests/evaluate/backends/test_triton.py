"""The Triton backend without a GPU: the interpreter keeps the contract, and times nothing."""

import re
import subprocess
import sys
from importlib import util
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.errors import BackendUnavailable, UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.backends import triton
from kernelsmith.evaluate.backends.triton import InterpreterBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.testing import QUICK, BackendContract

ROOT = Path(__file__).parents[3]

needs_triton = pytest.mark.skipif(
    util.find_spec("triton") is None, reason="Triton is not installed"
)

SOFTMAX = Task(
    name="softmax",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
def get_inputs():
    return [torch.randn(6, 100)]
def get_init_inputs():
    return []
""",
    library=Library.NONE,
)

GOOD = """
import torch
import triton
import triton.language as tl

@triton.jit
def softmax_rows(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, values / tl.sum(values, axis=0), mask=inside)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        columns = x.shape[-1]
        grid = (x.numel() // max(columns, 1),)
        softmax_rows[grid](x, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return y
"""
BROKEN = GOOD.replace("row = tl.program_id(0)", "row = tl.program_id(0")
WRONG = GOOD.replace("values / tl.sum(values, axis=0)", "values / tl.max(values, axis=0)")
AUTOTUNED = GOOD.replace(
    "@triton.jit",
    "@triton.autotune([triton.Config({'BLOCK': n}) for n in (128, 1)], key=['columns'])\n"
    "@triton.jit",
).replace(" BLOCK=triton.next_power_of_2(columns), num_warps=8", "")


@pytest.fixture(scope="module")
def interpreter():
    backend = InterpreterBackend()
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def judged(interpreter):
    evaluator = LocalEvaluator(interpreter, QUICK)

    def judge(source, task=SOFTMAX):
        return evaluator.judge(task, Candidate(backend="triton", source=source))

    yield judge
    evaluator.close()


@needs_triton
class TestInterpreter(BackendContract):
    task, good, broken, wrong = SOFTMAX, GOOD, BROKEN, WRONG

    @pytest.fixture
    def backend(self, interpreter):
        return interpreter


@needs_triton
def test_a_pass_says_that_an_interpreter_checked_it_and_nothing_was_timed(judged):
    found = judged(GOOD)
    assert found.verdict is Verdict.PASSED
    assert found.timing is None
    assert found.coverage is None
    reason = next(each.reason for each in found.labels if each.name is LabelName.UNTIMED)
    assert "Triton interpreter" in reason
    assert found.device.kind == "cpu"
    assert found.device.name.endswith("(Triton interpreter)")
    assert "triton" in dict(found.device.versions)
    assert [each.trials > 5 for each in found.accuracy] == [True]


@needs_triton
def test_a_wrong_kernel_is_told_where_and_by_how_much(judged):
    found = judged(WRONG)
    assert found.verdict is Verdict.WRONG
    assert "out at (" in found.message
    assert "expected" in found.message


@needs_triton
def test_an_autotuned_kernel_runs_with_its_first_configuration(judged):
    assert judged(AUTOTUNED).verdict is Verdict.PASSED


@needs_triton
def test_an_error_inside_a_kernel_names_the_kernels_line(judged):
    found = judged(GOOD.replace("tl.exp(values", "tl.exponential(values"))
    assert found.verdict is Verdict.CRASHED
    assert "line 12, in softmax_rows" in found.message
    assert "exponential" in found.message


@needs_triton
def test_a_candidate_that_insists_on_a_gpu_is_told_that_there_is_none(judged):
    found = judged(GOOD.replace("torch.empty_like(x)", "torch.empty_like(x, device='cuda')"))
    assert found.verdict is Verdict.CRASHED
    assert re.search("CUDA|NVIDIA", found.message)


SAYS = "import os\nprint('at', triton.knobs.cache.dir, 'in', os.environ['TMPDIR'], flush=True)\n"


@needs_triton
def test_tritons_cache_lies_in_the_candidates_scratch(judged):
    _, cache, _, scratch = judged(GOOD.replace("@triton.jit", f"{SAYS}@triton.jit")).output.split()
    assert Path(cache).is_relative_to(scratch)


@needs_triton
def test_tritons_cache_is_not_shared_where_the_sandbox_has_no_root_of_its_own():
    backend = InterpreterBackend()
    backend._zygote = Zygote(
        preload=backend._preload, environment=backend._environment(), without=("namespaces",)
    )
    with LocalEvaluator(backend, QUICK) as evaluator:
        source = GOOD.replace("@triton.jit", f"{SAYS}@triton.jit")
        found = evaluator.judge(SOFTMAX, Candidate(backend="triton", source=source))
    _, cache, _, scratch = found.output.split()
    assert scratch != "/tmp"
    assert Path(cache).is_relative_to(scratch)


@pytest.mark.parametrize("source", [GOOD, (ROOT / "examples/rms_norm_triton.py").read_text()])
def test_the_static_guard_lets_triton_pass(source):
    assert inspect_source(Candidate(backend="triton", source=source), SOFTMAX) is None


@needs_triton
def test_the_judge_imports_neither_torch_nor_triton():
    code = (
        "import sys; from kernelsmith.evaluate.backend import load_backend\n"
        "assert load_backend('triton').name == 'triton'\n"
        "sys.exit('torch' in sys.modules or 'triton' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"KERNELSMITH_TRITON": "interpreter"}, check=False
    )
    assert done.returncode == 0


def test_without_triton_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(triton.util, "find_spec", lambda name: None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'kernelsmith\[triton\]'") as raised:
        load_backend("triton")
    assert "\n" not in str(raised.value)


@needs_triton
def test_a_gpu_is_opened_by_the_cuda_backend(monkeypatch):
    stand_in = ModuleType("kernelsmith.evaluate.cuda.backend")
    stand_in.CudaBackend = lambda: SimpleNamespace(name="triton", timed=True)
    monkeypatch.setitem(sys.modules, stand_in.__name__, stand_in)
    monkeypatch.setenv(triton.CHOICE, "gpu")
    assert load_backend("triton").timed


@needs_triton
def test_a_choice_that_is_none_is_the_users_mistake(monkeypatch):
    monkeypatch.setenv(triton.CHOICE, "abacus")
    with pytest.raises(UsageError, match="gpu or interpreter; got 'abacus'"):
        load_backend("triton")


def test_a_driver_without_its_library_is_no_gpu(monkeypatch, tmp_path):
    monkeypatch.delenv(triton.CHOICE, raising=False)
    monkeypatch.setattr(triton, "_CONTROL", tmp_path)
    monkeypatch.setattr(triton, "_DRIVER", "libno-such-driver.so.1")
    assert not triton.has_gpu()
    monkeypatch.setattr(triton, "_DRIVER", "libc.so.6")
    assert triton.has_gpu()
