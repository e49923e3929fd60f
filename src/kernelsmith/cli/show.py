"""``kernelsmith show RUN``: a run at a glance, or one of its steps in full."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from kernelsmith.cli.command import Command
from kernelsmith.errors import UsageError

if TYPE_CHECKING:
    from kernelsmith.domain.trajectory import Exemplar, Step
    from kernelsmith.report.numbers import Numbers
    from kernelsmith.run.recorded import Recorded

_ROWS = 12


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help="the run's folder")
    parser.add_argument("--step", type=int, metavar="N", help="brief, reply and verdict of a step")
    parser.add_argument("--report", action="store_true", help="write report.html anew")
    parser.add_argument("--json", action="store_true", help="one line of JSON")


def _run(args: argparse.Namespace) -> int:
    from kernelsmith.cli.runs import folder_of, read_run, write_report
    from kernelsmith.report.numbers import numbers_of

    folder = folder_of(args.folder)
    recorded = read_run(folder)
    if args.step is not None:
        return _show_step(recorded, args.step, as_json=args.json)
    numbers = numbers_of(recorded)
    if args.report:
        print(write_report(folder, recorded, numbers))
        return 0
    if args.json:
        print(json.dumps(_summary(recorded, numbers)))
    else:
        _print_summary(folder, recorded, numbers)
    return 0


def _summary(recorded: "Recorded", numbers: "Numbers") -> dict[str, object]:
    ratio, winner = numbers.speedup, numbers.winner
    return {
        "schema": "run/1",
        "task": recorded.header.task.name,
        "backend": recorded.config.backend,
        "device": str(recorded.header.device),
        "steps": len(numbers.points),
        "of": recorded.config.budget.steps,
        "speedup": None
        if ratio is None
        else {"value": ratio.value, "low": ratio.low, "high": ratio.high},
        "confirmed": numbers.is_confirmed,
        "best_step": winner.brief.number if winner else None,
        "verdicts": dict(numbers.tally),
        "lineage": [step.brief.number for step in numbers.lineage],
        "tokens": numbers.tokens,
        "usd": numbers.usd,
        "seconds": numbers.elapsed_s,
    }


def _print_summary(folder: Path, recorded: "Recorded", numbers: "Numbers") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from kernelsmith.cli.live import clock_of, cost_of, short, sparkline
    from kernelsmith.cli.runs import visible

    console = Console(highlight=False, markup=False)
    config = recorded.config
    console.print(f"{recorded.header.task.name} on {recorded.header.device}", style="bold")
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", no_wrap=True)
    facts.add_column(overflow="fold")
    found = "confirmed" if numbers.is_confirmed else "not confirmed"
    if numbers.speedup is not None and numbers.winner is not None:
        facts.add_row(
            "best", f"{short(numbers.speedup)} at step {numbers.winner.brief.number}, {found}"
        )
        curve = tuple((point.step, point.speedup) for point in numbers.bests if point.speedup)
        facts.add_row("curve", Text(sparkline(curve, len(numbers.points)), style="green"))
    else:
        facts.add_row("best", "right, not timed" if numbers.winner else "nothing passed")
    ends = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in numbers.tally)
    facts.add_row("steps", f"{len(numbers.points)} of {config.budget.steps}: {ends or 'none yet'}")
    facts.add_row("archive", f"{len(numbers.cells)} cells on {config.search.islands} islands")
    facts.add_row("cost", cost_of(numbers.tokens or 0, numbers.usd))
    facts.add_row("time", clock_of(numbers.elapsed_s))
    facts.add_row("folder", str(folder))
    console.print(facts)
    if numbers.bests:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for name in ("step", "speed-up", "over parent", "by", "what it tried"):
            table.add_column(name, justify="right" if name in ("step", "over parent") else "left")
        for point in numbers.bests[-_ROWS:]:
            gain = f"{point.gain.value:.3f}x" if point.gain else ""
            words = (point.proposer, point.note)
            table.add_row(
                str(point.step),
                short(point.speedup),
                gain,
                *(Text(visible(each)) for each in words),
            )
        console.print(table)


def _show_step(recorded: "Recorded", number: int, *, as_json: bool) -> int:
    from kernelsmith.domain.codec import dumps

    if not 0 <= number < len(recorded.steps):
        raise UsageError(
            f"no step {number}; this run has {len(recorded.steps)} steps, counted from 0"
        )
    step = recorded.steps[number]
    if as_json:
        print(dumps(step))
    else:
        _print_step(step)
    return 0


def _print_step(step: "Step") -> None:
    from rich.console import Console

    from kernelsmith.cli.card import print_card
    from kernelsmith.cli.runs import visible

    console = Console(highlight=False, markup=False, soft_wrap=True)

    def heading(text: str) -> None:
        console.print(f"\n{text}", style="bold")

    brief, proposal = step.brief, step.proposal
    console.print(f"step {brief.number} of {brief.task.name}", style="bold")
    console.print(
        f"island {brief.island}, seed {brief.seed}, {step.seconds:.1f} s from ask to tell"
    )
    heading("brief")
    console.print(f"parent: {_said(brief.parent) if brief.parent else 'none, only the reference'}")
    for name, exemplars in (("shown", brief.inspirations), ("failure", brief.failures)):
        for each in exemplars:
            console.print(f"{name}: {_said(each)}")
    for message in proposal.messages:
        heading(f"message ({message.role})")
        console.print(visible(message.content))
    if proposal.reply:
        heading("reply")
        console.print(visible(proposal.reply))
    heading("proposal")
    console.print(
        visible(f"by {proposal.proposer or 'nobody named'}: {proposal.note or 'no note'}")
    )
    if proposal.rejection:
        console.print(visible(f"rejected: {proposal.rejection}"))
    if step.candidate is not None:
        heading(f"candidate {step.candidate.id}")
        console.print(visible(step.candidate.source))
    heading("what became of it")
    console.print(_placed(step))
    if step.gain is not None:
        console.print(f"beside its parent: {step.gain}")
    if step.lost:
        console.print(visible(f"lost: {step.lost}"))
    if step.evaluation is not None:
        print_card(step.evaluation, f"step {brief.number}")


def _said(exemplar: "Exemplar") -> str:
    evaluation = exemplar.evaluation
    timing = evaluation.timing
    speed = f", {timing.speedup}" if timing else ""
    return f"{exemplar.candidate.id} ({exemplar.role.value}): {evaluation.verdict.value}{speed}"


def _placed(step: "Step") -> str:
    placement = step.placement
    cell = f", cell {placement.cell}" if placement.cell else ""
    score = f", score {placement.score:.4g}" if placement.score is not None else ""
    best = ", the best of the run then" if placement.is_best else ""
    outcome = placement.outcome.value.replace("_", " ")
    return f"{outcome}, island {placement.island}{cell}{score}{best}"


COMMAND = Command("show", "Show a run at a glance, or one of its steps in full.", _arguments, _run)
