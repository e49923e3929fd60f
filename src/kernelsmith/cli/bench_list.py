"""``kernelsmith bench list SUITE``: which tasks load here, and why others do not."""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial

from rich.console import Console
from rich.table import Table

from kernelsmith.bench.plan import is_of_level, names, refuse_other_levels, refuse_unmatched
from kernelsmith.bench.suite import Absent, Entry, open_suite
from kernelsmith.cli.options import progress
from kernelsmith.errors import UsageError

SCHEMA = "bench-suite/1"


def listed(words: Sequence[str], args: argparse.Namespace) -> int:
    """Open a suite, run nothing, and say what it holds."""
    if len(words) != 1:
        raise UsageError("say it like this: kernelsmith bench list SUITE [--only ID] [--full]")
    wanted = partial(names, args.only)
    suite = open_suite(words[0], wanted)
    tell = progress()
    tell(f"reading {words[0]} ...")
    seen = [each for each in suite.entries() if wanted(each.id)]
    tell("")
    refuse_unmatched(args.only, [each.id for each in seen], words[0])
    refuse_other_levels(args.level, seen, words[0])
    asked = [each for each in seen if is_of_level(each, args.level)]
    entries = [each for each in asked if isinstance(each, Entry)]
    absent = [each for each in asked if isinstance(each, Absent)]
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
    console = Console(highlight=False, markup=False, emoji=False)  # suites say what they like
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
        table.add_column("suspect", justify="right")
        levels = Counter(each.level for each in entries)
        degenerate = Counter(each.level for each in entries if each.is_degenerate)
        suspect = Counter(
            each.level for each in entries if each.is_suspect and not each.is_degenerate
        )
        for level in sorted(levels):
            counts = (levels[level], degenerate[level] or "", suspect[level] or "")
            table.add_row(level or "-", *map(str, counts))
    console.print(table)
    for gone in absent:
        console.print(f"{gone.id}: {gone.reason}", soft_wrap=True)
    console.print(f"{suite}: {len(entries)} tasks load, {len(absent)} do not")
