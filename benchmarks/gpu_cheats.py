"""How many GPU cheats are caught and how many honest candidates refused, guard on and off.

Every file of ``tests/cheats/gpu``, judged twice: with the static guard, and without it, when the
evidence alone decides. Its header says what should become of it. Counted: offenders that passed,
honest ones that did not, and verdicts other than the header's. ``--part 2/4`` takes every fourth
file from the second on; parts go into one file, one after the other.

With ``--kernelbench``, KernelBench's harness on the same files, contained (other user, own network
and processes, limits), where its verdict means something; what is left out is counted with the
reason. Ours was written against this zoo: its figure says that nothing slips back.
"""

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import kernelbench_runner
from benchmarks.gpu_ledger import NO_VERDICT, Job, Ledger, Record, add_checkout, gpu_options
from benchmarks.gpu_remote import RemoteJudge
from benchmarks.kernelbench_fit import at_our_judge, danger, extras
from benchmarks.kernelbench_runner import Outcome
from benchmarks.report import ROOT, say, table
from kernelsmith.evaluate.tasks import load_task

CHEATS = ROOT / "tests" / "cheats"
FOLDERS = ("offenders", "honest")
GUARDS = {"on": True, "off": False}
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Animal:
    """One file of the GPU zoo. Read here, since the zoo's own reader needs pytest."""

    path: Path
    folder: str
    number: str
    task: Path
    expected: dict[str, tuple[str, ...]]
    """Verdicts by guard."""


def read(path: Path) -> Animal:
    """Read the header: lines ``# key: value`` at the top of the file."""
    header: dict[str, str] = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(":")
        header[key.strip()] = value.strip()
    name = f"{header['task']}.py"
    folders = (path.parent.parent, CHEATS / "gpu", CHEATS)
    places = [folder / "tasks" / name for folder in folders]
    task = next((place for place in places if place.exists()), None)
    if task is None:
        raise SystemExit(f"{path.name}: there is no task {header['task']!r}")
    expected = {
        "on": tuple(header["expect"].split()),
        "off": tuple(header.get("behaviour", header["expect"]).split()),
    }
    return Animal(
        path=path, folder=path.parent.name, number=header["number"], task=task, expected=expected
    )


def animals(zoo: Path, part: str) -> list[Animal]:
    """All files, offenders first, or every nth of them."""
    index, _, of = part.partition("/")
    found = [read(path) for folder in FOLDERS for path in sorted((zoo / folder).glob("*.py"))]
    return found[int(index) - 1 :: int(of)]


class KernelBench:
    """KernelBench's harness on files of the zoo; asks once per task whether it can run it."""

    def __init__(self, checkout: Path) -> None:
        self._checkout = checkout
        self._control: Callable[[Path], Outcome] = cache(self._controlled)

    def judge(self, animal: Animal, limit_s: float) -> Record:
        """Return what it said, or ``left out`` with the reason."""
        source = animal.path.read_text()
        task = load_task(animal.task)
        reason = danger(animal.number, source) or at_our_judge(source)
        if not reason and (asked := extras(task)):
            reason = f"the task asks for {asked}"
        if reason:
            return {"said": "left out", "message": reason}
        control = self._control(animal.task)
        if not control.accepted:
            said = f"the reference by itself: {control.said}, {control.reason}"
            return {"said": "left out", "message": said}
        found = self._run(animal.task, source, precision=control.precision, timeout_s=limit_s)
        if not found.accepted and self._run(animal.task, source, mode="weights").said == "unlike":
            return {"said": "left out", "message": "its weights do not come from a seed"}
        keep = ("said", "excessive", "static", "ratio", "seconds")
        kept = {key: value for key, value in asdict(found).items() if key in keep}
        return kept | {"message": found.reason}

    def _controlled(self, task: Path) -> Outcome:
        return self._run(task, "", mode="control")

    def _run(
        self, task: Path, source: str, *, mode: str = "evaluate", precision: str = "float32",
        timeout_s: float = 90.0,
    ) -> Outcome:  # fmt: skip
        return kernelbench_runner.evaluate(
            self._checkout, task.read_text(), source, mode=mode, precision=precision,
            timeout_s=min(timeout_s, 90.0), gpu=True,
        )  # fmt: skip


def jobs(found: list[Animal], judges: dict[str, RemoteJudge], ledger: Ledger) -> list[Job]:
    """List one job per file and guard."""

    def job_of(animal: Animal, guard: str) -> Job:
        def job(limit_s: float) -> Record:
            judge = judges[guard]
            said = judge.judge(animal.task, animal.path.read_text(), limit_s=limit_s)
            ledger.note(device=judge.device)
            return _about(animal) | {"guard": guard, "expected": animal.expected[guard]} | said

        return f"{animal.folder}/{animal.path.name}/guard {guard}", job

    return [job_of(animal, guard) for animal in found for guard in judges]


