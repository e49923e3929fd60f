"""What the samplers see of real processes, and to whom it is counted."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.evaluate.guards.coverage import coverage, read_maps
from kernelsmith.evaluate.guards.perf import UNKNOWN
from kernelsmith.evaluate.guards.sampler import (
    PerfSampler,
    PtraceSampler,
    Sampler,
    open_sampler,
)

SOURCE = r"""
#include <omp.h>
#include <thread>
extern "C" void work(long n) {
  volatile float x = 1;
  for (long i = 0; i < n; ++i) x = x * 1.0001f + 0.5f;
}
extern "C" void fill(float* x, long n) { for (long i = 0; i < n; ++i) x[i] = i * 0.5f; }
extern "C" void work_thread(long n) { std::thread(work, n).join(); }
extern "C" void work_openmp(long n) {
  #pragma omp parallel num_threads(2)
  if (omp_get_thread_num() == 1) work(n);
}
"""
SECONDS = 0.6


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A library built by the judge, in memory that only its descriptor names."""
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.cpp").write_text(SOURCE)
    command = ["g++", "-O1", "-fopenmp", "-shared", "-fPIC", "-o", "kernel.so", "kernel.cpp"]
    subprocess.run(command, cwd=folder, check=True)
    fd = os.memfd_create("kernel")
    os.write(fd, (folder / "kernel.so").read_bytes())
    yield fd
    os.close(fd)


Watch = Callable[..., tuple[Coverage | None, list[int]]]


@pytest.fixture
def watch(kernel: int) -> Iterator[Watch]:
    """Run a child in some mode and return its coverage and addresses."""
    children: list[subprocess.Popen[bytes]] = []

    def watched(
        mode: str,
        opened: Callable[[int], Sampler | None] = open_sampler,
        wanted: int = 50,
    ) -> tuple[Coverage | None, list[int]]:
        child = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("child.py")), mode, str(kernel)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[kernel],
        )  # fmt: skip
        children.append(child)
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        try:
            sampler = opened(child.pid)
        except OSError as refused:
            pytest.skip(f"this machine refuses: {refused}")
        if sampler is None:
            pytest.skip("this machine lets nobody sample")
        built = os.fstat(kernel)
        own = {(built.st_dev, built.st_ino)}
        addresses: list[int] = []
        with sampler:
            # On a crowded machine ptrace gets one sample whenever the child gets a core, and most
            # of a core's time goes to threads that wait for each other: watch on.
            for again in range(20):
                sampler.start()
                if not again:
                    child.stdin.write(b"\n")
                    child.stdin.flush()
                else:
                    os.kill(child.pid, signal.SIGCONT)
                _let_it_work(child.pid, SECONDS)
                os.kill(child.pid, signal.SIGSTOP)
                addresses += sampler.stop()
                found = coverage(addresses, read_maps(child.pid), own)
                if found is not None and found.samples > wanted:
                    break
        return found, addresses

    yield watched
    for child in children:
        child.kill()
        child.communicate()


def _let_it_work(pid: int, seconds: float) -> None:
    """Wait until it has had so many more seconds of a core, however busy the machine is."""
    begun, deadline = _used_s(pid), time.monotonic() + 30
    while _used_s(pid) < begun + seconds and time.monotonic() < deadline:
        time.sleep(seconds / 4)


def _used_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wide(pid: int) -> Sampler:
    return PerfSampler(pid, wide=True)


def narrow(pid: int) -> Sampler:
    return PerfSampler(pid, wide=False)


@pytest.mark.parametrize("opened", [wide, narrow, PtraceSampler])
def test_a_kernel_that_does_its_work_is_its_own(watch: Watch, opened: Callable[[int], Sampler]):
    found, _ = watch("own", opened)
    assert found is not None
    assert found.own > 0.95
    assert found.samples > 50


@pytest.mark.parametrize("opened", [wide, narrow, PtraceSampler])
def test_torch_called_by_the_candidate_is_library(watch: Watch, opened: Callable[[int], Sampler]):
    found, _ = watch("matmul", opened)
    assert found is not None
    assert found.library > 0.98


def test_a_candidate_that_splits_its_time_has_both_shares(watch: Watch):
    found, _ = watch("half")
    assert found is not None
    assert 0.3 < found.own < 0.7


def test_a_tiny_kernel_shows_beside_the_allocation_of_its_output(watch: Watch):
    # Where its output comes to lie differs from process to process, and its share with it.
    shares = [found.own for found, _ in (watch("tiny") for _ in range(3)) if found is not None]
    assert len(shares) == 3
    assert statistics.median(shares) > 0.02


@pytest.mark.parametrize("mode", ["openmp", "thread"])
def test_work_in_threads_that_a_call_starts_is_seen(watch: Watch, mode: str):
    found, _ = watch(mode, wide, 100)
    assert found is not None
    assert found.own > 0.95
    assert found.samples > 100


def test_the_same_code_under_the_same_name_is_not_own_when_the_judge_did_not_build_it(
    watch: Watch,
):
    found, _ = watch("impostor")
    assert found is not None
    assert found.own == 0


def test_a_library_whose_code_was_written_over_is_not_own(watch: Watch):
    found, _ = watch("overwritten")
    assert found is not None
    assert found.own == 0


def test_code_that_appears_during_the_batch_is_nobodys(watch: Watch):
    found, addresses = watch("late", wide, 200)
    assert found is not None
    assert found.own == 0
    assert addresses.count(UNKNOWN) > 100


def test_a_sampler_can_be_started_again_and_forgets_what_it_saw():
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        sampler = open_sampler(busy.pid)
        if sampler is None:
            pytest.skip("this machine lets nobody sample")
        with sampler:
            sampler.start()
            time.sleep(0.4)
            first = sampler.stop()
            os.kill(busy.pid, signal.SIGSTOP)
            sampler.start()
            second = sampler.stop()
        assert len(first) > 20
        assert len(second) < len(first) / 4
    finally:
        busy.kill()
        busy.wait()


def test_a_process_that_shares_a_busy_core_gets_on_under_ptrace():
    core = max(os.sched_getaffinity(0))
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        for each in busy:
            os.sched_setaffinity(each.pid, {core})
        time.sleep(0.3)
        watched = busy[0].pid
        try:
            sampler = PtraceSampler(watched)
        except OSError as refused:
            pytest.skip(f"this machine refuses: {refused}")
        with sampler:
            sampler.start()
            before, deadline = _used_s(watched), time.monotonic() + 30
            # Both take a while where the sampler, too, has to wait for a CPU.
            while time.monotonic() < deadline and (
                _used_s(watched) < before + 0.03 or len(sampler.leader) < 2
            ):
                time.sleep(0.1)
            addresses = sampler.stop()
        assert _used_s(watched) >= before + 0.03
        assert len(addresses) > 1
    finally:
        for each in busy:
            each.kill()
            each.wait()


def test_a_frozen_process_stays_frozen_under_ptrace():
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        time.sleep(0.1)
        try:
            sampler = PtraceSampler(child.pid)
        except OSError as refused:
            pytest.skip(f"this machine refuses: {refused}")
        with sampler:
            sampler.start()
            time.sleep(0.1)
            os.kill(child.pid, signal.SIGSTOP)
            time.sleep(0.1)
            sampler.stop()
        state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "T"
        os.kill(child.pid, signal.SIGCONT)
        time.sleep(0.05)
        state = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[0]
        assert state == "R"
    finally:
        child.kill()
        child.wait()
