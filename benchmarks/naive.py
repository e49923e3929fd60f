"""The usual way to time a candidate, for contrast: one process, one input, means of 100 calls.

First eager is timed, then the candidate, as most harnesses do. Called by ``benchmarks.noise`` in a
fresh process each time; prints the ratio as JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

CALLS, WARMUPS = 100, 3


def mean_us(launch: Callable[[], object]) -> float:
    for _ in range(WARMUPS):
        launch()
    begun = time.perf_counter()
    for _ in range(CALLS):
        launch()
    return (time.perf_counter() - begun) / CALLS * 1e6


def main() -> None:
    task, candidate, workload = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    space: dict[str, Any] = {}
    exec(compile(task.read_text(), str(task), "exec"), space)
    exec(compile(candidate.read_text(), str(candidate), "exec"), space)
    torch.manual_seed(0)
    arguments = space["get_init_inputs"](**workload["init"])
    reference, kernel = space["Model"](*arguments), space["ModelNew"](*arguments)
    kernel.load_state_dict(reference.state_dict())
    inputs = space["get_inputs"](**workload["inputs"])
    with torch.inference_mode():
        baseline_us = mean_us(lambda: reference(*inputs))
        candidate_us = mean_us(lambda: kernel(*inputs))
    print(json.dumps({"baseline_us": baseline_us, "candidate_us": candidate_us}))


if __name__ == "__main__":
    main()
