"""Whether the judge's memory stays flat: its resident set over 1,000 evaluations by one evaluator.

The null backend for all of them (the judge without processes), then the CPU backend for fewer, with
short timing: right, wrong and not compiling candidates in turn, each a new text. Beside the
resident set, what else could leak: open files, child processes and their memory.

Reported: the slope of a line through the second half, in KiB per 1,000 evaluations.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import CASES, KINDS
from benchmarks.report import busy_share, options, parse, save, say, table
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tasks import load_task
from kernelsmith.evaluate.timing.sampling import StopRule

SHORT = Settings(
    stop=StopRule(target_width=0.5, min_pairs=1, max_pairs=1, min_samples=3, budget_s=20.0),
    sample_us=1000.0,
)
"""Every stage, but little timing: this is about memory."""
ENOUGH = 200
"""Evaluations below which the allocator's steps look like a slope."""
NULL_TASK = Task(name="null", source="maximum(x + y, 0) * 2")
NULL_CANDIDATES = ("maximum(x + y, 0) * 2 # us: 1.5", "maximum(x + y, 0)", "maximum(x +", "x * 3")


def resident_kib() -> int:
    """Return the resident set of this process, which is the judge's."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


def share_kib(pid: int) -> int:
    """Return a process's memory with shared pages split among their users; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as lines:
            return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    except OSError:
        return 0


def children() -> list[int]:
    """Return all processes below this one."""
    found: list[int] = []
    open_ends = [os.getpid()]
    while open_ends:
        pid = open_ends.pop()
        for listed in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                below = [int(word) for word in listed.read_text().split()]
            except OSError:
                continue
            found += below
            open_ends += below
    return found


def sample(after: int) -> dict[str, int]:
    """Return what is held now."""
    below = children()
    return {
        "evaluations": after,
        "judge_kib": resident_kib(),
        "children": len(below),
        "children_kib": sum(share_kib(pid) for pid in below),
        "open_files": len(os.listdir("/proc/self/fd")),
    }


def over(
    count: int, every: int, evaluate: Callable[[int], Evaluation]
) -> tuple[list[dict[str, int]], dict[str, int], Device]:
    """Evaluate ``count`` times and look every so often; the first look is after the first one."""
    samples: list[dict[str, int]] = []
    verdicts: dict[str, int] = {}
    device: Device | None = None
    begun = time.monotonic()
    for index in range(count):
        found = evaluate(index)
        device = found.device
        verdicts[found.verdict.value] = verdicts.get(found.verdict.value, 0) + 1
        if index == 0 or (index + 1) % every == 0:
            samples.append(sample(index + 1))
            spent = time.monotonic() - begun
            say(f"{device.kind}: {samples[-1]} after {spent:.0f} s")
    assert device is not None
    return samples, verdicts, device


def slope(samples: list[dict[str, int]], key: str) -> float | None:
    """KiB (or files) per 1,000 evaluations, over the second half; nothing if that is too few."""
    half = [each for each in samples if each["evaluations"] * 2 >= samples[-1]["evaluations"]]
    if len(half) < 3 or half[-1]["evaluations"] < ENOUGH:
        return None
    x = [each["evaluations"] / 1000 for each in half]
    return float(np.polyfit(x, [each[key] for each in half], 1)[0])


def null_run(count: int) -> dict[str, Any]:
    with LocalEvaluator("null") as evaluator:

        def evaluate(index: int) -> Evaluation:
            text = f"{NULL_CANDIDATES[index % len(NULL_CANDIDATES)]} # {index}"
            return evaluator.judge(NULL_TASK, Candidate(backend="null", source=text))

        samples, verdicts, _ = over(count, max(count // 20, 1), evaluate)
    return _result("null", samples, verdicts)


def cpu_run(count: int) -> tuple[dict[str, Any], Device]:
    tasks = {case.name: load_task(case.task) for case in CASES}
    with LocalEvaluator("cpu", SHORT) as evaluator:

        def evaluate(index: int) -> Evaluation:
            case = CASES[index % len(CASES)]
            source = case.source(KINDS[index // len(CASES) % len(KINDS)], index)
            return evaluator.judge(tasks[case.name], Candidate(backend="cpu", source=source))

        samples, verdicts, device = over(count, max(count // 20, 1), evaluate)
    return _result("cpu", samples, verdicts), device


def _result(
    backend: str, samples: list[dict[str, int]], verdicts: dict[str, int]
) -> dict[str, Any]:
    keys = ("judge_kib", "children_kib", "open_files", "children")
    slopes = {key: slope(samples, key) for key in keys}
    return {"backend": backend, "verdicts": verdicts, "slope": slopes, "samples": samples}


def show(results: list[dict[str, Any]]) -> None:
    """Print the tables for people."""
    for each in results:
        every = each["samples"]
        step = max(1, len(every) // 10)
        chosen = [s for index, s in enumerate(every) if index % step == 0 or s is every[-1]]
        rows = [
            [s["evaluations"], f"{s['judge_kib'] / 1024:.1f}", s["open_files"], s["children"],
             f"{s['children_kib'] / 1024:.1f}"]
            for s in chosen
        ]  # fmt: skip
        print(f"{each['backend']}: {each['verdicts']}")
        head = ["evaluations", "judge, MiB", "open files", "children", "children, MiB"]
        print(table(head, rows))
        rate = each["slope"]["judge_kib"]
        said = "too few for a slope" if rate is None else f"{rate:+.0f} KiB per 1,000 evaluations"
        print(f"judge's resident set over the second half: {said}\n")


def run(args: argparse.Namespace) -> tuple[list[dict[str, Any]], Device]:
    results = [null_run(args.count)]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KERNELSMITH_CACHE"] = cache
        found, device = cpu_run(args.cpu)
    return [*results, found], device


def main() -> None:
    parser = options(__doc__ or "", count=1000, quick=100, unit="evaluations by null")
    parser.add_argument("--cpu", type=int, metavar="N", help="evaluations by cpu (200; quick: 6)")
    args = parse(parser)
    if args.cpu is None:
        args.cpu = 6 if args.quick else 200
    if args.cpu < 1:
        parser.error(f"--cpu is a number above 0; got {args.cpu}")
    busy = busy_share()
    results, device = run(args)
    show(results)
    save("memory", args, device, {"results": results}, busy=busy)


if __name__ == "__main__":
    main()
