"""``kernelsmith diff RUN A B``: what changed between two candidates of a run."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError

if TYPE_CHECKING:
    from kernelsmith.domain.trajectory import Step
    from kernelsmith.report.numbers import Numbers

_SHORTEST = 4
"""Characters of a candidate's id that are enough, if they are unique."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    where = (
        "a step, the start of a candidate's id, best, parent (of the best) or first (of its line)"
    )
    parser.add_argument("a", metavar="A", help=where)
    parser.add_argument("b", metavar="B", help="the same")


def _run(args: argparse.Namespace) -> int:
    from rich.console import Console
    from rich.text import Text

    from kernelsmith.cli.runs import folder_of, read_run, visible
    from kernelsmith.report.diffs import unified
    from kernelsmith.report.numbers import numbers_of

    recorded = read_run(folder_of(args.folder))
    numbers = numbers_of(recorded)
    before, after = (find(each, recorded.steps, numbers) for each in (args.a, args.b))
    assert before.candidate is not None
    assert after.candidate is not None
    diff = unified(
        before.candidate.source, after.candidate.source, names=(_name(before), _name(after))
    )
    if not diff:
        print(f"{_name(before)} and {_name(after)} are the same", file=sys.stderr)
        return 0
    if not sys.stdout.isatty():
        print(visible(diff))
        return 0
    colours = {"+": "green", "-": "red", "@": "cyan"}
    shown = Text()
    for line in visible(diff).split("\n"):
        shown.append(line + "\n", style=colours.get(line[:1], ""))
    Console(highlight=False, soft_wrap=True).print(shown, end="")
    return 0


def find(said: str, steps: "Sequence[Step]", numbers: "Numbers") -> "Step":
    """Find the step that wrote a candidate.

    Raises:
        UsageError: There is none, several fit, or the step wrote no candidate.
    """
    if said in ("best", "parent", "first"):
        return _of_lineage(said, numbers)
    if said.isdigit() and len(said) < _SHORTEST + 2:
        number = int(said)
        if number >= len(steps):
            raise UsageError(f"no step {number}; this run has {len(steps)} steps, counted from 0")
        if steps[number].candidate is None:
            raise UsageError(
                f"step {number} wrote no candidate: {steps[number].proposal.rejection}"
            )
        return steps[number]
    found = {
        step.candidate.id: step
        for step in reversed(steps)
        if step.candidate is not None and step.candidate.id.startswith(said)
    }
    if len(said) < _SHORTEST or not found:
        raise UsageError(
            f"no candidate {said!r}; name a step, at least {_SHORTEST} characters of a candidate's "
            f"id, best, parent or first"
        )
    if len(found) > 1:
        raise UsageError(f"{said!r} fits several candidates: {', '.join(sorted(found))}")
    return next(iter(found.values()))


def _of_lineage(said: str, numbers: "Numbers") -> "Step":
    line = numbers.lineage
    if not line:
        raise UsageError("nothing has passed in this run, so there is no best")
    if said == "parent" and len(line) < 2:
        raise UsageError("the best has no parent in this run: it was written from the reference")
    return line[{"best": -1, "parent": -2, "first": 0}[said]]


def _name(step: "Step") -> str:
    assert step.candidate is not None
    return f"step {step.brief.number}, {step.candidate.id}"


COMMAND = Command("diff", "Show what changed between two candidates of a run.", _arguments, _run)
