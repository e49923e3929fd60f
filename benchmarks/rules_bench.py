"""The records of ``benchmarks.rules`` as a bench's, so that one run on a GPU serves both.

``kernelsmith bench show FOLDER`` then has every table and figure of a bench: the rules,
``torch.compile`` in its modes and the reference itself as entrants. Nothing is judged here.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.gpu_ledger import NO_VERDICT
from benchmarks.report import say
from benchmarks.rules_compiled import OURS
from benchmarks.rules_numbers import best
from kernelsmith.bench import ledger
from kernelsmith.bench.job import task_hash
from kernelsmith.bench.output.folder import write
from kernelsmith.bench.record import Beside, Cost, Missing, Point, Record, Rules
from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Label, LabelName, Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.errors import UsageError

Said = dict[str, Any]
_BACKENDS = {"cuda": "triton", "cpu": "cpu"}
_VERDICTS = {each.value: each for each in Verdict}


def records_of(body: Said, entries: dict[str, Entry | Absent]) -> Iterator[Record | Missing]:
    """One record per entrant that was measured on a task, and what there is none of.

    Args:
        body: A results file of ``benchmarks.rules``.
        entries: The suite's, by id without its name.
    """
    about = body["device"]
    device = Device(**about | {"versions": tuple(about["versions"].items())})
    for key, entry in entries.items():
        said = body["records"].get(key)
        if isinstance(entry, Absent):
            yield Missing(entry=entry.id, reason=entry.reason, level=entry.level)
        elif said is None:
            yield Missing(entry=entry.id, reason="not measured yet", level=entry.level)
        else:
            yield from _of_task(said, entry, device)


def joined(body: Said, others: list[Said]) -> Said:
    """A results file with what others have of the same tasks and it has not.

    Columns of ``torch.compile`` in other modes, and references that were judged by themselves
    (``benchmarks.gpu_references``): each is a ratio over eager in its own run.

    Raises:
        ValueError: They are of another device, or of other versions.
    """
    records = {key: dict(each) for key, each in body["records"].items()}
    for other in others:
        theirs, ours = _named(other["device"]), _named(body["device"])
        if theirs != ours:
            raise ValueError(f"{other['benchmark']} is of {theirs}, not of {ours}")
        for key, each in other["records"].items():
            mine = records.get(key)
            if mine is None:
                continue
            if "compile" in each:
                mine["compile"] = each["compile"] | mine["compile"]
                mine.setdefault("reference", each.get("reference"))
            elif not mine.get("reference"):
                mine["reference"] = each
    return body | {"records": records}


def _named(device: Said) -> str:
    """The device and what a ratio depends on; a machine's own kernel is not among that."""
    known = device["versions"].items()
    return ", ".join([device["name"], *(f"{n} {v}" for n, v in known if n != "kernel")])


def _of_task(said: Said, entry: Entry, device: Device) -> Iterator[Record | Missing]:
    columns = {"rules": said if said["steps"] or "said" in said else None}
    columns |= {OURS[mode]: column for mode, column in said["compile"].items()}
    columns["eager"] = said.get("reference")
    for entrant, column in columns.items():
        if column is None:
            continue
        if why := _nothing_judged(column):
            yield Missing(entry=entry.id, reason=why, entrant=entrant, level=entry.level)
            continue
        make = _searched if entrant == "rules" else _fixed
        yield Record(
            entrant=entrant, entry=entry.id, suite=entry.id.partition("/")[0], level=entry.level,
            category=entry.category, family=entry.family, dtype=entry.dtype, note=entry.note,
            name=entry.task.name, task=task_hash(entry.task), backend=_BACKENDS[device.kind],
            device=device, **make(column),
        )  # fmt: skip


def _nothing_judged(column: Said) -> str:
    """Why there is no verdict by the judge; nothing where there is one."""
    if "left_out" in column:
        return str(column["left_out"])
    if column.get("how") == "judge":
        return "measured as a baseline, so nobody looked whether it is right"
    if column.get("how") == "plain":
        return f"not measured by the judge: {column.get('why_plain', '')}"
    if column["said"] in NO_VERDICT:
        return f"{column['said']}: {column.get('message', '')}"
    return ""


