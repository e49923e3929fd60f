"""Eager and ``torch.compile`` in one process, interleaved; prints one JSON line.

Only for what the judge's sandbox cannot run. Samples alternate between the sides, each long enough
for the clock, on inputs that take turns; the ratio is the median over pairs of neighbours, its
interval the middle 95 % of medians of resampled pairs.
"""

import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from benchmarks.rules_compiled import MODES
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.tasks import fitting, load_task

_SAMPLES = 15
_SAMPLE_S = 0.02
_SETS = 3


def sides(task: Task, mode: str, device: str) -> tuple[Any, Any, list[list[Any]]]:
    """The reference, the compiled one, and some sets of inputs."""
    module = ModuleType("task")
    sys.modules["task"] = module  # the compiler imports what it looks into
    names = vars(module)
    exec(compile(task.source, "task.py", "exec"), names)
    workload = next(each for each in task.workloads if not each.held_out)
    arguments, init = dict(workload.arguments), dict(workload.init)
    torch.manual_seed(0)
    if task.is_function:
        model = names[task.entry]
    else:
        given = names["get_init_inputs"](**init) if "get_init_inputs" in names else []
        model = names["Model"](*given).to(device).train(task.training)
    options = {"mode": "max-autotune-no-cudagraphs"} if MODES[mode] else {}
    inputs = [_moved(names["get_inputs"](**arguments), device) for _ in range(_SETS)]
    return model, torch.compile(model, **options), inputs


def _moved(inputs: list[Any], device: str) -> list[Any]:
    return [each.to(device) if torch.is_tensor(each) else each for each in inputs]


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


def interval(ratios: list[float]) -> tuple[float, float]:
    rng = random.Random(0)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(400))
    return medians[10], medians[-11]


def main() -> None:
    asked = json.loads(sys.argv[1])
    device = asked["device"]
    task = fitting(load_task(Path(asked["task"])), gpu=device == "cuda")
    with torch.no_grad():
        model, compiled, inputs = sides(task, asked["mode"], device)

        def eager_call(launch: int) -> object:
            return model(*inputs[launch % _SETS])

        def compiled_call(launch: int) -> object:
            return compiled(*inputs[launch % _SETS])

        for call in (eager_call, compiled_call):
            for launch in range(_SETS):
                call(launch)
        one = sampled(eager_call, 3, device)
        launches = max(1, min(1000, int(_SAMPLE_S * 1e6 / max(one, 1.0))))
        pairs = [
            (sampled(eager_call, launches, device), sampled(compiled_call, launches, device))
            for _ in range(_SAMPLES)
        ][2:]
    ratios = [eager / fast for eager, fast in pairs]
    low, high = interval(ratios)
    ratio = {"ratio": statistics.median(ratios), "low": low, "high": high}
    print(json.dumps({
        "said": "passed", "message": "", **ratio, "call": ratio,
        "eager_us": statistics.median(a for a, _ in pairs),
        "compiled_us": statistics.median(b for _, b in pairs),
        "samples": len(pairs), "mode": "calls",
    }))  # fmt: skip


if __name__ == "__main__":
    main()