def jobs_beside(found: list[Animal], other: KernelBench) -> list[Job]:
    """List one job per file, for KernelBench's harness."""

    def job_of(animal: Animal) -> Job:
        def job(limit_s: float) -> Record:
            return _about(animal) | {"guard": "kernelbench"} | other.judge(animal, limit_s)

        return f"{animal.folder}/{animal.path.name}/kernelbench", job

    return [job_of(animal) for animal in found]


def _about(animal: Animal) -> Record:
    return {"file": animal.path.name, "folder": animal.folder, "number": animal.number}


def accepted(record: Record) -> bool:
    """Whether a side let the file pass."""
    return record["said"] in ("passed", "correct")


def summarise(records: dict[str, Record]) -> dict[str, Any]:
    """Count per side: what passed of the offenders, and what did not of the honest ones."""
    sides: dict[str, Counter[str]] = {}
    for record in records.values():
        count = sides.setdefault(record["guard"], Counter())
        if record["said"] == "left out":
            count["left_out"] += 1
            continue
        folder = record["folder"]
        count[folder] += 1
        if record["said"] in NO_VERDICT:
            count["no_verdict"] += 1
            continue
        offends = folder == "offenders"
        if offends and accepted(record):
            count["offenders_passed"] += 1
            count["offenders_passed_as_admitted"] += "passed" in record.get("expected", ())
        if not offends and not accepted(record):
            count["honest_refused"] += 1
        if "expected" in record:
            count["unlike_header"] += record["said"] not in record["expected"]
    return {side: dict(count) for side, count in sides.items()}


def show(records: dict[str, Record]) -> None:
    """Print the tables for people."""
    keys = (
        "offenders", "offenders_passed", "offenders_passed_as_admitted", "honest",
        "honest_refused", "unlike_header", "no_verdict", "left_out",
    )  # fmt: skip
    rows = [
        [side if side == "kernelbench" else f"guard {side}", *(count.get(key, 0) for key in keys)]
        for side, count in summarise(records).items()
    ]
    print(table(["side", *(key.replace("_", " ") for key in keys)], rows))
    for key, record in records.items():
        offends = record["folder"] == "offenders"
        unlike = "expected" in record and record["said"] not in record["expected"]
        errs = record["guard"] != "kernelbench" and accepted(record) is offends
        if unlike or errs:
            told = f"{record['said']} (header: {' '.join(record['expected'])})"
            print(f"{key}: {told}: {record['message'][:160]}")


def main() -> None:
    parser = gpu_options(__doc__ or "")
    add_checkout(parser)
    parser.add_argument("--part", default="1/1", metavar="I/N", help="every Nth file from the Ith")
    parser.add_argument(
        "--guard", choices=("on", "off", "both"), default="both", help="static guard (both)"
    )
    parser.add_argument("--zoo", type=Path, default=CHEATS / "gpu", metavar="FOLDER")
    parser.add_argument("--effort", default="quick", help="how thorough (quick)")
    args = parser.parse_args()
    index, _, of = args.part.partition("/")
    if not (index.isdigit() and of.isdigit() and 1 <= int(index) <= int(of)):
        parser.error(f"--part is I/N with 1 <= I <= N; got {args.part!r}")
    found = animals(args.zoo, args.part)
    if not found:
        parser.error("no files: the zoo has no offenders/ and honest/ with any")
    ledger = Ledger("gpu_cheats", args, summarise)
    run(args, found, ledger)
    show(ledger.records)
    say(f"wrote {ledger.path.name}")


def run(args: argparse.Namespace, found: list[Animal], ledger: Ledger) -> None:
    """Judge by our sides, then by KernelBench's."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["KERNELSMITH_CACHE"] = cache
        judges = {
            guard: RemoteJudge(
                effort=args.effort, backend=args.backend,
                settings={"static": static, "robust": False},
            )
            for guard, static in GUARDS.items()
            if args.guard in (guard, "both")
        }  # fmt: skip
        try:
            done = ledger.go_through(jobs(found, judges, ledger), limit_s=LIMIT_S)
        finally:
            for judge in judges.values():
                judge.close()
    if args.kernelbench and done:
        ledger.note(
            kernelbench={
                "commit": kernelbench_runner.checkout_commit(args.kernelbench),
                "how": kernelbench_runner.SAID_OF_GPU,
                "contained": kernelbench_runner.contained(),
            }
        )
        ledger.go_through(jobs_beside(found, KernelBench(args.kernelbench)), limit_s=LIMIT_S)


if __name__ == "__main__":
    main()
