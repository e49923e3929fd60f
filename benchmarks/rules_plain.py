"""Eager and ``torch.compile`` in one process, interleaved; prints one JSON line.

Only for what the judge's sandbox cannot run. For each workload that the judge would time, samples
alternate between the sides, each long enough for the clock, on inputs that take turns; the ratio is
the median over pairs of neighbours, its interval the middle 95 % of medians of resampled pairs. A
task's ratio is the geometric mean over its workloads, as the judge's is.
"""

import json
import math
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.rules_compiled import MODES
from benchmarks.rules_seed import run_alone
from benchmarks.task_names import made, opened
from kernelsmith.domain.task import Task, Workload
from kernelsmith.evaluate.exclusive import DeviceLock
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from kernelsmith.evaluate.tasks import fitting, load_task
from kernelsmith.propose.rules.compiler.turns import Turn, time_alone

_SAMPLES, _WARM = 15, 2
"""The first ones are left out: clocks and caches settle."""
_SAMPLE_S = 0.02
_SETS = 3


@dataclass(frozen=True, slots=True)
class Measured:
    """One workload: microseconds of eager and of the compiled one, sample by sample."""

    pairs: list[tuple[float, float]]

    @property
    def ratios(self) -> list[float]:
        return [eager / fast for eager, fast in self.pairs]


def sides(
    task: Task, workload: Workload, mode: str, device: str
) -> tuple[Any, Any, list[list[Any]]]:
    """The reference, the compiled one, and some sets of inputs."""
    names = opened(task)
    arguments = dict(workload.arguments)
    dtype = getattr(torch, workload.dtype) if workload.dtype else None
    torch.manual_seed(0)
    if task.is_function:
        model = names[task.entry]
    else:
        model = made(names["Model"], names, dict(workload.init))
        model = model.to(device, dtype).train(task.training)
    options = {"mode": "max-autotune-no-cudagraphs"} if MODES[mode] else {}
    inputs = [_moved(names["get_inputs"](**arguments), device, dtype) for _ in range(_SETS)]
    torch.compiler.reset()  # else the second workload's sizes would be compiled as unknown ones
    return model, torch.compile(model, **options), inputs


def _moved(inputs: list[Any], device: str, dtype: torch.dtype | None) -> list[Any]:
    def moved(each: Any) -> Any:
        if not torch.is_tensor(each):
            return each
        return each.to(device, dtype if each.is_floating_point() else None)

    return [moved(each) for each in inputs]


def sampled(call: Callable[[int], object], launches: int, device: str) -> float:
    """Microseconds per call of one sample."""
    if device == "cuda":
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        begin.record()
        for launch in range(launches):
            call(launch)
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e3 / launches
    begun = time.perf_counter()
    for launch in range(launches):
        call(launch)
    return (time.perf_counter() - begun) * 1e6 / launches


def middle(workloads: list[list[float]]) -> float:
    """The geometric mean of the workloads' median ratios."""
    return math.exp(statistics.fmean(math.log(statistics.median(each)) for each in workloads))


def interval(workloads: list[list[float]]) -> tuple[float, float]:
    rng = random.Random(0)
    drawn = sorted(
        middle([rng.choices(each, k=len(each)) for each in workloads]) for _ in range(400)
    )
    return drawn[10], drawn[-11]


def measured(task: Task, workload: Workload, mode: str, device: str, turn: Turn) -> Measured:
    """Both sides of one workload in turns; nobody is timed while this one is on the device."""
    with turn.held(alone=True):
        model, compiled, inputs = sides(task, workload, mode, device)
        for launch in range(_SETS):
            model(*inputs[launch])
        if device == "cuda":
            torch.cuda.synchronize()

    def eager_call(launch: int) -> object:
        return model(*inputs[launch % _SETS])

    def compiled_call(launch: int) -> object:
        return compiled(*inputs[launch % _SETS])

    for launch in range(_SETS):
        compiled_call(launch)  # compiles: takes the turn by itself for what it launches
    with turn.held(alone=True):
        one = sampled(eager_call, 3, device)
        launches = max(1, min(1000, int(_SAMPLE_S * 1e6 / max(one, 1.0))))
        pairs = [
            (sampled(eager_call, launches, device), sampled(compiled_call, launches, device))
            for _ in range(_SAMPLES)
        ]
    return Measured(pairs[_WARM:])


def main() -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    asked = json.loads(sys.argv[1])
    device = asked["device"]
    turn = Turn(str(DeviceLock(asked["gpu"]).path) if asked.get("gpu") else None)
    if turn.counts:
        from torch._inductor.runtime import benchmarking

        time_alone(benchmarking, turn)
        run_alone(device, turn)
    task = fitting(load_task(Path(asked["task"])), gpu=device == "cuda")
    timed = [each for each in task.workloads if not each.held_out]
    with torch.no_grad():
        found = [measured(task, each, asked["mode"], device, turn) for each in timed]
    ratios = [each.ratios for each in found]
    low, high = interval(ratios)
    ratio = {"ratio": middle(ratios), "low": low, "high": high}
    print(json.dumps({
        "said": "passed", "message": "", **ratio, "call": ratio,
        "eager_us": [round(statistics.median(a for a, _ in each.pairs), 3) for each in found],
        "compiled_us": [round(statistics.median(b for _, b in each.pairs), 3) for each in found],
        "samples": sum(len(each.pairs) for each in found), "mode": "calls",
    }))  # fmt: skip


if __name__ == "__main__":
    main()
