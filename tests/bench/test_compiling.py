"""The process that has torch's compiler loaded, and what is done where it cannot start."""

import logging
import subprocess
import sys
from functools import partial

import pytest

from kernelsmith.bench import compiling
from kernelsmith.bench.compiling import CompilingCpu, CompilingCuda
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.evaluate.values import Setup, State

LIGHT = "kernelsmith.evaluate.worker.compiling"
THREAD = (
    "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
)

ASKED = """
import torch
count = 0
def asked():
    global count
    count += 1
    return False
torch.cuda.is_available = asked
import kernelsmith.propose.rules.compiler.loading
print(count)
torch.cuda.is_available()
print(count)
"""


class Light(CompilingCuda):
    """Loads nothing of torch, which is not needed to be forked from; counts its tries."""

    _preload = (LIGHT,)

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def _environment(self) -> dict[str, str]:
        self.asked += 1
        return {}


@pytest.fixture
def preloads(monkeypatch, tmp_path):
    """Let a module of the test's own stand for the compiler, in a real zygote."""

    def use(text):
        (tmp_path / "compiler_of_the_test.py").write_text(text)
        monkeypatch.setattr(compiling, "_COMPILER", "compiler_of_the_test")
        monkeypatch.setattr(compiling, "Zygote", partial(Zygote, search_path=[tmp_path]))

    return use


def test_the_side_that_compiles_comes_from_a_process_of_its_own(preloads):
    preloads("")
    backend = Light()
    try:
        own = backend._parent("candidate")
        assert own.alive
        assert own.pid != backend._parent("baseline").pid
        assert backend._parent("candidate").pid == own.pid
    finally:
        backend.close()


def test_where_the_compiler_cannot_be_loaded_ahead_the_usual_process_stands_in(preloads, caplog):
    preloads(THREAD)
    backend = Light()
    try:
        with caplog.at_level(logging.WARNING, logger=compiling.__name__):
            found = [backend._parent("candidate") for _ in range(3)]
        assert {each.pid for each in found} == {backend.zygote.pid}
        assert backend.asked == 2  # once in vain, once for the usual one
        [said] = [each.getMessage() for each in caplog.records]
        assert "2 threads after loading" in said
    finally:
        backend.close()


@pytest.mark.slow
def test_a_process_that_was_not_given_the_compiler_loads_it_in_its_sandbox(preloads):
    preloads(THREAD)
    source = (
        "import sys\n"
        "assert 'torch._inductor' not in sys.modules\n"
        "import torch._inductor.compile_fx\n"
        "def twice(x): return 2 * x\n"
    )
    nothing = State(keys=(), leaves=())
    setup = Setup(
        init=[], keywords=False, leaves=(), state=nothing, seed=0, dtype=None, training=False
    )  # fmt: skip
    backend = CompilingCpu()
    try:
        lane = backend.lane("candidate", timeout_s=120.0)
        lane.load(source, "twice", setup, function=True)
        assert lane.is_open
        lane.close()
    finally:
        backend.close()


def test_loading_the_compiler_asks_no_driver_whether_there_is_a_device():
    asked = subprocess.run(
        [sys.executable, "-c", ASKED], capture_output=True, text=True, check=True, timeout=120
    )
    assert asked.stdout.split() == ["0", "1"]
