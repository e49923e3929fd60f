"""What the clock said of the winner, and how far that is from what the device can do."""

from collections.abc import Sequence

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.report import pictures
from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.numbers import Numbers
from kernelsmith.report.tables import Cellular, figure, table

_MODES = {"calls": "launches", "graph": "graph replays", "events": "launches between events"}


def timing_section(numbers: Numbers) -> Markup | None:
    """One row a workload with its interval; accuracy and labels below."""
    evaluation = numbers.evaluation
    if evaluation is None or evaluation.timing is None:
        return None
    timing = evaluation.timing
    every = [each.speedup for each in timing.workloads] + [timing.speedup]
    every += [each.call.speedup for each in timing.workloads if each.call]
    rows: list[Sequence[Cellular]] = []
    for each in timing.workloads:
        ratio = each.speedup
        dropped = f", {each.dropped} dropped" if each.dropped else ""
        rows.append(
            (each.workload, f"{each.baseline_us:,.1f}", f"{each.median_us:,.1f}",
             f"{ratio.value:.3f}x", f"{ratio.low:.3f} to {ratio.high:.3f}",
             pictures.interval(ratio, every),
             f"{each.samples} x {each.launches} {_MODES[each.mode]}, {len(each.pairs)} "
             f"pairs{dropped}")
        )  # fmt: skip
        if call := each.call:
            rows.append(
                ("... by plain calls", f"{call.baseline_us:,.1f}", f"{call.median_us:,.1f}",
                 f"{call.speedup.value:.3f}x", f"{call.speedup.low:.3f} to {call.speedup.high:.3f}",
                 pictures.interval(call.speedup, every), f"{call.launches} calls a sample")
            )  # fmt: skip
    if len(timing.workloads) > 1:
        ratio = timing.speedup
        rows.append(
            ("geometric mean", "", "", f"{ratio.value:.3f}x",
             f"{ratio.low:.3f} to {ratio.high:.3f}", pictures.interval(ratio, every), "")
        )  # fmt: skip
    whence = (
        "Measured once more at the end, with fresh seeds."
        if numbers.is_confirmed
        else "From the evaluation that made it the best; it was not measured again."
    )
    return joined(
        tag("p", whence, class_="dim"),
        table(
            ("workload", f"{timing.baseline}, us", "best, us", "speed-up", "95 % interval", "",
             "samples"),
            rows, numeric=(1, 2, 3, 4),
        ),
        _right(evaluation),
    )  # fmt: skip


def roofline_section(numbers: Numbers) -> Markup | None:
    """Times beside the floor, shares of the device's limits, and the classic picture."""
    evaluation = numbers.evaluation
    if evaluation is None or evaluation.timing is None:
        return None
    timing = evaluation.timing
    floors = {each.workload: each for each in evaluation.rooflines}
    drawn: list[Markup] = []
    for timed in timing.workloads:
        shown = pictures.times(timed, floors.get(timed.workload), timing.baseline)
        drawn.append(figure(shown, timed.workload))
    if not floors:
        said = "No floor was measured here: bandwidth and peak are not known for this device."
        return joined(*drawn, tag("p", said, class_="dim"))
    medians = {each.workload: each.median_us for each in timing.workloads}
    rows: list[Sequence[Cellular]] = [
        (each.workload, f"{each.bytes / 1e6:,.2f}", _giga(each.flops), f"{each.floor_us:,.1f}",
         _share(each.floor_us / medians[each.workload] if each.workload in medians else None),
         _share(each.bandwidth_share), _share(each.compute_share))
        for each in evaluation.rooflines
    ]  # fmt: skip
    classic = pictures.roof(evaluation.rooflines, medians)
    return joined(
        *drawn,
        *([figure(classic)] if classic else []),
        table(
            ("workload", "MB at least", "GFLOP", "floor, us", "floor over best", "of bandwidth",
             "of peak"),
            rows, numeric=range(1, 7),
            caption="How close the winner is to the limits measured on this device",
        ),
    )  # fmt: skip


def _right(evaluation: Evaluation) -> Markup:
    parts: list[Markup] = []
    if evaluation.accuracy:
        rows: list[Sequence[Cellular]] = [
            (each.workload, f"{each.error:.2g}", f"{each.budget:.2g}", f"{each.eager_error:.2g}",
             each.trials)
            for each in evaluation.accuracy
        ]  # fmt: skip
        parts.append(
            table(("workload", "worst error", "allowed", "eager's", "trials"), rows,
                  numeric=(1, 2, 3, 4), caption="How right it is, against float64")
        )  # fmt: skip
    if evaluation.kernels:
        rows = [
            (each.name[:80], "own" if each.own else "library", each.launches, _share(each.share),
             "" if each.registers is None else each.registers,
             "" if each.spills is None else each.spills, each.config)
            for each in evaluation.kernels[:16]
        ]  # fmt: skip
        parts.append(
            table(("kernel", "whose", "launches", "time", "registers", "spills", "tuned to"), rows,
                  numeric=(2, 3, 4, 5), caption="What runs on the device")
        )  # fmt: skip
    said = [f"{each.name.value}: {each.reason or 'yes'}" for each in evaluation.labels]
    if found := evaluation.coverage:
        said.append(f"own code: {found.own:.0%} of the compute time ({found.samples} samples)")
    parts += [tag("p", each) for each in said]
    return joined(*parts)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def _giga(flops: int | None) -> str:
    return "" if flops is None else f"{flops / 1e9:,.3f}"
