"""How many cheats are caught and how many honest candidates refused, beside KernelBench's harness.

Every file of ``tests/cheats``: ours with the static guard on and the zoo's short timing;
KernelBench's on the same file where it can run at all. Ours was written against this very zoo, so
its figures say that nothing slips back, not what it will catch tomorrow; the files are here for
anyone to add to. KernelBench does not claim to catch most of these, and some break rules that it
does not have (A1: torch does the work; A14, C13: weights repacked outside the clock; E: precision
below eager's but within its 1e-4): read the table by class.

A file is compared only where KernelBench's verdict means something. Left out and counted, with the
reason: files that are dangerous to run (its candidates run in its own process, so they are not
tried), files aimed at Kernel-Smith's own worker, tasks that are not in KernelBench's form (the
reference does not even pass as a candidate; extras that only Kernel-Smith reads), and candidates
whose weights come from the judge's state dict where KernelBench matches weights by seed.

KernelBench's columns: its harness (caught: not compiled, not correct, died or timed out), and the
same with its two hints: the flag for excessive speed-ups and its static checker, less the rules
that ask for CUDA text. Cache clearing is off there; it costs an hour and decides no verdict.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import kernelbench_runner
from benchmarks.kernelbench_fit import at_our_judge, danger, extras
from benchmarks.kernelbench_runner import Outcome
from benchmarks.report import (
    HOW_TO_GET_KERNELBENCH,
    ROOT,
    add_kernelbench,
    busy_share,
    options,
    parse,
    save,
    say,
    table,
    without_paths,
)
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.evaluator import LocalEvaluator

sys.path.insert(0, str(ROOT / "tests" / "cheats"))

import zoo

TIMEOUT_S = 90.0


def by_ours(evaluator: LocalEvaluator, animal: zoo.Animal) -> tuple[dict[str, str], Device | None]:
    try:
        found = evaluator.judge(zoo.task(animal.task), animal.candidate)
    except EvaluationLost as error:
        return {"said": "lost", "message": without_paths(str(error))}, None
    message = without_paths(found.message, limit=160)
    return {"said": found.verdict.value, "message": message}, found.device


class KernelBench:
    """KernelBench's harness on files of the zoo; asks once per task whether it can run it."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self.control: Callable[[str], Outcome] = cache(self._control)

    def judge(self, animal: zoo.Animal) -> dict[str, Any]:
        """Return what it said, or why it was not asked under ``left_out`` and ``reason``."""
        source = animal.candidate.source
        if reason := danger(animal.number, source):
            return {"left_out": "dangerous", "reason": reason}
        if reason := at_our_judge(source):
            return {"left_out": "at our judge", "reason": reason}
        if reason := extras(zoo.task(animal.task)):
            return {"left_out": "task's form", "reason": f"the task asks for {reason}"}
        control = self.control(animal.task)
        if not control.accepted:
            said = f"the reference by itself: {control.said}, {control.reason}"
            return {"left_out": "task's form", "reason": said}
        found = self._run(animal.task, source, precision=control.precision)
        if not found.accepted:
            weights = self._run(animal.task, source, mode="weights")
            if weights.said == "unlike":
                return {"left_out": "weights", "reason": weights.reason}
        keep = ("said", "reason", "excessive", "static", "ratio", "seconds")
        return {key: value for key, value in asdict(found).items() if key in keep}

    def _control(self, task: str) -> Outcome:
        return self._run(task, "", mode="control")

    def _run(
        self, task: str, source: str, *, mode: str = "evaluate", precision: str = "float32"
    ) -> Outcome:
        return kernelbench_runner.evaluate(
            self._checkout, zoo.task(task).source, source, mode=mode, precision=precision,
            clear_cache=False, timeout_s=TIMEOUT_S,
        )  # fmt: skip


def measure(args: argparse.Namespace) -> tuple[list[dict[str, Any]], Device]:
    """Judge every file by both sides, one after the other."""
    animals = [
        (folder, animal)
        for folder in ("offenders", "honest")
        for animal in zoo.animals(folder)[:: args.every]
        if not (animal.slow and args.quick)
    ][: args.count]
    other = KernelBench(args.kernelbench) if args.kernelbench else None
    runs: list[dict[str, Any]] = []
    device: Device | None = None
    with LocalEvaluator("cpu", zoo.QUICK) as evaluator:
        for index, (folder, animal) in enumerate(animals):
            ours, seen = by_ours(evaluator, animal)
            device = seen or device
            run: dict[str, Any] = {
                "file": animal.path.name, "folder": folder, "number": animal.number,
                "task": animal.task, "kernelsmith": ours,
            }  # fmt: skip
            told = ours["said"]
            if other is not None:
                theirs = run["kernelbench"] = other.judge(animal)
                told += f"; KernelBench: {theirs.get('said') or 'left out, ' + theirs['reason']}"
            runs.append(run)
            say(f"{index + 1}/{len(animals)} {animal.path.stem}: {told}")
    assert device is not None, "every evaluation was lost"
    return runs, device


