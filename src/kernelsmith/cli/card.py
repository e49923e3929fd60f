"""An evaluation as a card that a person reads at a glance."""

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelsmith.domain.evaluation import Evaluation, LabelName, Verdict
from kernelsmith.domain.timing import WorkloadTiming

_COLOURS = {Verdict.PASSED: "green", Verdict.CHEATED: "magenta", Verdict.REFUSED: "magenta"}
_GOOD = {LabelName.ROBUST}


def print_card(evaluation: Evaluation, title: str) -> None:
    """Write the card to standard output."""
    colour = _COLOURS.get(evaluation.verdict, "red")
    parts: list[object] = [_headline(evaluation, colour)]
    if evaluation.message:
        parts.append(Text(evaluation.message))
    if evaluation.timing is not None:
        parts.append(_timings(evaluation))
    parts.append(_facts(evaluation))
    Console(highlight=False).print(
        Panel(Group(*parts), title=title, border_style=colour, title_align="left")  # type: ignore[arg-type]
    )


def _headline(evaluation: Evaluation, colour: str) -> Text:
    text = Text(evaluation.verdict.value.replace("_", " ").upper(), style=f"bold {colour}")
    if timing := evaluation.timing:
        ratio = timing.speedup
        text.append(f"   {ratio.value:.3f}x", style="bold")
        text.append(f" the speed of {timing.baseline}, 95 % interval ", style="")
        text.append(f"{ratio.low:.3f} to {ratio.high:.3f}")
    return text


def _timings(evaluation: Evaluation) -> Table:
    assert evaluation.timing is not None
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("workload", "baseline", "candidate", "speed-up", "interval", "samples"):
        table.add_column(name, justify="left" if name == "workload" else "right")
    for each in evaluation.timing.workloads:
        table.add_row(*_row(each))
    return table


def _row(each: WorkloadTiming) -> tuple[str, ...]:
    dropped = f", {each.dropped} dropped" if each.dropped else ""
    return (
        each.workload,
        f"{each.baseline_us:,.1f} us",
        f"{each.median_us:,.1f} us",
        f"{each.speedup.value:.3f}x",
        f"{each.speedup.low:.3f} to {each.speedup.high:.3f}",
        f"{each.samples} x {each.launches} launches in {len(each.pairs)} process pairs{dropped}",
    )


def _facts(evaluation: Evaluation) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for each in evaluation.accuracy:
        table.add_row(
            "accuracy",
            f"{each.workload}: worst error {each.error:.2g} of {each.budget:.2g} allowed "
            f"(eager: {each.eager_error:.2g}), {each.trials} trials",
        )
    if found := evaluation.coverage:
        table.add_row("own code", f"{found.own:.0%} of the compute time ({found.samples} samples)")
    for label in evaluation.labels:
        style = "green" if label.name in _GOOD else "yellow"
        reason = f": {label.reason}" if label.reason else ""
        table.add_row("label", Text(f"{label.name.value}{reason}", style=style))
    device = evaluation.device
    versions = ", ".join(f"{name} {version}" for name, version in device.versions)
    table.add_row("device", f"{device}; {versions}" if versions else str(device))
    table.add_row("sandbox", device.sandbox)
    spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in evaluation.spent)
    table.add_row("spent", spent)
    if evaluation.output.strip():
        table.add_row("it printed", evaluation.output.strip()[-400:])
    return table
