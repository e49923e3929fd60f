"""CUDA C++ on a GPU: the contract, whose kernels ran, and what the compiler said of them."""

from dataclasses import replace
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.testing import BackendContract

pytestmark = pytest.mark.triton

ROOT = Path(__file__).parents[3]
ZOO = ROOT / "tests" / "cheats"
TASK = load_task(ZOO / "gpu" / "tasks" / "softmax.py")
GOOD = (ZOO / "cuda" / "honest" / "softmax_dynamic_shared.py").read_text()
SETTINGS = replace(effort("quick", "cuda"), robust=False, timeout_s=120.0)


@pytest.fixture(scope="module")
def opened():
    from kernelsmith.evaluate.nvcc.backend import CudaCppBackend

    backend = CudaCppBackend()
    yield backend
    backend.close()


class TestCuda(BackendContract):
    task, good = TASK, GOOD
    broken = GOOD.replace("expf(row[i]", "expo(row[i]")
    wrong = GOOD.replace("row[i] / sum", "row[i] * sum")

    @pytest.fixture
    def backend(self, opened):
        return opened


@pytest.fixture(scope="module")
def judged(opened):
    evaluator = LocalEvaluator(opened, SETTINGS)
    return lambda source, task=TASK: evaluator.judge(task, Candidate(backend="cuda", source=source))


def test_the_card_has_the_compilers_own_report(judged):
    found = judged(GOOD)
    assert found.verdict is Verdict.PASSED, found.message
    (kernel,) = [each for each in found.kernels if each.own]
    assert kernel.name == "softmax_rows"
    assert kernel.registers > 0
    assert kernel.shared_bytes >= 65536
    assert "float32" in kernel.precision
    assert found.coverage.own > 0.9


def test_a_wrong_candidate_is_told_its_registers_too(judged):
    found = judged(GOOD.replace("row[i] / sum", "row[i] * sum"))
    assert found.verdict is Verdict.WRONG
    assert [kernel.name for kernel in found.kernels] == ["softmax_rows"]
    assert "registers" in found.output


@pytest.mark.parametrize(
    "name", ["relu_kernelbench", "relu_load_inline", "relu_load_inline_template", "row_sum_library"]
)
def test_kernels_of_a_library_are_known_by_their_module(judged, name):
    path = ZOO / "cuda" / "honest" / f"{name}.py"
    task = load_task(
        ZOO
        / "gpu"
        / "tasks"
        / f"{name.split('_load')[0].removesuffix('_library').removesuffix('_kernelbench')}.py"
    )
    found = judged(path.read_text(), task)
    assert found.verdict is Verdict.PASSED, found.message
    assert all("kernel" in k.name or "parts" in k.name or "ends" in k.name
               for k in found.kernels if k.own)  # fmt: skip
    assert found.coverage.own > 0.8


def test_its_process_can_start_no_other(judged):
    source = GOOD + (
        "\nimport os\ntry:\n    os.posix_spawn('/bin/true', ['true'], {})\n    print('started')\n"
        "except OSError as error:\n    print('not started', error)\n"
    )
    backend_settings = replace(SETTINGS, static=False)
    from kernelsmith.evaluate.nvcc.backend import CudaCppBackend

    with LocalEvaluator(CudaCppBackend(), backend_settings) as evaluator:
        found = evaluator.judge(TASK, Candidate(backend="cuda", source=source))
    assert "not started" in found.output
