"""The rules on KernelBench or on our own tasks, with torch.compile beside eager in the same run.

Each task goes through the same search loop as ``kernelsmith optimize``, with the rules alone, and
is judged by the same judge. Results are on disk after every task; run it again and it goes on. The
compiler is asked in the background, and tasks are judged as they become ready; what it times, it
times under the judge's lock. With ``--phase capture`` and then ``--phase judge`` it is asked first,
as it always is on a processor, whose cores it would share with what is timed.
"""

import argparse
import json
import pickle
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from queue import Queue

from benchmarks.gpu_ledger import (
    NO_VERDICT,
    NOT_NOW,
    Job,
    Ledger,
    Record,
    add_checkout,
    gpu_options,
)
from benchmarks.kernelbench_runner import checkout_commit
from benchmarks.report import ROOT, say
from benchmarks.rules_capture import Asking, Store, captures
from benchmarks.rules_compiled import MODES
from benchmarks.rules_figure import curve, per_task, tables
from benchmarks.rules_numbers import summarise
from benchmarks.rules_packing import ALONE, Packing
from benchmarks.rules_remote import RemoteRules
from benchmarks.rules_runs import put_aside
from benchmarks.rules_tasks import Chosen, file_name, of_folder, of_kernelbench
from kernelsmith.evaluate.failure import lacks_memory
from kernelsmith.evaluate.rooms import ROOMS, kept_for
from kernelsmith.propose.rules.families import Begun
from kernelsmith.run.captures import capturing
from kernelsmith.run.config import RunConfig

_JUDGE_S = 20.0
"""What starting, or confirming at the end, may take beside the evaluations."""
_GROWTH_S = 30.0
"""What judging the best of the first so many once more may take."""
_WORTH_S = 70.0
"""What is left of a budget for which a run is still taken up."""
_LANDING_S = 30.0
"""What it takes to land what is under way when a run that is kept is interrupted."""
_ALONE_ONLY = "needs the device alone"
_BESIDE, _ALONE = 3, 8
"""Captures at a time: while tasks are judged, who need cores too; and before."""


def options() -> argparse.ArgumentParser:
    parser = gpu_options(__doc__ or "")
    add_checkout(parser)
    parser.add_argument("--tasks", type=Path, metavar="FOLDER", help="a folder of tasks instead")
    parser.add_argument("--levels", default="1,2,3", help="of KernelBench (1,2,3)")
    parser.add_argument("--parity", choices=("odd", "even", "all"), default="all")
    parser.add_argument(
        "--sample", action="store_true", help="ten even-numbered ones per level, always the same"
    )
    parser.add_argument(
        "--only", nargs="+", metavar="KEY",
        help="these, in this order, e.g. level1/23: judges side by side share a GPU's memory best "
        "where large tasks come between small ones",
    )  # fmt: skip
    parser.add_argument(
        "--without", nargs="+", metavar="KEY", default=(),
        help="not these: what needs the device alone keeps all others waiting",
    )  # fmt: skip
    parser.add_argument(
        "--anew", nargs="+", metavar="KEY", default=(),
        help="these once more, though they have a record; it stays until there is another",
    )  # fmt: skip
    parser.add_argument(
        "--evaluations", type=int, default=5, metavar="N",
        help="per task (5); 0: torch.compile alone",
    )  # fmt: skip
    parser.add_argument(
        "--growth", action="store_true",
        help="judge whoever was best after 1, 5, 10 and 20 once more: the best of many figures "
        "is too good",
    )  # fmt: skip
    parser.add_argument(
        "--champions", action="store_true",
        help="judge whoever would be the best once more at once, as kernelsmith optimize does",
    )  # fmt: skip
    parser.add_argument(
        "--again", type=int, default=0, metavar="N",
        help="as many where none of the first is right and faster than eager (no more)",
    )  # fmt: skip
    parser.add_argument(
        "--stale", type=int, metavar="N",
        help="end a task after so many evaluations in a row without a new best (never)",
    )  # fmt: skip
    parser.add_argument(
        "--roofline", type=float, metavar="SHARE",
        help="end a task whose best uses this share of bandwidth or peak, e.g. 0.95 (never)",
    )  # fmt: skip
    parser.add_argument(
        "--runs", type=Path, metavar="FOLDER",
        help="keep the runs there: what the budget cuts short is gone on with the next time",
    )  # fmt: skip
    parser.add_argument(
        "--compile", default="default", metavar="MODES",
        help=f"of {', '.join(MODES)}, with commas; 'none' (default)",
    )  # fmt: skip
    parser.add_argument(
        "--reference", action="store_true", help="judge the reference against itself, too"
    )
    parser.add_argument(
        "--referred", type=Path, metavar="FILE",
        help="but for those that passed in this file of benchmarks.gpu_references",
    )  # fmt: skip
    parser.add_argument("--phase", choices=("capture", "judge", "all"), default="all")
    parser.add_argument(
        "--captured", type=Path, metavar="FILE", help="what was captured (results/captured.zip)"
    )
    parser.add_argument(
        "--options", default="default,autotune,unfused,channels_last,as_given", metavar="NAMES",
        help="what the compiler is asked for on a GPU, with commas (all)",
    )  # fmt: skip
    parser.add_argument(
        "--seeds", type=Path, metavar="FOLDER",
        help="keep what torch.compile made ahead, for later runs on this machine",
    )  # fmt: skip
    parser.add_argument(
        "--capture-jobs", type=int, metavar="N",
        help=f"captures at a time ({_BESIDE}; {_ALONE} with --phase capture)",
    )  # fmt: skip
    parser.add_argument(
        "--judges", type=int, default=1, metavar="N",
        help="tasks at a time (1): they check side by side and take turns at timing",
    )  # fmt: skip
    parser.add_argument(
        "--rooms", type=Path, metavar="FILE",
        help="begin what fits beside what is under way, by what benchmarks.rules_rooms wrote",
    )  # fmt: skip
    parser.add_argument(
        "--large-at-once", type=int, default=2, metavar="N",
        help="tasks of a fifth of the rooms and more at a time, with --rooms (2)",
    )  # fmt: skip
    parser.add_argument(
        "--live", action="store_true", help="capture in the judging process, one task at a time"
    )
    parser.add_argument("--limit-s", type=float, default=180.0, metavar="S", help="per task (180)")
    parser.add_argument("--effort", default="usual", help="how thorough the judge is (usual)")
    parser.add_argument(
        "--rivals", type=int, default=0, metavar="N",
        help="others within the noise of the best that are confirmed as well (0)",
    )  # fmt: skip
    parser.add_argument(
        "--final", type=int, metavar="N",
        help="how many are tried, best first, until one is confirmed (1 at a glance, else 2)",
    )  # fmt: skip
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
        of_key = {each.key: each for each in tasks}
        tasks = [of_key[key] for key in dict.fromkeys(args.only) if key in of_key]
    tasks = [each for each in tasks if each.key not in args.without]
    if not tasks:
        parser.error("there is no such task")
    return tasks


