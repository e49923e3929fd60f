"""KernelBench's references judged against themselves: each must pass, at a ratio of one.

The candidate is the reference's own source with the class renamed, library code allowed. Whatever
is not passed is a false alarm of ours; a ratio whose interval leaves out 1 is a wrong number (one
in twenty is what a 95 % interval promises). Tasks are spread evenly over each level, with those
whose recipe promises something added; those left out are recorded with the reason.
"""

import ast
import importlib.util
import json
import re
import statistics
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.gpu_ledger import NO_VERDICT, Job, Ledger, Record, add_checkout, gpu_options
from benchmarks.gpu_remote import RemoteJudge
from benchmarks.kernelbench_runner import checkout_commit
from benchmarks.report import say, table
from kernelsmith.bench.compiled import renamed

_T = TypeVar("_T")
STRUCTURE: dict[str, tuple[str, str]] = {
    "level1/13": ("symmetric", "the recipe makes both matrices symmetric"),
    "level1/14": ("triangular", "the recipe makes both matrices upper triangular"),
    "level1/15": ("triangular", "the recipe makes both matrices lower triangular"),
    "level1/98": ("probabilities", "the recipe gives rows of a softmax; the loss takes their log"),
    "level1/100": ("signs", "the recipe's targets are -1 or 1"),
}
"""What KernelBench's recipes promise without saying so: our judge would draw other values too."""


