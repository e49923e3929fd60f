"""An evaluation as a card that a person reads at a glance."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelsmith.domain.evaluation import Evaluation, Kernel, LabelName, Roofline, Verdict
from kernelsmith.domain.timing import CallTiming, Timing, WorkloadTiming

_COLOURS = {Verdict.PASSED: "green", Verdict.CHEATED: "magenta", Verdict.REFUSED: "magenta"}
_GOOD = {LabelName.ROBUST}
_LAUNCHES = {"calls": "launches", "graph": "graph replays", "events": "launches between events"}
_NAME = 44
"""How much of a kernel's name fits beside its numbers."""
_SHOWN = 8
"""Kernels in the table; the rest is counted."""


def print_card(evaluation: Evaluation, title: str) -> None:
    """Write the card to standard output."""
    colour = _COLOURS.get(evaluation.verdict, "red")
    parts: list[object] = [_headline(evaluation, colour)]
    if evaluation.message:
        parts.append(Text(evaluation.message))
    if evaluation.timing is not None:
        parts.append(_timings(evaluation.timing))
    if evaluation.kernels:
        parts += _kernels(evaluation.kernels)
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
        if call := timing.call:
            text.append(f"\n{'':{len(evaluation.verdict.value)}}   {call.value:.3f}x", style="bold")
            text.append(f" by plain calls, 95 % interval {call.low:.3f} to {call.high:.3f}")
    elif evaluation.has(LabelName.UNTIMED):
        text.append(" (not timed)")
    return text


def _timings(timing: Timing) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("workload", "baseline", "candidate", "speed-up", "interval", "samples"):
        table.add_column(name, justify="left" if name in ("workload", "samples") else "right")
    for each in timing.workloads:
        dropped = f", {each.dropped} dropped" if each.dropped else ""
        table.add_row(
            each.workload, *_numbers(each),
            f"{each.samples} x {each.launches} {_LAUNCHES[each.mode]} in {len(each.pairs)} process "
            f"pairs{dropped}",
        )  # fmt: skip
        if call := each.call:
            samples = sum(len(pair.candidate_us) for pair in call.pairs)
            table.add_row("", *_numbers(call), f"{samples} x {call.launches} plain calls")
    return table


def _numbers(each: WorkloadTiming | CallTiming) -> tuple[str, ...]:
    return (
        f"{each.baseline_us:,.1f} us",
        f"{each.median_us:,.1f} us",
        f"{each.speedup.value:.3f}x",
        f"{each.speedup.low:.3f} to {each.speedup.high:.3f}",
    )


def _kernels(kernels: Sequence[Kernel]) -> list[object]:
    """Draw the kernels with what holds them back; more than a screen of them is only counted."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("kernel", no_wrap=True)
    for name in ("launches", "time", "regs", "spills", "shared"):
        table.add_column(name, justify="right")
    table.add_column("precision")
    for each in kernels[:_SHOWN]:
        table.add_row(
            _shortened(each.name if each.own else f"library: {each.name}", _NAME),
            str(each.launches),
            "" if each.share is None else f"{each.share:.0%}",
            "" if each.registers is None else str(each.registers),
            Text("" if each.spills is None else f"{each.spills} B", "red" if each.spills else ""),
            "" if each.shared_bytes is None else _kib(each.shared_bytes),
            each.precision,
            style="" if each.own else "dim",
        )
    rest = len(kernels) - _SHOWN
    return [table] if rest <= 0 else [table, Text(f"and {rest} more kernels", style="dim")]


def _kib(count: int) -> str:
    return f"{count} B" if count < 1024 else f"{count / 1024:.0f} KiB"


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _roofline(each: Roofline) -> str:
    """State one workload's distance to the device's limits."""
    said = (
        f"{each.workload}: {each.bandwidth_share:.0%} of the bandwidth measured here "
        f"({each.bytes / 1e6:,.1f} MB at least)"
    )
    if each.compute_share is not None and each.flops is not None:
        said += f", {each.compute_share:.0%} of the peak ({each.flops / 1e9:,.2f} GFLOP)"
    return f"{said}; the floor is {each.floor_us:,.1f} us"


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
    for kernel in evaluation.kernels:
        if kernel.config:
            table.add_row("tuned", f"{kernel.name}: {kernel.config}")
    for roofline in evaluation.rooflines:
        table.add_row("roofline", _roofline(roofline))
    for label in evaluation.labels:
        style = "green" if label.name in _GOOD else "yellow"
        reason = f": {label.reason}" if label.reason else ""
        table.add_row("label", Text(f"{label.name.value}{reason}", style=style))
    device = evaluation.device
    versions = ", ".join(f"{name} {version}" for name, version in device.versions)
    table.add_row("device", f"{device}; {versions}" if versions else str(device))
    if evaluation.device_log:
        log = ", ".join(f"{name} {value}" for name, value in evaluation.device_log)
        table.add_row("while timed", log)
    table.add_row("sandbox", device.sandbox)
    spent = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in evaluation.spent)
    table.add_row("spent", spent)
    if evaluation.output.strip():
        table.add_row("it printed", evaluation.output.strip()[-400:])
    return table
