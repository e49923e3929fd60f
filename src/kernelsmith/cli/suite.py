"""Many tasks under one budget: one folder each, one table, and none stops the others."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from kernelsmith.cli.ending import INTERRUPTED, status, to_json
from kernelsmith.cli.live import clock_of, short
from kernelsmith.cli.session import Ended, is_begun, load, optimized, resumed
from kernelsmith.domain.codec import Json
from kernelsmith.domain.task import cuda_in
from kernelsmith.errors import EvaluationLost, SmithError, UsageError
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.result import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task of a suite: how its run ended, or why there was none."""

    name: str
    ended: Ended | None = None
    trouble: str = ""
    status: int = 0


def run_suite(
    tasks: Sequence[tuple[str, Path]], folder: Path, config: RunConfig, *, as_json: bool
) -> int:
    """Optimise every task in turn and print a table; again in the same folder, go on.

    Money, tokens and seconds are shared: each task gets an even share of what is left.
    """
    rows: list[Row] = []
    for index, (name, path) in enumerate(tasks):
        results = [row.ended.result for row in rows if row.ended is not None]
        budget = share(config.budget, results, len(tasks) - index)
        if budget is None:
            rows += [_skipped(each) for each, _ in tasks[index:]]
            break
        print(f"[{index + 1}/{len(tasks)}] {name}", file=sys.stderr, flush=True)
        rows.append(_one(name, path, folder / name, replace(config, budget=budget)))
        if rows[-1].status == INTERRUPTED:
            rows += [_skipped(each) for each, _ in tasks[index + 1 :]]
            break
    _print(rows, folder, as_json=as_json)
    return max(row.status for row in rows)


def tasks_in(suite: Path) -> list[tuple[str, Path]]:
    """Name and path of every task file, in the order of their names.

    Raises:
        UsageError: There is no such folder, or no task in it.
    """
    if not suite.is_dir():
        raise UsageError(f"no folder {str(suite)!r} to take tasks from")
    found = [
        (str(path.relative_to(suite).with_suffix("")), path)
        for path in sorted(suite.rglob("*.py"))
        if not any(part.startswith(("_", ".")) for part in path.relative_to(suite).parts)
    ]
    if not found:
        raise UsageError(f"{str(suite)!r} holds no task: no file ends with .py")
    return found


def fitting(
    tasks: Sequence[tuple[str, Path]], config: RunConfig
) -> tuple[list[tuple[str, Path]], str]:
    """The tasks that are meant for the run's backend, and in one line what is left out.

    A task that brings a CUDA kernel along is there to be ported; elsewhere it is left out, unless
    the folder holds nothing else. Where kernels are ported, the rules have nothing for the others.
    """
    from kernelsmith.propose.rules.maca.family import BACKENDS

    ports = config.backend in BACKENDS
    if config.backend == "null" or (ports and config.proposer.kind != "rules"):
        return list(tasks), ""
    kept = [each for each in tasks if _brings_cuda(each[1]) is ports]
    if not kept or len(kept) == len(tasks):
        return list(tasks), ""
    count = len(tasks) - len(kept)
    why = "bring no CUDA kernel along" if ports else "bring a CUDA kernel along, to be ported"
    return kept, f"left out for the backend {config.backend!r}: tasks that {why} ({count})"


def _brings_cuda(path: Path) -> bool:
    try:
        return cuda_in(path.read_text(encoding="utf-8")) is not None
    except (OSError, ValueError, SyntaxError):
        return False  # its own run says what is wrong with it


def share(budget: Budget, results: Sequence[Result], waiting: int) -> Budget | None:
    """The next task's even share of what is left; none where something is used up."""
    used = {
        "tokens": sum(result.tokens for result in results),
        "usd": sum(result.usd or 0.0 for result in results),
        "seconds": sum(result.elapsed_s for result in results),
    }
    shares: dict[str, float] = {}
    for name, spent in used.items():
        limit = getattr(budget, name)
        if limit is None:
            continue
        each = (limit - spent) / waiting
        if name == "tokens":
            each = int(each)
        if each <= 0:
            return None
        shares[name] = each
    return replace(budget, **shares)  # type: ignore[arg-type]


def _one(name: str, path: Path, folder: Path, config: RunConfig) -> Row:
    try:
        task = load(path, config)
        run = resumed(folder, config, task) if is_begun(folder) else optimized(task, folder, config)
    except EvaluationLost as error:
        return Row(name=name, trouble=f"not judged, our fault: {error}", status=3)
    except SmithError as error:
        return Row(name=name, trouble=str(error), status=2)
    return Row(name=name, ended=run, status=status(run))


def _skipped(name: str) -> Row:
    return Row(name=name, trouble="not begun: the budget is spent or the suite was stopped")


def _print(rows: Sequence[Row], folder: Path, *, as_json: bool) -> None:
    if as_json:
        said: list[Json] = [
            {"name": row.name, "status": row.status, "trouble": row.trouble or None,
             "result": to_json(row.ended) if row.ended else None}
            for row in rows
        ]  # fmt: skip
        print(json.dumps({"schema": "suite/1", "folder": str(folder), "tasks": said}))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("task", "speed-up", "", "steps", "time"):
        table.add_column(column, justify="right" if column in ("steps", "time") else "left")
    for row in rows:
        table.add_row(row.name, *_found(row.ended))
    console = Console(highlight=False, markup=False)
    console.print(table)
    for row in rows:
        if row.trouble:
            console.print(f"{row.name}: {row.trouble}", style="yellow", soft_wrap=True)
    console.print(f"{len(rows)} tasks, a folder each in {folder}", soft_wrap=True)
    if any(row.status == INTERRUPTED for row in rows):
        print(f"go on with the same command and --out {folder}", file=sys.stderr)


def _found(ended: Ended | None) -> tuple[str, str, str, str]:
    if ended is None:
        return "", "not run", "", ""
    result, numbers = ended.result, ended.numbers
    if result.best is None:
        believed = "no kernel passed"
    else:
        believed = "confirmed" if result.confirmed else "not confirmed"
    return short(numbers.speedup), believed, str(result.steps), clock_of(result.elapsed_s)
