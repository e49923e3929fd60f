"""A backend of somebody else: installed, found by its entry point, and held to the contract."""

import importlib
import subprocess
import sys

import pytest

from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.backend import known_backends, load_backend
from kernelsmith.testing import BackendContract

TASK = Task(
    name="relu",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(64, 4096)]
def get_init_inputs():
    return []
""",
    library=Library.NONE,
)
GOOD = """
import torch
from kernelsmith.kernels import cpp

lib = cpp('''
extern "C" void relu(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0 : x[i];
}
''')


class ModelNew(torch.nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        lib.relu(x, y, x.numel())
        return y
"""


@pytest.fixture(scope="module", autouse=True)
def on_the_path(installed):
    sys.path.insert(0, str(installed))
    importlib.invalidate_caches()
    yield
    sys.path.remove(str(installed))
    sys.modules.pop("kernelsmith_abacus", None)


@pytest.fixture(scope="module")
def opened(on_the_path):
    backend = load_backend("abacus")
    yield backend
    backend.close()


class TestAbacus(BackendContract):
    task, good = TASK, GOOD
    broken = GOOD.replace("int64_t i = 0", "int64_t i = ")
    wrong = GOOD.replace("< 0 ? 0", "< 0 ? 1")

    @pytest.fixture
    def backend(self, opened):
        return opened


def test_it_is_known_by_its_entry_point_and_not_imported_for_that():
    assert known_backends()["abacus"] == "kernelsmith_abacus:AbacusBackend"


def test_the_doctor_lists_it_with_its_device(installed):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from kernelsmith.evaluate.diagnosis import _backend\n"
        "found = _backend('abacus'); print(found); sys.exit(not found.usable)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(installed)], capture_output=True,
                          text=True)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "ok  abacus: one core of" in done.stdout
