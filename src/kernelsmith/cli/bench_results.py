"""A bench's results: tables, comparisons, merged files, exports, winners judged again."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kernelsmith.bench import ledger
from kernelsmith.bench.numbers.findings import as_json, findings
from kernelsmith.bench.output import folder as outputs
from kernelsmith.bench.output import tables
from kernelsmith.bench.record import Record
from kernelsmith.cli.live import short
from kernelsmith.cli.options import progress
from kernelsmith.domain.codec import encode
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.evaluator import Elsewhere


def show(words: Sequence[str], args: argparse.Namespace) -> int:
    """Print the tables of one or several files of results, put together."""
    results = _read(_paths(words, least=1, said="bench show RESULTS..."))
    found = findings(results.records, missing=results.missing)
    if args.out is not None:
        args.out.mkdir(parents=True, exist_ok=True)
        outputs.write(results, args.out)
    if args.json:
        print(as_json(found))
    else:
        tables.terminal(found, Console(highlight=False), full=args.full)
    return 0


def compare(words: Sequence[str], args: argparse.Namespace) -> int:
    """Say whether one bench's systems are better than another's, and how surely."""
    from kernelsmith.bench.numbers.compare import compare as compared

    one, other = _paths(words, least=2, most=2, said="bench compare A B")
    found = compared(
        _read([one]).records, _read([other]).records, names=(_title(one), _title(other))
    )
    if args.json:
        print(found.as_json())
    else:
        tables.comparison(found, Console(highlight=False))
    return 0


def merge(words: Sequence[str], args: argparse.Namespace) -> int:
    """Put the results of several machines into one folder."""
    into, *paths = _paths(words, least=2, said="bench merge INTO A B...")
    results = ledger.merge(paths, into)
    say_corrupt(results)
    outputs.write(results, into)
    if not args.json:
        print(f"{len(results.records)} records, {len(results.missing)} without -> {into}")
    return 0


def export(words: Sequence[str], args: argparse.Namespace) -> int:
    """Write results in KernelBench's own layout."""
    from kernelsmith.bench.output.export import kernelbench

    path, folder = _paths(words, least=2, most=2, said="bench export RESULTS FOLDER")
    print(kernelbench(_read([path]), folder).said)
    return 0


def verify(words: Sequence[str], args: argparse.Namespace) -> int:
    """Judge stored winners again; 1 where one does not hold any more."""
    from kernelsmith.bench.verify import Standing, verified

    paths = _paths(words, least=1, said="bench verify RESULTS...")
    results = _read(paths)
    records = [record for record in results.records if record.winner is not None]
    if args.only:
        records = [each for each in records if any(word in each.entry for word in args.only)]
    records = records[: args.limit]
    if not records:
        raise UsageError("these results hold no winner to judge again")
    place = _place(args, records)
    tell = progress()
    found = list(
        verified(
            results, records, effort=args.effort or "usual", place=place,
            begin=lambda record: tell(f"judging {record.entrant} on {record.entry} ..."),
        )
    )  # fmt: skip
    tell("")
    if args.json:
        print(json.dumps({"schema": "verified/1", "winners": [encode(each) for each in found]}))
    else:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for column in ("entrant", "task", "", "recorded", "now"):
            table.add_column(column)
        for each in found:
            table.add_row(
                each.key.entrant, f"{each.key.entry} #{each.key.seed}", each.standing.value,
                short(each.was), short(each.now),
            )  # fmt: skip
        console = Console(highlight=False)
        console.print(table)
        for each in found:
            if each.standing not in (Standing.HOLDS, Standing.PASSES):
                console.print(f"{each.key.entry}: {each.said or each.standing.value}", markup=False)
        counts = Counter(each.standing.value for each in found)
        console.print(", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    bad = (Standing.FAILS, Standing.SLOWER)
    return 1 if any(each.standing in bad for each in found) else 0


def _place(args: argparse.Namespace, records: Sequence[Record]) -> Elsewhere | None:
    """Who judges winners again, where it is not this machine."""
    from kernelsmith.cli.elsewhere import elsewhere

    backends = sorted({record.backend for record in records})
    if not args.evaluator:
        return None
    if len(args.evaluator) > 1 or len(backends) > 1:
        raise UsageError("winners of one backend are judged again at one evaluator at a time")
    return elsewhere(args.evaluator[0], backends[0])


def audit(words: Sequence[str], args: argparse.Namespace) -> int:
    """Judge kernels that others published."""
    from kernelsmith.cli.bench_audit import audited

    if args.evaluator:
        raise UsageError("an audit runs what guards refuse, so it judges on this machine only")
    (folder,) = _paths(words, least=1, most=1, said="bench audit FOLDER [--suite SUITE]")
    return audited(folder, args)


def say_corrupt(results: ledger.Results) -> None:
    """Name every line that could not be read."""
    for each in results.corrupt:
        print(f"kernelsmith: {each}", file=sys.stderr)


def _read(paths: Sequence[Path]) -> ledger.Results:
    results = ledger.read(*paths)
    say_corrupt(results)
    if not results.records:
        raise UsageError(f"{', '.join(map(str, paths))}: no record in it")
    return results


def _paths(words: Sequence[str], *, least: int, said: str, most: int | None = None) -> list[Path]:
    if len(words) < least or (most is not None and len(words) > most):
        raise UsageError(f"say it like this: kernelsmith {said}")
    return [Path(word) for word in words]


def _title(path: Path) -> str:
    return path.parent.name if path.name == ledger.RECORDS else path.name or str(path)
