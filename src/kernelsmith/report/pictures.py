"""The pictures of a run, but for the archive: curve, lineage, shares, intervals, roofline."""

from collections.abc import Mapping, Sequence

from kernelsmith.domain.evaluation import Roofline, Verdict
from kernelsmith.domain.timing import Ratio, WorkloadTiming
from kernelsmith.report.markup import Markup, joined
from kernelsmith.report.numbers import Point
from kernelsmith.report.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    Segment,
    axes,
    box,
    dot,
    line,
    path,
    picture,
    ratio_scale,
    segments,
    step_scale,
    text,
)

_DRAWN = 600
"""Dots in a picture; of a longer run, every best and every n-th other step is drawn."""


def curve(points: Sequence[Point]) -> Markup:
    """Best speed-up against step, with its interval; every other candidate as a dot or a tick."""
    bests = [point for point in points if point.is_best and point.speedup]
    shown = _thinned(points)
    x, y = step_scale(points[-1].step), _speedups(shown, bests)
    drawn = [axes(x, y, x_name="step", y_name="speed-up")]
    drawn.append(line(x.start, y(1), x.end, y(1), "one"))
    if bests:
        drawn += _staircase(bests, x, y)
    failed: dict[str, list[Segment]] = {}
    for point in shown:
        if point.speedup is None and point.fate != Verdict.PASSED:
            tick = (x(point.step), y.start - 7, x(point.step), y.start - 1)
            failed.setdefault(point.fate, []).append(tick)
        elif point.speedup is not None and not point.is_best:
            drawn.append(dot(x(point.step), y(point.speedup.value), 2.2, "other", _said(point)))
    drawn += [segments(ticks, f"s-{fate}") for fate, ticks in failed.items()]
    for point in bests:
        assert point.speedup is not None
        drawn.append(dot(x(point.step), y(point.speedup.value), 4, "best", _said(point)))
    last = f"ends at {bests[-1].speedup}" if bests else "nothing passed"
    return picture(
        *drawn,
        title="Best speed-up against step",
        description=f"{len(points)} steps, {len(bests)} times a new best; {last}",
    )


def lineage(points: Sequence[Point], ancestors: Sequence[int]) -> Markup:
    """Who descends from whom, by step and speed-up; the winner's line is drawn thick."""
    timed = {point.candidate: point for point in reversed(points) if point.speedup}
    shown = {point.step: point for point in _thinned(points) if point.speedup}
    chain = [point for point in points if point.step in set(ancestors) and point.speedup]
    x, y = step_scale(points[-1].step), _speedups(list(shown.values()), chain)
    thin: list[Segment] = []
    dots = []
    for point in shown.values():
        assert point.speedup is not None
        here = (x(point.step), y(point.speedup.value))
        parent = timed.get(point.parent) if point.parent else None
        if parent is not None and parent.speedup is not None and parent.step < point.step:
            thin.append((x(parent.step), y(parent.speedup.value), *here))
        dots.append(dot(*here, 2.2, "other"))
    places = [(x(p.step), y(p.speedup.value)) for p in chain if p.speedup]
    bold = [path(places, "line")] if len(places) > 1 else []
    bold += [dot(*place, 4, "best", _said(p)) for place, p in zip(places, chain, strict=True)]
    return picture(
        axes(x, y, x_name="step", y_name="speed-up"),
        line(x.start, y(1), x.end, y(1), "one"),
        segments(thin, "kin"), *dots, *bold,
        title="Lineage",
        description=f"the winner is {len(chain)} generations from the first candidate of its line",
    )  # fmt: skip


def shares(counts: Sequence[tuple[str, float]], *, title: str, unit: str = "") -> Markup:
    """One bar, divided."""
    total = sum(count for _, count in counts) or 1.0
    drawn, at = [], 0.0
    for index, (name, count) in enumerate(counts):
        width = count / total * WIDTH
        style = f"s-{name}" if not unit else f"g{index % 6}"
        said = f"{name.replace('_', ' ')}: {count:,.4g}{unit}"
        drawn.append(box(at, 0, width - 1, 24, style, said=said))
        at += width
    parts = ", ".join(f"{name.replace('_', ' ')} {count / total:.0%}" for name, count in counts)
    return picture(*drawn, title=title, description=parts, height=24)


def interval(ratio: Ratio, every: Sequence[Ratio]) -> Markup:
    """One speed-up with its interval, on a scale that all of them share."""
    ends = [end for each in every for end in (each.low, each.high)]
    scale = ratio_scale(ends, start=4, end=176)
    return picture(
        line(scale(1), 2, scale(1), 18, "one"),
        line(scale(ratio.low), 10, scale(ratio.high), 10, "range"),
        dot(scale(ratio.value), 10, 4, "best"),
        title=str(ratio),
        description=f"the dotted line is 1, the scale {scale.low:.2g} to {scale.high:.2g}",
        width=180,
        height=20,
    )


