"""What is counted of watched batches, whichever way the machine lets them be sampled."""

from collections.abc import Iterator

import pytest

from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.backend import Lane
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.guards.policy import DECISIVE
from kernelsmith.evaluate.guards.sampler import PtraceSampler
from kernelsmith.evaluate.watch import Watched

SUMS = Task(
    name="running sum",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.cumsum(0)
def get_inputs():
    return [torch.randn(1 << 16)]
def get_init_inputs():
    return []
""",
)


@pytest.fixture
def sums() -> Iterator[Lane]:
    """A program of one thread and some hundred microseconds a launch, all of them in libraries."""
    backend = CpuBackend()
    oracle = backend.oracle(SUMS)
    lane = backend.lane("running sum", timeout_s=60)
    try:
        setup = oracle.workload(SUMS.workloads[0], 1)
        lane.load(SUMS.source, SUMS.entry, setup, function=False)
        sets = oracle.inputs([1])
        assert sets is not None
        lane.arrange(sets)
        lane.release(lane.run([0]))
        yield lane
    finally:
        lane.close()
        oracle.close()
        backend.close()


def test_library_time_per_launch_is_true_however_seldom_the_machine_lets_us_sample(sums: Lane):
    def seldom(pid: int) -> PtraceSampler | None:
        try:
            return PtraceSampler(pid, frequency=100)
        except OSError:
            return None

    watched = Watched(opened=seldom)
    while watched.addresses < 30 and watched.batches < 50:  # a crowded machine gives few a batch
        launches = watched.watch(sums, [0] * 2000)
        if launches is None:
            pytest.skip("this machine lets nobody sample")
        sums.release(launches)
    assert watched.frequency < 200
    assert watched.library_us is not None
    # On a crowded machine a program is stopped as it wakes, mostly, and seen in libraries less.
    used_us = 1e6 * watched.sampled_s / watched.launches
    assert used_us / 10 < watched.library_us <= used_us


@pytest.mark.parametrize(
    ("watched", "library", "more"),
    [
        (Watched(batches=3, built=True), Library.SOME, 3 * DECISIVE),
        (Watched(batches=3, built=True), Library.ANY, 0),
        (Watched(batches=3, built=True, possible=False), Library.SOME, 0),
        (Watched(batches=3, built=False), Library.SOME, 0),
    ],
)
def test_batches_too_short_to_be_seen_even_once_are_watched_on(
    watched: Watched, library: Library, more: int
):
    assert watched.missing_batches(library) == more