def _fixed(column: Said) -> dict[str, Any]:
    """The fields of an entrant that does not search."""
    verdict = _VERDICTS[column["said"]]
    return {
        "rules": Rules(effort="glance"),
        "verdict": verdict,
        "message": column.get("message", ""),
        "confirmed": verdict is Verdict.PASSED,
        "beside": _beside(column),
        "labels": _labels(column),
        "own": column.get("own"),
        "cost": Cost(judging_s=column.get("seconds", 0.0)),
        "judge": column.get("judge", ""),
    }


def _searched(column: Said) -> dict[str, Any]:
    """The fields of the rules."""
    points = tuple(_points(column["steps"]))
    found = best(column)
    if found is None:
        failed = [each for each in column["steps"] if each["said"] in _VERDICTS]
        fields = _fixed(failed[-1]) if failed else {"verdict": None, "message": "nothing to judge"}
    else:
        fields = _fixed(found)
    end = column.get("best") or {}
    return fields | {
        "rules": Rules(steps=len(points), policy="evolve", effort="glance"),
        "confirmed": bool(end.get("confirmed")),
        "points": points,
        "best_step": end.get("number"),
        "cost": Cost(seconds=column.get("optimised_s", 0.0)),
    }


def _points(steps: list[Said]) -> Iterator[Point]:
    most = 0.0
    for number, each in enumerate(steps):
        ratio = _ratio(each)
        is_best = ratio is not None and ratio.value > most
        most = max(most, ratio.value if ratio else 0.0)
        judged = each["said"] in _VERDICTS
        yield Point(
            step=number, verdict=_VERDICTS[each["said"]] if judged else None,
            outcome=("improved" if is_best else "kept_out") if ratio else
            "failed" if judged else each["said"],
            speedup=ratio, call=_ratio(each.get("call") or {}), is_best=is_best,
            proposer="rules", seconds=each["seconds"],
        )  # fmt: skip


def _beside(column: Said) -> tuple[Beside, ...]:
    if column["said"] != "passed":
        return ()
    ratio = _ratio(column)
    if ratio is None:
        return (Beside(baseline="eager", trouble="nothing is timed on this machine"),)
    call = _ratio(column.get("call") or {})
    pairs = column.get("pairs", 0)  # references list them
    tests = pairs if isinstance(pairs, int) else len(pairs)
    return (Beside(baseline="eager", device=ratio, call=call, tests=tests),)


def _ratio(said: Said) -> Ratio | None:
    if "ratio" not in said:
        return None
    return Ratio(value=said["ratio"], low=said["low"], high=said["high"])


def _labels(column: Said) -> tuple[Label, ...]:
    if column["said"] != "passed":
        return ()
    return tuple(
        Label(name=LabelName(name), reason=reason)
        for name, reason in column.get("labels", {}).items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path, help="what benchmarks.rules wrote")
    parser.add_argument(
        "--join", type=Path, nargs="+", default=[], metavar="FILE",
        help="take what is missing from these: other modes of torch.compile, references",
    )  # fmt: skip
    parser.add_argument("--suite", required=True, metavar="SUITE", help="kernelbench:PATH, builtin")
    parser.add_argument("--levels", default="1,2,3", help="of KernelBench (1,2,3)")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="a new folder")
    args = parser.parse_args()
    if (args.out / ledger.RECORDS).exists():
        parser.error(f"{args.out} holds records already; name a new folder")
    try:
        suite = open_suite(args.suite)
    except UsageError as error:
        parser.error(str(error))
    try:
        body = joined(
            json.loads(args.results.read_text()), [json.loads(e.read_text()) for e in args.join]
        )
    except ValueError as error:
        parser.error(str(error))
    levels = {f"level{each}" for each in args.levels.split(",")}
    entries = {
        key: each
        for each in suite.entries()
        if (key := each.id.partition("/")[2]).partition("/")[0] in levels or "/" not in key
    }
    with ledger.Ledger(args.out / ledger.RECORDS) as made:
        made.append(*records_of(body, entries))
    write(ledger.read(args.out), args.out)
    say(f"wrote {args.out}; kernelsmith bench show {args.out}")


if __name__ == "__main__":
    main()
