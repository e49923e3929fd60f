"""How much the ratio of one and the same candidate varies, on a quiet and on a loaded machine.

Each evaluation is fresh: a new judge, zygote and processes. Two candidates, one of about 20 us a
launch and one of several hundred, each judged quietly and beside one busy loop per core (normal
priority, started and ended here), alternating. Beside it, in the same run and under the same
load: the naive way, one fresh process that times eager, then the candidate, 100 calls each.

Reported per candidate and load: median ratio, (max - min) / median, in how many evaluations the
95 % interval contains the median of the quiet ones, dropped samples, and seconds.
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.cases import LARGE, SMALL
from benchmarks.report import busy_share, options, parse, save, say, table, without_paths
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, LabelName
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.tasks import load_candidate, load_task

LOADS = ("quiet", "loaded")
NAIVE = Path(__file__).with_name("naive.py")


@contextmanager
def busy_cores() -> Iterator[None]:
    """Keep every core busy with a loop of normal priority, for as long as this is open."""
    loop = [sys.executable, "-c", "while True: pass"]
    processes = [subprocess.Popen(loop) for _ in os.sched_getaffinity(0)]
    try:
        time.sleep(0.5)
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def judged(files: tuple[Path, Path], devices: list[Device]) -> dict[str, Any]:
    """Judge once with everything opened for it, and keep what the spread is about."""
    task, candidate = load_task(files[0]), load_candidate(files[1], "cpu")
    begun = time.monotonic()
    try:
        with LocalEvaluator("cpu") as evaluator:
            found = evaluator.judge(task, candidate)
    except EvaluationLost as error:
        return {"verdict": "lost", "message": str(error), "seconds": time.monotonic() - begun}
    devices.append(found.device)
    return _kept(found, time.monotonic() - begun)


def _kept(found: Evaluation, seconds: float) -> dict[str, Any]:
    kept: dict[str, Any] = {"verdict": found.verdict.value, "seconds": round(seconds, 2)}
    if found.timing is None:
        return kept | {"message": without_paths(found.message)}
    ratio = found.timing.speedup
    return kept | {
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "noisy": found.has(LabelName.NOISY),
        "dropped": sum(each.dropped for each in found.timing.workloads),
        "samples": sum(each.samples for each in found.timing.workloads),
        "workloads": [
            {
                "name": each.workload,
                "baseline_us": round(each.baseline_us, 2),
                "candidate_us": round(each.median_us, 2),
                "ratio": each.speedup.value,
                "pairs": [round(pair.ratio, 4) for pair in each.pairs],
            }
            for each in found.timing.workloads
        ],
    }


def naive(files: tuple[Path, Path]) -> dict[str, Any]:
    """Time once the naive way: the same workloads, the same geometric mean over them."""
    begun = time.monotonic()
    logs, workloads = [], []
    for each in load_task(files[0]).workloads:
        if each.held_out:
            continue
        sizes = json.dumps({"inputs": dict(each.arguments), "init": dict(each.init)})
        done = subprocess.run(
            [sys.executable, str(NAIVE), *map(str, files), sizes],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        said = json.loads(done.stdout)
        logs.append(math.log(said["baseline_us"] / said["candidate_us"]))
        workloads.append({key: round(value, 2) for key, value in said.items()})
    ratio = math.exp(statistics.fmean(logs))
    seconds = round(time.monotonic() - begun, 2)
    return {"verdict": "passed", "ratio": ratio, "workloads": workloads, "seconds": seconds}


def summary(runs: list[dict[str, Any]], quiet_median: float | None) -> dict[str, Any]:
    """Reduce the evaluations of one candidate under one load."""
    good = [run for run in runs if "ratio" in run]
    if not good:
        return {"evaluations": len(runs), "passed": 0}
    ratios = [run["ratio"] for run in good]
    middle = statistics.median(ratios)
    found: dict[str, Any] = {
        "evaluations": len(runs),
        "passed": len(good),
        "median": middle,
        "min": min(ratios),
        "max": max(ratios),
        "spread": (max(ratios) - min(ratios)) / middle,
        "sd": statistics.stdev(ratios) / middle if len(ratios) > 1 else 0.0,
        "seconds": statistics.median(run["seconds"] for run in good),
    }
    if "low" in good[0] and quiet_median is not None:
        inside = [run["low"] <= quiet_median <= run["high"] for run in good]
        own = [run["low"] <= middle <= run["high"] for run in good]
        found |= {
            "interval_contains_own_median": sum(own) / len(good),
            "interval_contains_quiet_median": sum(inside) / len(good),
            "interval_width": statistics.median((r["high"] - r["low"]) / r["ratio"] for r in good),
            "noisy": sum(run["noisy"] for run in good),
            "dropped": sum(run["dropped"] for run in good),
            "samples": sum(run["samples"] for run in good),
        }
    return found


def measure(args: argparse.Namespace) -> tuple[dict[str, Any], Device]:
    """Take all evaluations, alternating between loads, candidates and methods."""
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    devices: list[Device] = []
    for index in range(args.count):
        for load in LOADS:
            with busy_cores() if load == "loaded" else nullcontext():
                for files in (SMALL, LARGE):
                    name = files[0].stem
                    ours, other = judged(files, devices), naive(files)
                    runs.setdefault((name, load, "judge"), []).append(ours)
                    runs.setdefault((name, load, "naive"), []).append(other)
                    said = f"{ours['ratio']:.3f}" if "ratio" in ours else ours["verdict"]
                    say(
                        f"{index + 1}/{args.count} {name}, {load}: {said} in "
                        f"{ours['seconds']:.1f} s; naive {other['ratio']:.3f}"
                    )
    results = []
    for (name, load, method), found in sorted(runs.items()):
        quiet = summary(runs[name, "quiet", method], None).get("median")
        head = {"case": name, "load": load, "method": method}
        results.append(head | {"summary": summary(found, quiet), "runs": found})
    return {"results": results}, devices[0]


def shown(results: list[dict[str, Any]]) -> str:
    """The table for people."""
    rows = []
    for each in results:
        found = each["summary"]
        row = [f"{each['case']}, {each['load']}, {each['method']}"]
        row.append(f"{found['passed']}/{found['evaluations']}")
        if found["passed"]:
            row += [f"{found['median']:.3f}", f"{found['spread']:.1%}", f"{found['sd']:.1%}"]
        else:
            row += [""] * 3
        if "dropped" in found:
            row.append(f"{found['interval_width']:.1%}")
            row.append(f"{found['interval_contains_quiet_median']:.0%}")
            row.append(f"{found['dropped']}/{found['samples'] + found['dropped']}")
            row.append(str(found["noisy"]))
        else:
            row += [""] * 4
        row.append(f"{found['seconds']:.1f}" if found["passed"] else "")
        rows.append(row)
    head = (
        "candidate, load, method", "passed", "median", "(max-min)/median", "sd", "interval",
        "holds quiet median", "dropped", "noisy", "s each",
    )  # fmt: skip
    return table(head, rows)


def main() -> None:
    args = parse(options(__doc__ or "", count=20, quick=2))
    busy = busy_share()
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KERNELSMITH_CACHE"] = os.environ["XDG_CACHE_HOME"] = cache
        body, device = measure(args)
    print(shown(body["results"]))
    save("noise", args, device, body, busy=busy)


if __name__ == "__main__":
    main()
