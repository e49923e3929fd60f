"""Evaluations per minute on one GPU, beside KernelBench's own harness in one fresh process each.

The same tasks and candidates on both sides, alternating in one run: right, right and untuned,
wrong, not compiling, in equal parts, all in Triton. Every candidate is a new text and caches are
cold, so each one is compiled by each side. Ours judges with all checks by one judge that stays open
as in a search; its start is counted, once per session of this benchmark.

KernelBench: ``eval_kernel_against_ref`` as it is, ``backend="triton"``, 5 trials, 100 timed calls
of candidate and eager each; it looks for no cheats. Then where our time goes, by stage.
"""

import argparse
import hashlib
import os
import random
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import kernelbench_runner
from benchmarks.cases.gpu import CASES, KINDS, GpuCase
from benchmarks.gpu_ledger import NO_VERDICT, Job, Ledger, Record, add_checkout, gpu_options
from benchmarks.gpu_remote import RemoteJudge
from benchmarks.report import HOW_TO_GET_KERNELBENCH, say, table

OURS, THEIRS = "kernelsmith", "kernelbench"
GOOD = ("passed", "correct")


def work(count: int) -> list[tuple[GpuCase, str, int]]:
    """Return what is judged, in an order that is the same every time."""
    every = [
        (CASES[(index + shift) % len(CASES)], kind, 0)
        for shift in range(len(CASES))
        for index, kind in enumerate(KINDS)
    ]
    rounds = -(-count // len(every))
    chosen = [(case, kind, attempt) for attempt in range(rounds) for case, kind, _ in every][:count]
    random.Random(0).shuffle(chosen)
    return chosen


def by_kernelbench(checkout: Path, case: GpuCase, source: str, limit_s: float) -> Record:
    found = asdict(
        kernelbench_runner.evaluate(
            checkout, case.task.read_text(), source, precision=case.precision, gpu=True,
            contain=False, timeout_s=min(limit_s, kernelbench_runner.TIMEOUT_S),
        )
    )  # fmt: skip
    keep = ("said", "seconds", "inside_s", "ratio", "reason", "excessive", "replaced")
    return {key: found[key] for key in keep}


def jobs(args: argparse.Namespace, judge: RemoteJudge, ledger: Ledger) -> list[Job]:
    """List one job per candidate: both sides, the first in turn."""
    checkout: Path | None = args.kernelbench

    def job_of(index: int, case: GpuCase, kind: str, attempt: int) -> Job:
        source = case.source(kind, attempt)

        def ours(limit_s: float) -> Record:
            found = judge.judge(case.task, source, limit_s=limit_s)
            ledger.note(device=judge.device)
            return found

        def job(limit_s: float) -> Record:
            record: Record = {"case": case.name, "kind": kind, "attempt": attempt}
            if checkout is None:
                record[OURS] = ours(limit_s)
            elif index % 2:
                record[OURS] = ours(limit_s / 2)
                record[THEIRS] = by_kernelbench(checkout, case, source, limit_s / 2)
            else:
                record[THEIRS] = by_kernelbench(checkout, case, source, limit_s / 2)
                record[OURS] = ours(limit_s / 2)
            message = record[OURS]["message"]
            return record | {"said": told(record), "message": message}

        return f"{case.name}/{kind}/{attempt}", job

    return [job_of(index, *each) for index, each in enumerate(work(args.count))]


def told(record: Record) -> str:
    sides = [side for side in (OURS, THEIRS) if side in record]
    if any(record[side]["said"] in ("no answer", "timed out") for side in sides):
        return "no answer"
    if record[OURS]["said"] in NO_VERDICT:
        return str(record[OURS]["said"])
    return "; ".join(f"{s}: {record[s]['said']}, {record[s]['seconds']:.1f} s" for s in sides)


def summarise(records: dict[str, Record], other_s: float = 0.0) -> dict[str, Any]:
    """Return the rates, their ratio, and where our time goes."""
    runs = list(records.values())
    found = {side: rate(runs, side, other_s if side == OURS else 0.0) for side in (OURS, THEIRS)}
    ours, theirs = found[OURS], found[THEIRS]
    faster = ours["per_minute"] / theirs["per_minute"] if ours and theirs else None
    return {"rates": {k: v for k, v in found.items() if v}, "ratio": faster, "spent": spent(runs)}


def rate(runs: Sequence[Record], side: str, other_s: float) -> dict[str, Any]:
    """Evaluations per minute of one side, from all of its time."""
    mine = [run for run in runs if side in run]
    if not mine:
        return {}
    seconds = [run[side]["seconds"] for run in mine]
    total = sum(seconds) + other_s
    return {
        "evaluations": len(mine),
        "seconds": round(total, 1),
        "per_minute": 60 * len(mine) / total,
        "median_s": {
            kind: statistics.median(run[side]["seconds"] for run in mine if run["kind"] == kind)
            for kind in KINDS
            if any(run["kind"] == kind for run in mine)
        },
        "sorted_right": sum(
            (run[side]["said"] in GOOD) == (run["kind"] in KINDS[:2]) for run in mine
        ),
    }


def spent(runs: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Our mean seconds by kind of candidate and stage; the rest is starting and guarding."""
    found: dict[str, dict[str, float]] = {}
    for kind in (*KINDS, "all"):
        mine = [run[OURS] for run in runs if kind in (run["kind"], "all")]
        if not mine:
            continue
        stages = list(dict.fromkeys(stage for each in mine for stage in each.get("spent", {})))
        means = {
            stage: statistics.fmean(each.get("spent", {}).get(stage, 0.0) for each in mine)
            for stage in stages
        }
        whole = statistics.fmean(each["seconds"] for each in mine)
        found[kind] = means | {"other": whole - sum(means.values()), "all": whole}
    return found


def show(found: dict[str, Any]) -> None:
    """Print the tables for people."""
    rows = [
        [side, each["evaluations"], f"{each['per_minute']:.2f}"]
        + [f"{each['median_s'].get(kind, float('nan')):.1f}" for kind in KINDS]
        + [f"{each['sorted_right']}/{each['evaluations']}"]
        for side, each in found["rates"].items()
    ]
    heads = [f"{kind}, s" for kind in KINDS]
    print(table(["side", "evaluations", "per minute", *heads, "sorted right"], rows))
    if found["ratio"]:
        print(f"ours does {found['ratio']:.2f} times as many a minute")
    stages = list(dict.fromkeys(stage for each in found["spent"].values() for stage in each))
    stages = [stage for stage in stages if stage not in ("other", "all")] + ["other", "all"]
    rows = [
        [kind, *(f"{each.get(stage, 0.0):.2f}" for stage in stages)]
        for kind, each in found["spent"].items()
    ]
    print("\nwhere our time goes: mean seconds by kind of candidate")
    print(table(["candidate", *stages], rows))


def main() -> None:
    parser = gpu_options(__doc__ or "")
    add_checkout(parser)
    parser.add_argument("--count", type=int, default=24, metavar="N", help="candidates (24)")
    parser.add_argument("--effort", default="usual", help="how thorough (usual)")
    args = parser.parse_args()
    ledger = Ledger("gpu_throughput", args, summarise)
    if args.kernelbench:
        harness = args.kernelbench / "src" / "kernelbench" / "eval.py"
        ledger.note(
            kernelbench={
                "commit": kernelbench_runner.checkout_commit(args.kernelbench),
                "eval_py_sha256": hashlib.sha256(harness.read_bytes()).hexdigest(),
                "how": kernelbench_runner.SAID_OF_GPU,
            }
        )
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KERNELSMITH_CACHE"] = os.environ["XDG_CACHE_HOME"] = cache
        with RemoteJudge(effort=args.effort, backend=args.backend) as judge:
            ledger.go_through(jobs(args, judge, ledger), limit_s=360.0)
            closing_s = judge.close()
    ledger.note_session(closing_s=round(closing_s, 2), starts=judge.starts)
    if not ledger.records:
        raise SystemExit("nothing was judged within the budget")
    show(summarise(ledger.records, closing_s))
    print(f"\n{kernelbench_runner.SAID_OF_GPU if args.kernelbench else HOW_TO_GET_KERNELBENCH}")
    say(f"wrote {ledger.path.name}")


if __name__ == "__main__":
    main()