def times(timed: WorkloadTiming, roofline: Roofline | None, baseline: str) -> Markup:
    """Baseline, best and the floor below which nobody gets, as lengths of time."""
    rows = [(baseline, timed.baseline_us, "g4"), ("best", timed.median_us, "g0")]
    if roofline is not None:
        rows.append(("floor", roofline.floor_us, "g2"))
    scale = Scale(low=0, high=max(us for _, us, _ in rows), start=90, end=WIDTH - 90)
    drawn = []
    for index, (name, us, style) in enumerate(rows):
        drawn.append(text(82, index * 22 + 15, name, "tick end"))
        drawn.append(box(90, index * 22 + 3, scale(us) - 90, 16, style))
        drawn.append(text(scale(us) + 6, index * 22 + 15, f"{us:,.1f} us", "tick"))
    said = ", ".join(f"{name} {us:,.1f} us" for name, us, _ in rows)
    return picture(
        *drawn, title=f"Times on {timed.workload}", description=said, height=len(rows) * 22 + 4
    )


def roof(rooflines: Sequence[Roofline], median_us: Mapping[str, float]) -> Markup | None:
    """The classic roofline, where operations are known: intensity against operations per second."""
    known = [
        (each, each.flops, each.compute_share, median_us[each.workload])
        for each in rooflines
        if each.flops and each.bytes and each.compute_share and each.bandwidth_share
        and each.workload in median_us
    ]  # fmt: skip
    if not known:
        return None
    places = [(each.workload, flops / each.bytes, flops / us / 1e3) for each, flops, _, us in known]
    bandwidth = max(each.bytes / us / 1e3 / each.bandwidth_share for each, _, _, us in known)
    peak = max(flops / us / 1e3 / share for _, flops, share, us in known if share)
    ridge = peak / bandwidth
    across = [*(intensity for _, intensity, _ in places), ridge]
    x = Scale(
        low=min(across) / 4, high=max(across) * 4, start=LEFT + 20, end=WIDTH - RIGHT, log=True
    )
    reached = min(rate for _, _, rate in places)
    y = Scale(
        low=min(reached, bandwidth * x.low) / 2, high=peak * 2,
        start=HEIGHT - BOTTOM, end=TOP, log=True,
    )  # fmt: skip
    limit = [(x(x.low), y(bandwidth * x.low)), (x(ridge), y(peak)), (x(x.high), y(peak))]
    dots = [
        joined(
            dot(x(intensity), y(rate), 5, "best", f"{name}: {rate:,.0f} GFLOP/s"),
            text(x(intensity) + 8, y(rate) + 4, name, "tick"),
        )
        for name, intensity, rate in places
    ]
    return picture(
        axes(x, y, x_name="operations per byte", y_name="GFLOP/s", unit=""),
        path(limit, "line"), *dots,
        title="Roofline",
        description=f"the roof is {bandwidth:,.0f} GB/s and {peak:,.0f} GFLOP/s as measured here; "
        + ", ".join(f"{name} reaches {rate:,.0f} GFLOP/s" for name, _, rate in places),
    )  # fmt: skip


def _speedups(shown: Sequence[Point], bests: Sequence[Point]) -> Scale:
    ends = [end for p in bests if p.speedup for end in (p.speedup.low, p.speedup.high)]
    values = [point.speedup.value for point in shown if point.speedup]
    top = max([1.0, *ends, *values])
    # one candidate a thousand times too slow must not flatten the picture
    return ratio_scale([max(each, top / 30) for each in ends + values],
                       start=HEIGHT - BOTTOM, end=TOP)  # fmt: skip


def _staircase(bests: Sequence[Point], x: Scale, y: Scale) -> list[Markup]:
    value, low, high = [], [], []
    for index, point in enumerate(bests):
        ratio = point.speedup
        assert ratio is not None
        end = x(bests[index + 1].step) if index + 1 < len(bests) else x.end
        for at in (x(point.step), end):
            value.append((at, y(ratio.value)))
            low.append((at, y(ratio.low)))
            high.append((at, y(ratio.high)))
    return [path([*high, *reversed(low)], "band", closed=True), path(value, "line")]


def _said(point: Point) -> str:
    gain = f", {point.gain.value:.2f}x its parent" if point.gain else ""
    return f"step {point.step}: {point.speedup}{gain}; {point.proposer}"


def _thinned(points: Sequence[Point]) -> list[Point]:
    every = max(1, -(-len(points) // _DRAWN))
    return [point for point in points if point.is_best or point.step % every == 0]
