"""What a session leaves on the screen: a card, or one line of JSON; and its exit status."""

import json
import shlex
from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelsmith.cli.live import clock_of, cost_of, sparkline
from kernelsmith.cli.session import Ended
from kernelsmith.domain.codec import Json
from kernelsmith.domain.timing import Ratio
from kernelsmith.run.start import JOURNAL

SCHEMA = "optimized/1"
INTERRUPTED = 130


def report(ended: Ended, *, as_json: bool) -> int:
    """Print how it ended and return the exit status."""
    if as_json:
        print(json.dumps(to_json(ended)))
    else:
        console = Console(highlight=False)
        console.print(_card(ended))
        # Outside the frame and never broken, so that a path can be copied whole.
        for name, said in _paths(ended):
            console.print(f"{name:<9}{said}", soft_wrap=True, markup=False)
    return status(ended)


def status(ended: Ended) -> int:
    """0 there is a kernel, 1 nothing passed, 130 interrupted."""
    if ended.result.stopped:
        return INTERRUPTED
    return 0 if ended.result.best is not None else 1


def to_json(ended: Ended) -> dict[str, Json]:
    """One object that says what was found and where it lies; described in ``docs/report.md``."""
    result = ended.result
    evaluation = result.best.evaluation if result.best else None
    timing = evaluation.timing if evaluation else None
    folder = result.folder
    return {
        "schema": SCHEMA,
        "task": ended.task.name,
        "backend": ended.config.backend,
        "device": str(evaluation.device) if evaluation else None,
        "seed": ended.config.seed,
        "speedup": _ratio(timing.speedup if timing else None),
        "baseline": timing.baseline if timing else None,
        "confirmed": result.confirmed,
        "candidate": result.best.candidate.id if result.best else None,
        "labels": [label.name.value for label in evaluation.labels] if evaluation else [],
        "steps": result.steps,
        "verdicts": dict(ended.numbers.tally),
        "stop": result.stop.value,
        "tokens": result.tokens,
        "usd": result.usd,
        "seconds": round(result.elapsed_s, 3),
        "folder": str(folder),
        "best": str(folder / "best.py") if result.best else None,
        "journal": str(folder / JOURNAL),
        "report": str(ended.report),
        "resume": result.resume,
    }


def _headline(ended: Ended) -> Text:
    """The one thing to know: how much faster, and whether that was confirmed."""
    result = ended.result
    evaluation = result.best.evaluation if result.best else None
    if evaluation is None:
        said = "stopped before any kernel passed" if result.stopped else "no kernel passed"
        return Text(said, style="bold red")
    if evaluation.timing is None:
        return Text("right, but not timed on this machine", style="bold yellow")
    ratio = evaluation.timing.speedup
    text = Text(f"{ratio.value:.2f}x", style="bold green" if ratio.is_faster else "bold yellow")
    text.append(f" the speed of {evaluation.timing.baseline}", style="default")
    text.append(f", 95 % interval {ratio.low:.3f} to {ratio.high:.3f}, ", style="default")
    if result.confirmed:
        text.append("confirmed", style="green")
    else:
        text.append("not confirmed", style="yellow")
    if not ratio.is_faster:
        text.append("\nno faster kernel was found", style="yellow")
    return text


def _card(ended: Ended) -> Panel:
    result, numbers = ended.result, ended.numbers
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    curve = tuple((point.step, point.speedup) for point in numbers.bests if point.speedup)
    if curve:
        rows.add_row("curve", Text(sparkline(curve, len(numbers.points)), style="green"))
    ends = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in numbers.tally)
    rows.add_row("steps", f"{result.steps}: {ends}" if ends else "none")
    rows.add_row("ended", f"{result.reason}, after {clock_of(result.elapsed_s)}")
    if result.tokens or result.usd is not None:
        rows.add_row("cost", cost_of(result.tokens, result.usd))
    if ended.config.proposer.adapt:
        rows.add_row("adapted", f"{ended.adapted} times to its own good steps")
    if evaluation := numbers.evaluation:
        rows.add_row("device", str(evaluation.device))
        for label in evaluation.labels:
            reason = f": {label.reason}" if label.reason else ""
            rows.add_row("label", Text(f"{label.name.value}{reason}"))
    parts: list[RenderableType] = [_headline(ended), rows]
    colour = "green" if result.best is not None else "red"
    return Panel(
        Group(*parts), title=ended.task.name, title_align="left",
        border_style="yellow" if result.stopped else colour,
    )  # fmt: skip


def _paths(ended: Ended) -> Iterator[tuple[str, str]]:
    result = ended.result
    if result.best is not None:
        yield "kernel", str(result.folder / "best.py")
    yield "journal", str(result.folder / JOURNAL)
    yield "report", str(ended.report)
    yield "next", _next(ended)


def _next(ended: Ended) -> str:
    result = ended.result
    folder = shlex.quote(str(result.folder))
    if result.stopped:
        return result.resume
    if result.best is None:
        return f"kernelsmith show {folder} --step 0"
    if len(ended.numbers.lineage) > 1:
        return f"kernelsmith diff {folder} parent best"
    if ended.config.proposer.kind == "replay":
        return f"kernelsmith show {folder}"
    return f"{result.resume} --steps {max(2 * result.steps, 1)}"


def _ratio(ratio: Ratio | None) -> Json:
    if ratio is None:
        return None
    return {"value": ratio.value, "low": ratio.low, "high": ratio.high}
