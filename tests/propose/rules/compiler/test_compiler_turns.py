"""Turns on a GPU: the judge's lock, taken for what a compiler times and not while it compiles."""

import fcntl
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.propose.rules.compiler.turns import Turn, time_alone


@pytest.fixture
def lock(tmp_path):
    return DeviceLock("GPU-1", tmp_path)


def is_free(lock, kind):
    with lock.path.open("a") as file:
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_what_is_timed_is_timed_alone_and_the_rest_beside_checks(lock):
    turn = Turn(str(lock.path))
    with turn.held(alone=True):
        assert not is_free(lock, fcntl.LOCK_SH)
    with turn.held(alone=False):
        assert is_free(lock, fcntl.LOCK_SH)
        assert not is_free(lock, fcntl.LOCK_EX)
    assert is_free(lock, fcntl.LOCK_EX)


def test_every_timing_of_the_compiler_takes_the_turn_once(lock):
    seen = []

    class Watch:
        def benchmark_gpu(self):
            seen.append(is_free(lock, fcntl.LOCK_SH))
            return 1.5

    class Better(Watch):
        def benchmark_gpu(self):
            return super().benchmark_gpu()  # would wait for itself

    module = SimpleNamespace(Watch=Watch, Better=Better, number=3)
    assert time_alone(module, Turn(str(lock.path)))
    assert (Better().benchmark_gpu(), seen) == (1.5, [False])
    assert is_free(lock, fcntl.LOCK_EX)
    assert not time_alone(SimpleNamespace(number=3), Turn(None))


def test_waiting_for_a_judge_is_not_the_compilers_time(lock):
    begun, done = threading.Event(), threading.Event()

    def judge():
        with lock.exclusive():
            begun.set()
            done.wait(0.4)

    def late(number, frame):
        raise AssertionError("the time ran while others had the device")

    thread = threading.Thread(target=judge)
    thread.start()
    begun.wait()
    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        start = time.monotonic()
        with Turn(str(lock.path)).held(alone=True):
            assert 0 < signal.setitimer(signal.ITIMER_REAL, 0)[0] <= 0.3
        assert time.monotonic() - start > 0.3
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        done.set()
        thread.join()


def test_this_version_of_torch_has_a_stopwatch_that_can_be_told():
    pytest.importorskip("torch")
    code = (
        "from torch._inductor.runtime import benchmarking\n"
        "from kernelsmith.propose.rules.compiler.turns import Turn, time_alone\n"
        "assert time_alone(benchmarking, Turn(None))\n"
        "assert hasattr(type(benchmarking.benchmarker).benchmark_gpu, '__wrapped__')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
