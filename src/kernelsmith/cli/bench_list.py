"""``kernelsmith bench list SUITE``: which tasks load here, and why others do not."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from kernelsmith.bench.plan import is_named
from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.cli.options import progress
from kernelsmith.errors import UsageError

SCHEMA = "bench-suite/1"


def listed(words: Sequence[str], args: argparse.Namespace) -> int:
    """Open a suite, run nothing, and say what it holds."""
    if len(words) != 1:
        raise UsageError("say it like this: kernelsmith bench list SUITE [--only ID] [--full]")
    suite = open_suite(words[0])
    tell = progress()
    tell(f"reading {words[0]} ...")
    entries: list[Entry] = []
    absent: list[Absent] = []
    for each in suite.entries():
        if args.only and not any(is_named(each.id, word) for word in args.only):
            continue
        if isinstance(each, Absent):
            absent.append(each)
        else:
            entries.append(each)
    tell("")
    if not entries and not absent:
        raise UsageError(f"no task of {words[0]} fits what was asked for")
    if args.json:
        print(json.dumps(_as_json(words[0], entries, absent)))
    else:
        _print(words[0], entries, absent, full=args.full)
    return 0


def _as_json(suite: str, entries: Sequence[Entry], absent: Sequence[Absent]) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "suite": suite,
        "tasks": [
            {
                "id": each.id, "name": each.task.name, "level": each.level,
                "category": each.category, "family": each.family, "dtype": each.dtype,
                "note": each.note, "workloads": [one.name for one in each.task.workloads],
            }
            for each in entries
        ],
        "absent": [{"id": each.id, "reason": each.reason} for each in absent],
    }  # fmt: skip


def _print(suite: str, entries: Sequence[Entry], absent: Sequence[Absent], *, full: bool) -> None:
    console = Console(highlight=False)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    if full:
        for column in ("task", "level", "family", "dtype", "note"):
            table.add_column(column, no_wrap=column == "task", overflow="fold")
        for each in entries:
            table.add_row(each.id, each.level, each.family, each.dtype, each.note)
    else:
        table.add_column("level")
        table.add_column("load", justify="right")
        table.add_column("of them known to be degenerate", justify="right")
        levels = Counter(each.level for each in entries)
        degenerate = Counter(each.level for each in entries if each.is_degenerate)
        for level in sorted(levels):
            table.add_row(level or "-", str(levels[level]), str(degenerate[level] or ""))
    console.print(table)
    for gone in absent:
        console.print(f"{gone.id}: {gone.reason}", markup=False, soft_wrap=True)
    console.print(f"{suite}: {len(entries)} tasks load, {len(absent)} do not", markup=False)
