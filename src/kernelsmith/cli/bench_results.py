"""A bench's results: tables, comparisons, merged files, exports, winners judged again."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from kernelsmith.bench import ledger
from kernelsmith.bench.lines import folder_at
from kernelsmith.bench.numbers.findings import as_json, findings
from kernelsmith.bench.numbers.metrics import asked_measure
from kernelsmith.bench.numbers.scores import Measure
from kernelsmith.bench.output import folder as outputs
from kernelsmith.bench.output import tables
from kernelsmith.bench.record import Record
from kernelsmith.errors import UsageError


def show(words: Sequence[str], args: argparse.Namespace) -> int:
    """Print the tables of one or several files of results, put together."""
    results = _read(_paths(words, least=1, said="bench show RESULTS..."))
    measure = _measure(args, results.records, ", ".join(words))
    if args.out is None:
        found = findings(results.records, missing=results.missing, measure=measure)
    else:
        found = outputs.write(results, folder_at(args.out), measure=measure)
    if args.json:
        print(as_json(found))
    else:
        tables.terminal(found, Console(highlight=False), full=args.full)
    return 0


def compare(words: Sequence[str], args: argparse.Namespace) -> int:
    """Say whether one bench's systems are better than another's, and how surely."""
    from kernelsmith.bench.numbers.compare import compare as compared

    one, other = _paths(words, least=2, most=2, said="bench compare A B")
    a, b = _read([one]).records, _read([other]).records
    measure = None
    if args.baseline or args.ratio:
        measure = _measure(args, a, str(one))
        asked_measure(b, baseline=measure.baseline, how=measure.how, said=str(other))
    found = compared(a, b, names=_titles(one, other), measure=measure)
    if args.out is not None:
        outputs.write_comparison(found, args.out)
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
    say_replaced(results)
    outputs.write(results, into)
    if not args.json:
        gone = f", {len(results.replaced)} gave way to others" if results.replaced else ""
        print(f"{len(results.records)} records, {len(results.missing)} without{gone} -> {into}")
    return 0


def export(words: Sequence[str], args: argparse.Namespace) -> int:
    """Write results in KernelBench's own layout."""
    from kernelsmith.bench.output.export import kernelbench

    path, folder = _paths(words, least=2, most=2, said="bench export RESULTS FOLDER")
    results = _read([path])
    measure = _measure(args, results.records, str(path), usual=Measure())
    print(kernelbench(results, folder, baseline=measure.baseline, how=measure.how).said)
    return 0


def verify(words: Sequence[str], args: argparse.Namespace) -> int:
    """Judge stored winners again."""
    from kernelsmith.cli.bench_verify import judged_again

    return judged_again(_read(_paths(words, least=1, said="bench verify RESULTS...")), args)


def audit(words: Sequence[str], args: argparse.Namespace) -> int:
    """Judge kernels that others published."""
    from kernelsmith.cli.bench_audit import audited

    (folder,) = _paths(words, least=1, most=1, said="bench audit FOLDER [--suite SUITE]")
    return audited(folder, args)


def say_corrupt(results: ledger.Results) -> None:
    """Name every line that could not be read."""
    for each in results.corrupt:
        print(f"kernelsmith: {each}", file=sys.stderr)


def say_replaced(results: ledger.Results) -> None:
    """Name every record that another file's took the place of, those of other tasks first."""
    for each in sorted(results.replaced, key=lambda each: not each.is_other_task):
        print(f"kernelsmith: {each}", file=sys.stderr)


def _measure(
    args: argparse.Namespace, records: Sequence[Record], said: str, *, usual: Measure | None = None
) -> Measure:
    """Which ratio was asked for; as usual where none was."""
    named = [name for each in args.baseline for name in each.split(",") if name]
    if len(named) > 1:
        raise UsageError(f"one baseline at a time here; got {', '.join(named)}")
    return asked_measure(
        records, baseline=named[0] if named else None, how=args.ratio, said=said, usual=usual
    )


def _read(paths: Sequence[Path]) -> ledger.Results:
    results = ledger.read(*paths)
    say_corrupt(results)
    say_replaced(results)
    if not results.records:
        raise UsageError(f"{', '.join(map(str, paths))}: no record in it")
    return results


def _paths(words: Sequence[str], *, least: int, said: str, most: int | None = None) -> list[Path]:
    if len(words) < least or (most is not None and len(words) > most):
        raise UsageError(f"say it like this: kernelsmith {said}")
    return [Path(word) for word in words]


def _titles(one: Path, other: Path) -> tuple[str, str]:
    """What two benches are called: as much of the ends of their paths as tells them apart."""
    first, second = (_folder_of(path).parts for path in (one, other))
    for count in range(1, max(len(first), len(second)) + 1):
        names = ("/".join(first[-count:]), "/".join(second[-count:]))
        if names[0] != names[1]:
            return names
    if one.resolve() != other.resolve():  # two files of one folder
        return str(one), str(other)
    return first[-1], f"{first[-1]} again"


def _folder_of(path: Path) -> Path:
    whole = path.resolve()
    return whole.parent if whole.name == ledger.RECORDS else whole
