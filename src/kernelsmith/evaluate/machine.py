"""What this machine can do: noise of the clock, memory bandwidth, arithmetic peak."""

import random
import statistics
from dataclasses import dataclass

from kernelsmith.domain.task import Library, Task, Workload
from kernelsmith.domain.timing import Ratio
from kernelsmith.evaluate.backend import Backend, Lane
from kernelsmith.evaluate.measure import Stopwatch
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.evaluate.values import Setup
from kernelsmith.evaluate.watch import Watched

_ADD = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x + y
def get_inputs(n=1 << 16):
    return [torch.rand(n), torch.rand(n)]
"""
_PRODUCT = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, y):
        return x @ y
def get_inputs(n=1024):
    return [torch.rand(n, n), torch.rand(n, n)]
"""
_SETTINGS = Settings(stop=StopRule(target_width=0.01, min_pairs=4, max_pairs=4), robust=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Measured here and now; a busy machine measures worse."""

    noise: Ratio
    """The same program against itself: what it is off from 1 is noise."""
    bandwidth_gbs: float
    """Bytes read and written per second by ``x + y`` on tensors far larger than the caches."""
    peak_gflops: float
    """Float32 operations per second of a 1,024-cubed product."""


def measure(backend: Backend) -> Machine:
    """Measure all three, in a few seconds."""
    elements = 1 << 24
    add = _best_us(backend, _ADD, Workload(arguments=(("n", elements),)))
    size = 1024
    product = _best_us(backend, _PRODUCT, Workload(arguments=(("n", size),)))
    return Machine(
        noise=_noise(backend),
        bandwidth_gbs=3 * 4 * elements / add / 1e3,
        peak_gflops=2 * size**3 / product / 1e3,
    )


def _noise(backend: Backend) -> Ratio:
    """Time the same module as both sides, over fresh process pairs."""
    task = Task(name="noise floor", source=_ADD, library=Library.ANY)
    rng = random.Random(0)
    oracle = backend.oracle(task)

    def opened(setup: Setup) -> Lane:
        lane = backend.lane("probe", timeout_s=60.0)
        lane.load(task.source, task.entry, setup, function=False)
        return lane

    try:
        stopwatch = Stopwatch(
            backend, oracle, task, task.workloads[0], open_baseline=opened, open_candidate=opened,
            settings=_SETTINGS, draw=lambda: rng.getrandbits(62), rng=rng, watched=Watched(),
        )  # fmt: skip
        return stopwatch.measure().timing.speedup
    finally:
        oracle.close()


def _best_us(backend: Backend, source: str, workload: Workload) -> float:
    """Median time of one launch of a reference, after a first one."""
    task = Task(name="probe", source=source, library=Library.ANY, workloads=(workload,))
    oracle = backend.oracle(task)
    lane = backend.lane("probe", timeout_s=60.0)
    try:
        setup = oracle.workload(workload, 1)
        lane.load(source, "Model", setup, function=False)
        sets = oracle.inputs([1])
        assert sets is not None
        lane.arrange(sets)
        times = []
        with backend.exclusive():
            for _ in range(6):
                launches = lane.run([0])
                times.append(launches.elapsed_us)
                lane.release(launches)
        return statistics.median(times[1:])
    finally:
        lane.close()
        oracle.close()