def modes_of(args: argparse.Namespace, parser: argparse.ArgumentParser) -> tuple[str, ...]:
    modes = tuple(each for each in args.compile.split(",") if each != "none")
    if unknown := [each for each in modes if each not in MODES]:
        parser.error(f"no mode {unknown[0]!r}; known are {', '.join(MODES)}")
    return modes


def asking(
    args: argparse.Namespace, modes: tuple[str, ...], *, until: float, seeds: Path | None = None
) -> Asking:
    """How the compiler is asked, before judging or beside it."""
    beside = args.phase != "capture"
    # On a processor, torch.compile is measured in a process of its own.
    ahead = seeds is not None and args.backend == "triton"
    lock = capturing(RunConfig(backend=args.backend, keep_captures=False), Path()).lock
    return Asking(
        backend=args.backend, options=args.options, limit_s=args.limit_s, until=until,
        at_once=args.capture_jobs or (_BESIDE if beside else _ALONE),
        lock=lock if beside or args.backend == "triton" else None, beside=beside,
        modes=modes if ahead else (), seeds=seeds, families=args.evaluations > 0,
    )  # fmt: skip


def ready(
    tasks: list[Chosen], store: Store, args: argparse.Namespace, how: Asking
) -> Generator[Chosen]:
    """The tasks that can be judged, in the order in which they can."""
    if args.live:
        yield from tasks
    elif args.phase == "all" and args.backend == "cpu":
        yield from list(captures(tasks, store, how))
    elif args.phase == "all":
        yield from captures(tasks, store, how)
    elif not how.families:
        yield from tasks
    else:
        there = store.keys()
        found = [each for each in tasks if each.left_out or each.key in there]
        if len(found) < len(tasks):
            say(f"{len(tasks) - len(found)} tasks are not captured yet")
        yield from found