def caught(run: dict[str, Any], side: str) -> bool:
    """Whether a side did not let the file pass; for an honest one that is a false alarm."""
    if side == "kernelsmith":
        return bool(run["kernelsmith"]["said"] != Verdict.PASSED.value)
    theirs = run["kernelbench"]
    failed = theirs["said"] != "correct"
    if side == "harness":
        return failed
    return failed or theirs["excessive"] or bool(theirs["static"])


def counts(runs: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Count files and catches, by class of offender and for the honest ones."""
    found: dict[str, dict[str, int]] = {}
    for run in runs:
        letter = run["number"][0] if run["folder"] == "offenders" else "honest"
        names = [letter, "all offenders"] if run["folder"] == "offenders" else [letter]
        for name in names:
            group = found.setdefault(name, Counter())
            group["files"] += 1
            group["kernelsmith"] += caught(run, "kernelsmith")
            if "said" in run.get("kernelbench", {}):
                group["compared"] += 1
                group["kernelsmith_compared"] += caught(run, "kernelsmith")
                group["harness"] += caught(run, "harness")
                group["hints"] += caught(run, "hints")
    order = sorted(found, key=lambda name: (name == "honest", name == "all offenders", name))
    return {name: dict(found[name]) for name in order}


def show(runs: list[dict[str, Any]], found: dict[str, dict[str, int]], *, beside: bool) -> None:
    """Print the tables for people."""
    rows = []
    for name, group in found.items():
        row = [name, str(group["files"]), str(group["kernelsmith"])]
        if beside:
            of = group.get("compared", 0)
            row.append(str(of))
            for key in ("kernelsmith_compared", "harness", "hints"):
                row.append(f"{group[key]} ({group[key] / of:.0%})" if of else "-")
        rows.append(row)
    head = ["class", "files", "stopped by kernelsmith"]
    if beside:
        head += ["compared", "kernelsmith", "KernelBench", "KernelBench with its hints"]
    print(table(head, rows))
    print("stopped: caught, for offenders; a false alarm, for honest ones")
    for run in runs:
        offends = run["folder"] == "offenders"
        if caught(run, "kernelsmith") is not offends:
            said = run["kernelsmith"]
            print(f"kernelsmith errs on {run['file']}: {said['said']} {said['message']}")
    if beside:
        _show_left_out(runs)


def _show_left_out(runs: list[dict[str, Any]]) -> None:
    left = [run for run in runs if "left_out" in run["kernelbench"]]
    kinds = Counter(
        (run["kernelbench"]["left_out"], run["folder"], run["kernelbench"]["reason"])
        for run in left
    )
    print(f"\nnot run under KernelBench: {len(left)} of {len(runs)} files")
    rows = [[f"{kind}: {why}", folder, n] for (kind, folder, why), n in sorted(kinds.items())]
    print(table(["why", "folder", "files"], rows))
    wrong = [
        run for run in runs
        if run["folder"] == "honest" and "said" in run["kernelbench"] and caught(run, "harness")
    ]  # fmt: skip
    for run in wrong:
        theirs = run["kernelbench"]
        print(f"KernelBench stops honest {run['file']}: {theirs['said']}, {theirs['reason']}")


def main() -> None:
    parser = options(__doc__ or "", count=10_000, quick=24, unit="files at most")
    add_kernelbench(parser)
    parser.add_argument(
        "--every", type=int, metavar="N", default=None, help="every Nth file (1; quick: 9)"
    )
    args = parse(parser)
    args.every = args.every or (9 if args.quick else 1)
    busy = busy_share()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KERNELSMITH_CACHE"] = folder
        runs, device = measure(args)
    found = counts(runs)
    show(runs, found, beside=bool(args.kernelbench))
    body: dict[str, Any] = {"counts": found, "runs": runs}
    if args.kernelbench:
        print(f"\n{kernelbench_runner.SAID_PLAINLY}")
        body["kernelbench"] = {
            "commit": kernelbench_runner.checkout_commit(args.kernelbench),
            "how": kernelbench_runner.SAID_PLAINLY,
            "contained": kernelbench_runner.contained(),
        }
    else:
        print(f"\n{HOW_TO_GET_KERNELBENCH}")
    save("cheats", args, device, body, busy=busy)


if __name__ == "__main__":
    main()
