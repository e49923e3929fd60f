"""Evaluations per minute, beside KernelBench's own harness in one fresh process per candidate.

The same tasks and candidates on both sides, interleaved in one run: right and tuned, right and
plain, wrong, not compiling, in equal parts, plain C++ through ``kernelsmith.kernels``. Caches are
cold, and every candidate is a new text, so each one is compiled by each side. Ours judges with all
checks and default settings, by one judge that stays open as in a search; its start is counted.

KernelBench runs twice: as it is, and without its cache clearing, which costs about a tenth of a
second per timed call on a CPU and next to nothing on a GPU. The second is the figure to compare.
Both measure eager, too (its check for excessive speed-ups), 100 calls; neither looks for cheats.

Where our time goes is shown by verdict. A ``load_inline`` candidate is judged once by each side,
cold, then again by ours with another text: torch's headers are then precompiled.
"""

import argparse
import os
import random
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import kernelbench_runner
from benchmarks.cases import CASES, HERE, KINDS, Case
from benchmarks.report import (
    HOW_TO_GET_KERNELBENCH,
    add_kernelbench,
    busy_share,
    options,
    parse,
    save,
    say,
    table,
    without_paths,
)
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.tasks import load_task

OURS, AS_IT_IS, LEAN = "kernelsmith", "kernelbench", "kernelbench, no cache clearing"
STAGES = ("reference", "build", "check", "robust", "time")
LOAD_INLINE = HERE / "bias_relu_load_inline.py"
_AGREE = {"right": "passed", "plain": "passed", "wrong": "wrong", "broken": "build_failed"}