def jobs(
    tasks: Iterable[Chosen], judges: Queue[RemoteRules], ledger: Ledger, *,
    args: argparse.Namespace, store: Store, how: Asking, folder: Path, modes: tuple[str, ...],
) -> Iterator[Job]:  # fmt: skip
    """One job per task, as tasks come; notes how long it was waited for them."""
    waited, begun = 0.0, time.monotonic()
    packing = packing_by(args, how)
    referred = passed_in(args.referred)
    put_off: set[str] = set()

    def job_of(chosen: Chosen) -> Job:
        def job(limit_s: float) -> Record:
            try:
                return judged(limit_s)
            finally:
                if packing is not None:
                    packing.done(chosen.key)

        def judged(limit_s: float) -> Record:
            if chosen.left_out:
                return {"task": chosen.path.stem, "steps": [], "compile": {},
                        "left_out": chosen.left_out, "seconds": 0.0}  # fmt: skip
            families = folder / f"families-{file_name(chosen.key)}"
            kept = how.families and not args.live
            if kept:
                families.write_bytes(store.get(chosen.key))
            asked = {
                "key": chosen.key, "task": str(chosen.path), "structure": chosen.structure,
                "evaluations": args.evaluations, "again": args.again, "compile": modes,
                "growth": args.growth, "champions": args.champions, "seed": args.seed,
                "stale": args.stale, "roofline": args.roofline,
                "seconds": max(5.0, limit_s - kept_back(args)),
                "final": args.final,
                "rivals": args.rivals,
                "reference": args.reference and chosen.key not in referred,
                "families": str(families) if kept else "", "seeds": seeds_of(chosen, how),
                "sources": str(args.sources) if args.sources else "",
                "runs": str(args.runs.resolve()) if args.runs else "",
            }  # fmt: skip
            rules = judges.get()
            try:
                found = rules.optimise(asked, limit_s=limit_s)
                ledger.note(device=rules.device)
            finally:
                judges.put(rules)
            if args.runs and found.get("said") in (NOT_NOW, "no answer"):
                return for_later(found, whole=limit_s >= args.limit_s)
            if args.judges > 1 and lacked_memory(found):
                if args.runs:  # gone on with, it would find what it has found
                    put_aside(args.runs / file_name(chosen.key))
                alone = _ALONE_ONLY in json.dumps(found)  # as it will be at the end
                if packing is not None and chosen.key not in put_off and not alone:
                    put_off.add(chosen.key)
                    packing.again(chosen)
                return {"said": NOT_NOW, "message": "no memory beside others; --judges 1 has it"}
            return without_what_lacked_memory(found) | _shown(found)

        return chosen.key, job

    if packing is not None:
        tasks = beside_others(tasks, packing) if args.judges > 1 else tasks
        tasks = packing.in_order(tasks)
    for chosen in tasks:
        waited += time.monotonic() - begun
        ledger.note_session(waited_s=round(waited, 1))
        yield job_of(chosen)
        begun = time.monotonic()


def kept_back(args: argparse.Namespace) -> float:
    """Seconds of a task's limit that are not its search's."""
    return _JUDGE_S + (_GROWTH_S if args.growth else 0) + (_LANDING_S if args.runs else 0)


def packing_by(args: argparse.Namespace, how: Asking) -> Packing | None:
    """How tasks share the device's memory, where it is known what each of them takes."""
    if args.rooms is None:
        return None
    counted = json.loads(args.rooms.read_text())
    rooms = {key: kept_for(count) for key, count in counted.items() if count < ROOMS}
    rooms |= {key: ALONE for key, count in counted.items() if count >= ROOMS}
    return Packing(rooms, most_large=args.large_at_once, until=how.until)


def beside_others(tasks: Iterable[Chosen], packing: Packing) -> Iterator[Chosen]:
    """Those that can be judged beside others at all."""
    for each in tasks:
        if packing.needs_all(each.key):
            say(f"{each.key}: {_ALONE_ONLY}; --judges 1 has it")
        else:
            yield each


def passed_in(references: Path | None) -> set[str]:
    """What was judged against itself before."""
    records = json.loads(references.read_text())["records"] if references else {}
    return {key for key, each in records.items() if each.get("said") == "passed"}


def for_later(found: Record, *, whole: bool) -> Record:
    """A run that time has cut short goes on another time, unless all of it brought no step."""
    done = len(found["steps"])
    if whole and done <= found.get("before", 0):
        return found | {"said": "no answer", "message": f"no step more than {done} in all its time"}
    return {"said": NOT_NOW, "message": f"{done} steps are done; run again to go on"}


def lacked_memory(found: Record) -> bool:
    """Whether nothing was found for want of memory, which there may be without others.

    A step that ran out of it beside others was judged again alone: where others have passed, it is
    a verdict like any.
    """
    ours = {name: each for name, each in found.items() if name not in ("compile", "reference")}
    return not found.get("best") and lacks_memory(json.dumps(ours))


def without_what_lacked_memory(found: Record) -> Record:
    """The same without columns that a run without others may still have.

    What was measured in the end, in whatever way, stays.
    """
    columns = {
        mode: column for mode, column in found["compile"].items()
        if "ratio" in column or not lacks_memory(json.dumps(column))
    }  # fmt: skip
    kept = found | {"compile": columns}
    reference = found.get("reference") or {}
    if "ratio" not in reference and lacks_memory(json.dumps(reference)):
        del kept["reference"]
    return kept