def missing(source: str) -> str:
    """Name the first package that a task imports and this machine has not; empty if none."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        for name in names:
            if importlib.util.find_spec(name.partition(".")[0]) is None:
                return name.partition(".")[0]
    return ""


def number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    assert found, f"{path.name} has no number"
    return int(found[0])


def spread_over(given: list[_T], count: int) -> list[_T]:
    """Choose evenly, always the same ones."""
    few = min(count, len(given))
    return [given[index * len(given) // few] for index in range(few)]


def chosen(checkout: Path, counts: list[int]) -> tuple[dict[str, Path], dict[str, str]]:
    """Return the tasks by name, and those left out with the reason."""
    tasks: dict[str, Path] = {}
    left_out: dict[str, str] = {}
    for level, count in enumerate(counts, start=1):
        paths = sorted((checkout / "KernelBench" / f"level{level}").glob("*.py"), key=number)
        fit = []
        for path in paths:
            name = f"level{level}/{number(path)}"
            package = missing(path.read_text())
            if package:
                left_out[name] = f"needs {package}"
            else:
                fit.append(path)
        named = {f"level{level}/{number(path)}": path for path in fit}
        wanted = set(spread_over(list(named), count)) | (STRUCTURE.keys() & named.keys())
        tasks |= {name: path for name, path in named.items() if name in wanted}
    return tasks, left_out


def jobs(tasks: dict[str, Path], judge: RemoteJudge, ledger: Ledger) -> list[Job]:
    """List one job per task, the levels in turn, so that a part of them is spread over all."""

    def job_of(name: str, path: Path) -> Job:
        def job(limit_s: float) -> Record:
            structure, why = STRUCTURE.get(name, ("", ""))
            found = judge.judge(
                path, renamed(path.read_text()), limit_s=limit_s, library="any",
                structure=(structure,) if structure else (),
            )  # fmt: skip
            ledger.note(device=judge.device)
            more = {"structure": structure, "structure_why": why} if structure else {}
            return {"task": path.stem} | found | more

        return name, job

    place: Counter[str] = Counter()
    ordered = []
    for name, path in tasks.items():
        level = name.partition("/")[0]
        of = sum(other.startswith(f"{level}/") for other in tasks)
        ordered.append((place[level] / of, name, path))
        place[level] += 1
    return [job_of(name, path) for _, name, path in sorted(ordered, key=lambda each: each[:2])]


def passed_beside(rules: Path) -> set[str]:
    """Tasks whose reference was judged against itself while the rules were, and passed."""
    records = json.loads(rules.read_text())["records"]
    found = {name: each.get("reference") or {} for name, each in records.items()}
    return {name for name, each in found.items() if each.get("said") == "passed"}


def contains_one(record: Record) -> bool:
    return bool(record["low"] <= 1.0 <= record["high"])


def summarise(records: dict[str, Record]) -> dict[str, Any]:
    """Count what should be everything, per level and in all."""
    found: dict[str, Any] = {}
    for level in ("level1", "level2", "level3", "all"):
        group = [r for name, r in records.items() if level in ("all", name.partition("/")[0])]
        passed = [record for record in group if record["said"] == "passed"]
        timed = [record for record in passed if "ratio" in record]
        off = [abs(record["ratio"] - 1) for record in timed]
        found[level] = {
            "tasks": len(group),
            "passed": len(passed),
            "contains_one": sum(map(contains_one, timed)),
            "refused_wrongly": sum(r["said"] not in ("passed", *NO_VERDICT) for r in group),
            "no_verdict": sum(record["said"] in NO_VERDICT for record in group),
            "graph": sum(record["mode"] == "graph" for record in timed),
            "off_by_median": statistics.median(off) if off else None,
            "off_by_most": max(off, default=None),
            "seconds": round(sum(record["seconds"] for record in group), 1),
        }
    return found


def show(records: dict[str, Record]) -> None:
    """Print the tables for people."""
    rows = []
    for name in sorted(records, key=lambda name: (name[:6], int(name.partition("/")[2]))):
        record = records[name]
        row = [f"{name} {record['task'][:34]}", record["said"]]
        if "ratio" in record:
            row += [f"{record['ratio']:.4f}", f"[{record['low']:.4f}, {record['high']:.4f}]"]
            row += ["" if contains_one(record) else "not 1", record["mode"]]
            row += [f"{record['candidate_us']:.1f}"]
        rows.append(row + [""] * (7 - len(row)) + [f"{record['seconds']:.1f}"])
    print(table(["task", "verdict", "ratio", "interval", "", "mode", "us", "s"], rows))
    for name, record in records.items():
        if record["said"] != "passed":
            print(f"{name}: {record['said']}: {record['message']}")
    print()
    head = ["level", "tasks", "passed", "interval contains 1", "refused wrongly", "no verdict"]
    rows = [
        [level, each["tasks"], each["passed"], each["contains_one"], each["refused_wrongly"],
         each["no_verdict"]]
        for level, each in summarise(records).items()
    ]  # fmt: skip
    print(table(head, rows))


def main() -> None:
    parser = gpu_options(__doc__ or "")
    add_checkout(parser, required=True)
    parser.add_argument(
        "--count", type=int, nargs=3, default=[30, 20, 14], metavar="N",
        help="tasks of levels 1, 2 and 3 (30 20 14)",
    )  # fmt: skip
    parser.add_argument(
        "--limit-s", type=float, default=120.0, metavar="S", help="seconds per task (120)"
    )
    parser.add_argument("--effort", default="usual", help="how thorough (usual)")
    parser.add_argument("--only", nargs="+", metavar="LEVEL/N", help="these, e.g. level1/14")
    parser.add_argument(
        "--passed-in", type=Path, metavar="FILE",
        help="all whose reference has not passed in this file of benchmarks.rules --reference",
    )  # fmt: skip
    args = parser.parse_args()
    counts = [100, 100, 50] if args.only or args.passed_in else args.count
    tasks, left_out = chosen(args.kernelbench, counts)
    if not tasks:
        parser.error("--kernelbench holds no KernelBench/level1, level2 and level3")
    if args.only:
        tasks = {name: tasks[name] for name in args.only}
    if args.passed_in:
        passed = passed_beside(args.passed_in)
        tasks = {name: path for name, path in tasks.items() if name not in passed}
    ledger = Ledger("gpu_references", args, summarise)
    ledger.note(left_out=left_out, kernelbench=checkout_commit(args.kernelbench))
    with RemoteJudge(effort=args.effort, backend=args.backend) as judge:
        ledger.go_through(jobs(tasks, judge, ledger), limit_s=args.limit_s)
    show(ledger.records)
    for name, reason in left_out.items():
        say(f"left out: {name}: {reason}")
    say(f"wrote {ledger.path.name}")


if __name__ == "__main__":
    main()