def work(count: int) -> list[tuple[Case, str, int]]:
    """Return what is judged, in an order that is the same every time."""
    every = [(case, kind) for case in CASES for kind in KINDS]
    rounds = -(-count // len(every))
    chosen = [(case, kind, attempt) for attempt in range(rounds) for case, kind in every]
    if count < len(every):
        # One of each kind before a second of any.
        chosen.sort(key=lambda each: (CASES.index(each[0]) - KINDS.index(each[1])) % len(CASES))
    chosen = chosen[:count]
    random.Random(0).shuffle(chosen)
    return chosen


def by_ours(evaluator: LocalEvaluator, task: Path, source: str) -> tuple[dict[str, Any], Device]:
    candidate = Candidate(backend="cpu", source=source)
    begun = time.monotonic()
    try:
        found = evaluator.judge(load_task(task), candidate)
    except EvaluationLost as error:
        seconds = time.monotonic() - begun
        lost = {"said": "lost", "seconds": seconds, "spent": {}, "message": str(error)}
        return lost, evaluator.backend.device()
    seconds = time.monotonic() - begun
    said = {"said": found.verdict.value, "seconds": seconds, "spent": dict(found.spent)}
    said["message"] = without_paths(found.message, limit=200)
    if found.timing is not None:
        said["ratio"] = found.timing.speedup.value
    return said, found.device


def by_kernelbench(checkout: Path, task: Path, source: str, *, clear: bool) -> dict[str, Any]:
    found = asdict(
        kernelbench_runner.evaluate(checkout, task.read_text(), source, clear_cache=clear)
    )
    keep = ("said", "seconds", "inside_s", "ratio", "reason")
    return {key: found[key] for key in keep}


def measure(args: argparse.Namespace) -> tuple[list[dict[str, Any]], float, Device]:
    """Judge everything by every side, turn by turn; also return how long ours takes to close."""
    runs: list[dict[str, Any]] = []
    evaluator = LocalEvaluator("cpu")
    checkout: Path | None = args.kernelbench
    sides = [OURS, LEAN, AS_IT_IS] if checkout else [OURS]
    try:
        for index, (case, kind, attempt) in enumerate(work(args.count)):
            source = case.source(kind, attempt)
            run: dict[str, Any] = {"case": case.name, "kind": kind, "attempt": attempt}
            for side in sides if index % 2 else reversed(sides):
                if side == OURS:
                    run[side], device = by_ours(evaluator, case.task, source)
                else:
                    assert checkout is not None
                    clear = side == AS_IT_IS
                    run[side] = by_kernelbench(checkout, case.task, source, clear=clear)
            runs.append(run)
            told = "; ".join(f"{s}: {run[s]['said']}, {run[s]['seconds']:.1f} s" for s in sides)
            say(f"{index + 1}/{args.count} {case.name}, {kind}: {told}")
            if run[OURS]["said"] != _AGREE[kind]:
                say(f"  expected {_AGREE[kind]}: {run[OURS]['message']}")
        begun = time.monotonic()
    finally:
        evaluator.close()
    return runs, time.monotonic() - begun, device


def rates(runs: list[dict[str, Any]], closing_s: float) -> list[dict[str, Any]]:
    """Return evaluations per minute of each side, from all of its time."""
    found = []
    for side in (OURS, LEAN, AS_IT_IS):
        times = [run[side]["seconds"] for run in runs if side in run]
        if not times:
            continue
        total = sum(times) + (closing_s if side == OURS else 0.0)
        by_kind = {
            kind: statistics.median(run[side]["seconds"] for run in runs if run["kind"] == kind)
            for kind in KINDS
            if any(run["kind"] == kind for run in runs)
        }
        right = ("correct", "passed")
        agreed = sum((run[side]["said"] in right) == (run["kind"] in KINDS[:2]) for run in runs)
        found.append(
            {"side": side, "evaluations": len(times), "seconds": total, "agreed": agreed,
             "per_minute": 60 * len(times) / total, "median_s": by_kind}
        )  # fmt: skip
    return found


def spent(runs: list[dict[str, Any]]) -> list[list[str]]:
    """Our seconds by kind of candidate and stage; the rest is opening, guarding and closing."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[run["kind"]].append(run[OURS])
    rows = []
    for kind in (kind for kind in KINDS if kind in groups):
        each = groups[kind]
        stages = [statistics.fmean(e["spent"].get(stage, 0.0) for e in each) for stage in STAGES]
        whole = statistics.fmean(e["seconds"] for e in each)
        numbers = [*stages, whole - sum(stages), whole]
        rows.append([kind, *(f"{seconds:.2f}" for seconds in numbers)])
    return rows


def load_inline(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Judge one torch extension cold by each side, then once more by ours with another text."""
    task, source = CASES[0].task, LOAD_INLINE.read_text()
    rows = []
    with LocalEvaluator("cpu") as evaluator:
        for when, text in (("cold", source), ("second", source.replace("dense", "packed"))):
            said, _ = by_ours(evaluator, task, text)
            rows.append({"side": f"{OURS}, {when}"} | said)
            say(f"load_inline, {OURS}, {when}: {said['said']}, {said['seconds']:.1f} s")
    if args.kernelbench:
        said = by_kernelbench(args.kernelbench, task, source, clear=False)
        rows.append({"side": LEAN} | said)
        say(f"load_inline, {LEAN}: {said['said']}, {said['seconds']:.1f} s")
    return rows


def show(found: list[dict[str, Any]], runs: list[dict[str, Any]], extras: list[Any]) -> None:
    """Print the tables for people."""
    kinds = [kind for kind in KINDS if kind in found[0]["median_s"]]
    rows = [
        [each["side"], each["evaluations"], f"{each['per_minute']:.1f}"]
        + [f"{each['median_s'][kind]:.1f}" for kind in kinds]
        + [f"{each['agreed']}/{each['evaluations']}"]
        for each in found
    ]
    heads = [f"{kind}, s" for kind in kinds]
    print(table(["side", "evaluations", "per minute", *heads, "sorted right"], rows))
    print("\nwhere our time goes: mean seconds by kind of candidate")
    print(table(["candidate", *STAGES, "other", "all"], spent(runs)))
    if extras:
        print("\na torch extension by load_inline")
        rows = [[each["side"], each["said"], f"{each['seconds']:.1f}"] for each in extras]
        print(table(["side", "said", "seconds"], rows))


def main() -> None:
    parser = options(__doc__ or "", count=24, quick=4, unit="candidates")
    add_kernelbench(parser)
    parser.add_argument(
        "--no-load-inline", action="store_true", help="leave out the slow torch extension"
    )
    args = parse(parser)
    busy = busy_share()
    extras: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KERNELSMITH_CACHE"] = os.environ["XDG_CACHE_HOME"] = cache
        runs, closing_s, device = measure(args)
        if not args.quick and not args.no_load_inline:
            extras = load_inline(args)
    found = rates(runs, closing_s)
    show(found, runs, extras)
    body: dict[str, Any] = {"rates": found, "load_inline": extras, "runs": runs}
    if args.kernelbench:
        print(f"\n{kernelbench_runner.SAID_PLAINLY}")
        body["kernelbench"] = {
            "commit": kernelbench_runner.checkout_commit(args.kernelbench),
            "how": kernelbench_runner.SAID_PLAINLY,
            "contained": kernelbench_runner.contained(),
        }
    else:
        print(f"\n{HOW_TO_GET_KERNELBENCH}")
    save("throughput", args, device, body, busy=busy)


if __name__ == "__main__":
    main()