def seeds_of(chosen: Chosen, how: Asking) -> dict[str, str]:
    """Where the files lie that torch.compile made ahead, by mode; none where it made none."""
    paths = {mode: how.seed(chosen, mode) for mode in how.modes}
    return {mode: str(path) for mode, path in paths.items() if path.is_file()}


def _shown(found: Record) -> Record:
    """What the ledger prints, at the top of the record."""
    best = found.get("best") or {}
    return {"ratio": best["ratio"]} if "ratio" in best else {}


def judged_in(out: Path) -> set[str]:
    """What has a verdict there, and needs no capture any more."""
    records = json.loads(out.read_text())["records"]
    return {key for key, each in records.items() if each.get("said") not in NO_VERDICT}


def captured_by(args: argparse.Namespace) -> Store:
    return Store(args.captured or ROOT / "benchmarks" / "results" / "captured.zip")


def main() -> None:
    parser = options()
    args = parser.parse_args()
    usual = "rules-h200.json" if args.backend == "triton" else f"rules-{args.backend}.json"
    args.out = args.out or ROOT / "benchmarks" / "results" / usual
    if args.rooms is not None and args.phase == "all":
        parser.error("--rooms goes with --phase judge: all must be captured to be put in order")
    if args.final is None:
        args.final = 1 if args.effort == "glance" else 2
    if args.seeds:
        args.seeds.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + args.budget_s
    tasks, modes = chosen_by(args, parser), modes_of(args, parser)
    store = captured_by(args)
    if args.phase == "capture":
        there = set() if args.fresh or not args.out.is_file() else judged_in(args.out)
        todo = [each for each in tasks if each.key not in there or each.key in args.anew]
        for _ in captures(todo, store, asking(args, modes, until=until, seeds=args.seeds)):
            pass
        _say_captured(store)
        return
    if args.sources:
        args.sources.mkdir(parents=True, exist_ok=True)
    ledger = Ledger("rules", args, summarise)
    ledger.anew(args.anew)
    if not args.show:
        ledger.note(evaluations=args.evaluations)
        if args.kernelbench:
            ledger.note(kernelbench=checkout_commit(args.kernelbench))
        _judge(tasks, store, ledger, args, modes, until=until)
    summary = summarise(ledger.records)
    print(per_task(ledger.records), tables(summary), sep="\n\n")
    curve(summary, args.figure or ledger.path.with_suffix(".svg"))
    if not args.show:
        say(f"wrote {ledger.path.name}")


def _judge(
    tasks: list[Chosen], store: Store, ledger: Ledger, args: argparse.Namespace,
    modes: tuple[str, ...], *, until: float,
) -> None:  # fmt: skip
    todo = [each for each in tasks if each.key not in ledger]
    for key in args.anew if args.runs else ():
        put_aside(args.runs / file_name(key))
    if args.phase == "judge" and args.evaluations and not args.live:
        _refuse_uncaptured(todo, store)
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        judges: Queue[RemoteRules] = Queue()
        for _ in range(args.judges):
            rules = RemoteRules(
                effort=args.effort, backend=args.backend, compiles=bool(modes),
                beside=args.judges > 1,
            )  # fmt: skip
            judges.put(opened.enter_context(rules))
            if todo:
                rules.begin()
        how = asking(args, modes, until=until, seeds=args.seeds or folder)
        come = opened.enter_context(closing(ready(todo, store, args, how)))
        made = jobs(
            come, judges, ledger, args=args, store=store, how=how, folder=folder, modes=modes
        )  # fmt: skip
        keys = [each.key for each in tasks]
        ledger.go_through(
            made, limit_s=args.limit_s, at_once=args.judges, keys=keys,
            least_s=_WORTH_S if args.runs else None,
        )  # fmt: skip


def _refuse_uncaptured(todo: list[Chosen], store: Store) -> None:
    """See to it that there is something to judge, before judges are started."""
    if (
        todo
        and not any(each.left_out for each in todo)
        and not {t.key for t in todo} & store.keys()
    ):
        raise SystemExit(
            f"none of {len(todo)} tasks is captured, or other rules have captured them: "
            "--phase capture first"
        )


def _say_captured(store: Store) -> None:
    captured = {key: pickle.loads(store.get(key)) for key in sorted(store.keys())}
    say(f"captured: {len(captured)}, with nothing that stands alone: {_without(captured)}")


def _without(captured: dict[str, Begun]) -> str:
    return ", ".join(key for key, each in captured.items() if not each.families.members) or "none"


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        raise SystemExit("stopped; run again to go on") from None
