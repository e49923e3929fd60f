"""The rules on KernelBench or on our own tasks, with torch.compile beside eager in the same run.

Each task goes through the same search loop as ``kernelsmith optimize``, with the rules alone, and
is judged by the same judge. Results are on disk after every task; run it again and it goes on. The
compiler is asked first (``--phase capture``), so that nobody else uses the device while it times.
"""

import argparse
import pickle
import tempfile
import time
from pathlib import Path

from benchmarks.gpu_ledger import Job, Ledger, Record, add_checkout, gpu_options
from benchmarks.kernelbench_runner import checkout_commit
from benchmarks.report import ROOT, say
from benchmarks.rules_capture import Store, capture
from benchmarks.rules_compiled import MODES
from benchmarks.rules_figure import curve, per_task, tables
from benchmarks.rules_numbers import summarise
from benchmarks.rules_remote import RemoteRules
from benchmarks.rules_tasks import Chosen, of_folder, of_kernelbench
from kernelsmith.propose.rules.families import Begun

_JUDGE_S = 20.0
"""What starting, or confirming at the end, may take beside the evaluations."""


def options() -> argparse.ArgumentParser:
    parser = gpu_options(__doc__ or "")
    add_checkout(parser)
    parser.add_argument("--tasks", type=Path, metavar="FOLDER", help="a folder of tasks instead")
    parser.add_argument("--levels", default="1,2,3", help="of KernelBench (1,2,3)")
    parser.add_argument("--parity", choices=("odd", "even", "all"), default="all")
    parser.add_argument(
        "--sample", action="store_true", help="ten even-numbered ones per level, always the same"
    )
    parser.add_argument("--only", nargs="+", metavar="KEY", help="these, e.g. level1/23")
    parser.add_argument("--evaluations", type=int, default=5, metavar="N", help="per task (5)")
    parser.add_argument(
        "--compile", default="default", metavar="MODES",
        help=f"of {', '.join(MODES)}, with commas; 'none' (default)",
    )  # fmt: skip
    parser.add_argument("--phase", choices=("capture", "judge", "all"), default="all")
    parser.add_argument(
        "--captured", type=Path, metavar="FILE", help="what was captured (results/captured.zip)"
    )
    parser.add_argument(
        "--options", default="default,autotune,unfused,channels_last,as_given", metavar="NAMES",
        help="what the compiler is asked for on a GPU, with commas (all)",
    )  # fmt: skip
    parser.add_argument("--capture-jobs", type=int, default=8, metavar="N")
    parser.add_argument(
        "--live", action="store_true", help="capture in the judging process, one task at a time"
    )
    parser.add_argument("--limit-s", type=float, default=180.0, metavar="S", help="per task (180)")
    parser.add_argument("--effort", default="usual", help="how thorough the judge is (usual)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="keep the best candidates")
    parser.add_argument("--figure", type=Path, metavar="FILE", help="the SVG (beside --out)")
    parser.add_argument("--show", action="store_true", help="only show what the file holds")
    return parser


def chosen_by(args: argparse.Namespace, parser: argparse.ArgumentParser) -> list[Chosen]:
    if (args.kernelbench is None) is (args.tasks is None):
        parser.error("name --kernelbench PATH or --tasks FOLDER")
    if args.tasks is not None:
        tasks = of_folder(args.tasks)
    else:
        levels = [int(each) for each in args.levels.split(",")]
        tasks = of_kernelbench(args.kernelbench, levels, parity=args.parity, sample=args.sample)
    if args.only:
        tasks = [each for each in tasks if each.key in args.only]
    if not tasks:
        parser.error("there is no such task")
    return tasks


def jobs(
    tasks: list[Chosen], rules: RemoteRules, ledger: Ledger, *, args: argparse.Namespace,
    store: Store, folder: Path,
) -> list[Job]:  # fmt: skip
    there = store.keys() if not args.live else set()
    modes = [each for each in args.compile.split(",") if each != "none"]
    for mode in modes:
        if mode not in MODES:
            raise SystemExit(f"no mode {mode!r}; known are {', '.join(MODES)}")

    def job_of(chosen: Chosen) -> Job:
        def job(limit_s: float) -> Record:
            if chosen.left_out:
                return {"task": chosen.path.stem, "steps": [], "compile": {},
                        "left_out": chosen.left_out, "seconds": 0.0}  # fmt: skip
            families = folder / "families"
            if not args.live:
                families.write_bytes(store.get(chosen.key))
            found = rules.optimise(
                {
                    "key": chosen.key, "task": str(chosen.path), "structure": chosen.structure,
                    "evaluations": args.evaluations, "compile": modes, "seed": args.seed,
                    "seconds": max(5.0, limit_s - _JUDGE_S),
                    "families": "" if args.live else str(families),
                    "sources": str(args.sources) if args.sources else "",
                },
                limit_s=limit_s,
            )  # fmt: skip
            ledger.note(device=rules.device)
            return found | _shown(found)

        return chosen.key, job

    ready = [each for each in tasks if args.live or each.left_out or each.key in there]
    if len(ready) < len(tasks):
        say(f"{len(tasks) - len(ready)} tasks are not captured yet")
    return [job_of(each) for each in ready]


def _shown(found: Record) -> Record:
    """What the ledger prints, at the top of the record."""
    best = found.get("best") or {}
    return {"ratio": best["ratio"]} if "ratio" in best else {}


def captured_by(args: argparse.Namespace) -> Store:
    return Store(args.captured or ROOT / "benchmarks" / "results" / "captured.zip")


def main() -> None:
    parser = options()
    args = parser.parse_args()
    usual = "rules-h200.json" if args.backend == "triton" else f"rules-{args.backend}.json"
    args.out = args.out or ROOT / "benchmarks" / "results" / usual
    begun = time.monotonic()
    tasks = chosen_by(args, parser)
    store = captured_by(args)
    if args.phase != "judge" and not args.live and not args.show:
        capture(
            tasks, store, backend=args.backend, at_once=args.capture_jobs, limit_s=args.limit_s,
            until=begun + args.budget_s, options=args.options,
        )  # fmt: skip
        captured = {key: pickle.loads(store.get(key)) for key in sorted(store.keys())}
        say(f"captured: {len(captured)}, with nothing that stands alone: {_without(captured)}")
    if args.phase == "capture":
        return
    args.budget_s -= time.monotonic() - begun
    if args.sources:
        args.sources.mkdir(parents=True, exist_ok=True)
    ledger = Ledger("rules", args, summarise)
    ledger.note(evaluations=args.evaluations)
    if args.kernelbench:
        ledger.note(kernelbench=checkout_commit(args.kernelbench))
    if not args.show:
        settings = {"effort": args.effort, "backend": args.backend}
        with tempfile.TemporaryDirectory() as folder, RemoteRules(**settings) as rules:
            todo = jobs(tasks, rules, ledger, args=args, store=store, folder=Path(folder))
            ledger.go_through(todo, limit_s=args.limit_s)
    summary = summarise(ledger.records)
    print(per_task(ledger.records), tables(summary), sep="\n\n")
    curve(summary, args.figure or ledger.path.with_suffix(".svg"))
    say(f"wrote {ledger.path.name}")


def _without(captured: dict[str, Begun]) -> str:
    return ", ".join(key for key, each in captured.items() if not each.families.members) or "none"


if __name__ == "__main__":
    main()
