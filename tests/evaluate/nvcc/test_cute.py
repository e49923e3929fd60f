"""CuTe DSL: recognised by its import, refused in a line where its package is not here."""

import sys
from importlib import metadata
from types import ModuleType

import pytest

from kernelsmith.cli.main import main
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.evaluate.nvcc import cute
from kernelsmith.evaluate.nvcc.cute import is_cute, missing_cute

TASK = Task(name="relu", source="import torch\n")
RELU = """
import torch
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack


@cute.kernel
def relu_kernel(x: cute.Tensor, y: cute.Tensor):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    size, _, _ = cute.arch.block_dim()
    i = block * size + thread
    if i < cute.size(x):
        y[i] = x[i] if x[i] > 0.0 else cutlass.Float32(0.0)


@cute.jit
def relu(x: cute.Tensor, y: cute.Tensor):
    relu_kernel(x, y).launch(grid=((cute.size(x) + 255) // 256, 1, 1), block=(256, 1, 1))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        relu(from_dlpack(x.view(-1)), from_dlpack(y.view(-1)))
        return y
"""
absent = pytest.mark.skipif(cute.cute_version() is not None, reason="CuTe DSL is installed here")


@pytest.mark.parametrize(
    "source",
    [
        RELU,
        "import cutlass.cute",
        "import cutlass.cute.runtime as r",
        "from cutlass import cute",
        "from cutlass.cute.runtime import from_dlpack",
        "import cutlass\n\n@cutlass.cute.jit\ndef f(): ...",
    ],
)
def test_a_candidate_is_recognised_by_what_it_imports(source):
    assert is_cute(source)


@pytest.mark.parametrize(
    "source",
    [
        "import torch",
        "import cutlass\nplan = cutlass.op.Gemm()",
        "# import cutlass.cute",
        "text = 'import cutlass.cute'",
        "import cutlass.cute (",
        "from mine import cute",
        "import cutlass.cuter",
    ],
)
def test_others_are_not_taken_for_one(source):
    assert not is_cute(source)


def test_the_static_guard_lets_it_pass():
    assert inspect_source(Candidate(backend="cuda", source=RELU), TASK) is None


@absent
def test_without_the_package_one_line_says_what_to_install():
    said = missing_cute(RELU)
    assert said is not None
    assert "pip install nvidia-cutlass-dsl" in said
    assert "\n" not in said
    assert missing_cute("import torch") is None


def test_with_the_package_nothing_is_missing(monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: "4.8.1")
    assert missing_cute(RELU) is None


@absent
@pytest.mark.parametrize("verb", ["evaluate", "compare"])
def test_it_is_the_users_request_that_cannot_be_met(verb, tmp_path, capsys):
    task, candidate = tmp_path / "relu.py", tmp_path / "cute_relu.py"
    task.write_text("import torch\n")
    candidate.write_text(RELU)
    files = [str(candidate)] * (2 if verb == "compare" else 1)
    assert main([verb, str(task), *files, "--backend", "cuda"]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert "nvidia-cutlass-dsl is not installed" in said


@pytest.fixture
def worker():
    pytest.importorskip("torch")
    from kernelsmith.evaluate.worker.cuda import cute as worker

    worker._libraries.clear()
    yield worker
    worker._libraries.clear()


def an_executor(monkeypatch, **names):
    """The package's module, as far as it matters here."""
    for name in ("cutlass", "cutlass.cutlass_dsl"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    module = ModuleType("cutlass.cutlass_dsl.cuda_jit_executor")
    for name, value in names.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, module.__name__, module)


def test_each_library_is_noted_when_it_is_loaded(worker, monkeypatch):
    class CudaDialectJitCompiledFunction:
        def __init__(self, handle):
            self.handle = handle

        def _load_cuda_library(self):
            return [self.handle]

    an_executor(monkeypatch, CudaDialectJitCompiledFunction=CudaDialectJitCompiledFunction)
    worker.watch()
    worker.watch()  # once is enough
    assert CudaDialectJitCompiledFunction(41)._load_cuda_library() == [41]
    assert CudaDialectJitCompiledFunction(43)._load_cuda_library() == [43]
    assert worker.libraries() == (41, 43)


def test_a_version_that_loads_otherwise_is_said_and_not_guessed(worker, monkeypatch):
    an_executor(monkeypatch)
    with pytest.raises(ImportError, match=r"in a way that the judge does not know.* 4\.8\.1"):
        worker.watch()
