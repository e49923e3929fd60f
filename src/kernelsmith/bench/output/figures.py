"""The pictures of a bench: best against step, speed-ups, groups, and what few steps give."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from kernelsmith.bench.numbers.curves import Curve
from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.numbers.metrics import Summary, by_task
from kernelsmith.bench.numbers.scores import Measure, fast, log_ratio
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.bench.record import Record
from kernelsmith.report.markup import Markup, joined
from kernelsmith.report.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    axes,
    box,
    dot,
    line,
    path,
    picture,
    ratio_scale,
    text,
)

COLOURS = 6
"""Lines that look different; further systems begin again."""
_TALL = HEIGHT + 80
_NAMES = 150.0
"""Room for the names at the right of lines."""
_ROW, _CELL, _SIDE = 46.0, 26.0, 150.0

STYLE = """
.c0,.c1,.c2,.c3,.c4,.c5{stroke-width:2}
.c0{stroke:var(--accent)}.c1{stroke:var(--g3);stroke-dasharray:7 3}
.c2{stroke:var(--good);stroke-dasharray:2 3}.c3{stroke:var(--odd);stroke-dasharray:9 3 2 3}
.c4{stroke:var(--bad);stroke-dasharray:12 4}.c5{stroke:var(--dim);stroke-dasharray:4 2}
svg .b0,svg .b1,svg .b2,svg .b3,svg .b4,svg .b5{stroke:none;fill-opacity:.13}
svg .b0,.d0{fill:var(--accent)}svg .b1,.d1{fill:var(--g3)}svg .b2,.d2{fill:var(--good)}
svg .b3,.d3{fill:var(--odd)}svg .b4,.d4{fill:var(--bad)}svg .b5,.d5{fill:var(--dim)}
.faint{fill-opacity:.35}svg .said{fill:var(--fg)}
.up{fill:var(--good)}.down{fill:var(--bad)}
""".strip()


def best_against_step(curves: Sequence[Curve], order: Sequence[str]) -> Markup:
    """The paper's figure 1: geometric mean of the best so far, with bands, a line a system."""
    last = max(len(curve.best) for curve in curves)
    ends = [end for curve in curves for each in curve.best for end in _ends(each)]
    x = Scale(low=0, high=last, start=LEFT, end=WIDTH - RIGHT - _NAMES)
    y = ratio_scale(ends, start=_TALL - BOTTOM, end=TOP)
    drawn = [axes(x, y, x_name="step", y_name="best so far, geometric mean")]
    drawn.append(line(x.start, y(1), x.end, y(1), "one"))
    labels = []
    for curve in curves:
        index = order.index(curve.system)
        steps = range(1, len(curve.best) + 1)
        drawn += _banded([x(step) for step in steps], curve.best, y, index)
        final = curve.final
        if final is not None:
            at = x(len(curve.best))
            said = f"{curve.system}, winners judged again: {_figure(final)}"
            drawn.append(dot(at, y(final.value), 4, f"d{index % COLOURS}", said))
        labels.append((y(curve.best[-1].value), f"{curve.system} {curve.best[-1].value:.2f}x"))
    drawn += _named(labels, x.end + 8)
    words = ", ".join(
        f"{curve.system} reaches {_figure(curve.best[-1])} after {len(curve.best)} steps "
        f"on {curve.tasks} tasks"
        for curve in curves
    )
    return picture(
        *drawn, title="Best speed-up against step", height=_TALL,
        description=f"{words}; bands are 95 % intervals over tasks and seeds",
    )  # fmt: skip


def cost_quality(found: Findings) -> Markup | None:
    """Share of the whole search's gain against steps, with bands."""
    lines = [
        (name, [each for each in search.reached if each.share is not None])
        for name, search in found.searches.items()
    ]
    lines = [(name, own) for name, own in lines if len(own) > 1]
    if not lines:
        return None
    last = max(own[-1].steps for _, own in lines)
    x = Scale(low=1, high=last, start=LEFT, end=WIDTH - RIGHT - _NAMES, log=last > 4)
    y = Scale(low=0, high=110, start=HEIGHT - BOTTOM, end=TOP)
    drawn = [axes(x, y, x_name="steps", y_name="share of the gain", unit=" %")]
    labels, words = [], []
    for name, own in lines:
        index = found.systems.index(name)
        shares = [_scaled(each.share, 100) for each in own if each.share is not None]
        places = [x(each.steps) for each in own]
        drawn += _banded(places, shares, y, index)
        for at, each, share in zip(places, own, shares, strict=True):
            cost = "" if each.usd is None else f", ${each.usd:.2f}"
            said = f"{name}: {share.value:.0f} % after {each.steps} steps{cost}"
            drawn.append(dot(at, y(share.value), 3.5, f"d{index % COLOURS}", said))
        half = next((e.steps for e, s in zip(own, shares, strict=True) if s.value >= 50), last)
        labels.append((y(shares[len(shares) // 2].value), name))
        words.append(f"{name} has half of its gain by step {half}")
    return picture(
        *drawn, *_key([name for name, _ in lines], found.systems, x.end + 12),
        title="What few steps give of the whole search's gain",
        description="; ".join(words),
    )  # fmt: skip


def profile(
    systems: Mapping[str, Sequence[Record]], measure: Measure, order: Sequence[str]
) -> Markup:
    """fast_p for every p: the share of tasks with a right kernel more than p times as fast."""
    values = [v for own in systems.values() for r in own if (v := _log(r, measure)) is not None]
    # ends that a single outlier does not set
    high = min(max([2.0, *(math.exp(v) * 1.2 for v in values)]), 100.0)
    x = Scale(low=0.25, high=high, start=LEFT, end=WIDTH - RIGHT - _NAMES, log=True)
    y = Scale(low=0, high=110, start=HEIGHT - BOTTOM, end=TOP)
    drawn = [axes(x, y, x_name="p", y_name="share of tasks faster than p times", unit=" %")]
    drawn.append(line(x(1), y.start, x(1), y.end, "one"))
    words = []
    for name, own in systems.items():
        index = order.index(name)
        tasks = by_task(own)
        steps = [0.25 * (high / 0.25) ** (i / 160) for i in range(161)]
        places = [(x(p), y(100 * _share_above(tasks, p, measure))) for p in steps]
        drawn.append(path(places, f"c{index % COLOURS}"))
        at = ", ".join(f"{100 * _share_above(tasks, p, measure):.0f} % above {p:g}" for p in (1, 2))
        words.append(f"{name}: {at}")
    return picture(
        *drawn, *_key(list(systems), order, x.end + 12),
        title="fast_p for every p", description="; ".join(words),
    )  # fmt: skip


def distribution(
    systems: Mapping[str, Sequence[Record]], measure: Measure, order: Sequence[str]
) -> Markup | None:
    """A row a system: a dot a task, quartiles as a box, the median as a line."""
    rows = {
        name: [(entry, v) for entry, records in by_task(own).items()
               if (v := _task_value(records, measure)) is not None]
        for name, own in systems.items()
    }  # fmt: skip
    rows = {name: values for name, values in rows.items() if values}
    if not rows:
        return None
    every = [math.exp(v) for values in rows.values() for _, v in values]
    x = ratio_scale(every, start=_SIDE, end=WIDTH - RIGHT)
    height = TOP + _ROW * len(rows)
    y = Scale(low=0, high=1, start=height, end=TOP)
    drawn = [_x_axis(x, height), line(x(1), y.start, x(1), y.end, "one")]
    words = []
    for index, (name, values) in enumerate(rows.items()):
        middle = TOP + _ROW * (index + 0.5)
        style = f"d{order.index(name) % COLOURS}"
        ranked = sorted(v for _, v in values)
        first, median, third = (math.exp(_at(ranked, share)) for share in (0.25, 0.5, 0.75))
        drawn.append(text(_SIDE - 10, middle + 4, _short(name), "said end"))
        drawn.append(
            box(x(first), middle - 11, x(third) - x(first), 22, f"{style} faint",
                said=f"{name}: quartiles {first:.2f} to {third:.2f}")
        )  # fmt: skip
        for number, (entry, value) in enumerate(values):
            # spread over the row by the order of tasks, so that equal ones do not hide each other
            offset = ((number * 7) % 13 - 6) * 1.6
            said = f"{name}, {entry}: {math.exp(value):.3f}x"
            drawn.append(dot(x(math.exp(value)), middle + offset, 2.2, style, said))
        drawn.append(line(x(median), middle - 14, x(median), middle + 14, "axis"))
        below = sum(v < 0 for _, v in values)
        words.append(
            f"{name}: median {median:.2f}, quartiles {first:.2f} and {third:.2f}, "
            f"{below} of {len(values)} slower than the baseline"
        )
    return picture(
        *drawn, title=f"Speed-ups of winners {measure}", description="; ".join(words),
        height=height + BOTTOM,
    )  # fmt: skip


def heat(summaries: Sequence[Summary], grouping: str) -> Markup | None:
    """Groups down, systems across: correctness as the number, speed-up as number and colour."""
    groups = sorted({each.group for each in summaries})
    systems = list(dict.fromkeys(each.system for each in summaries))
    if len(groups) < 2:
        return None
    known = {(each.group, each.system): each for each in summaries}
    left = 180.0
    wide = min(200.0, (WIDTH - left - RIGHT) / len(systems))
    over = 26.0
    drawn = []
    for column, system in enumerate(systems):
        drawn.append(text(left + (column + 0.5) * wide, over - 9, _short(system), "said middle"))
    for row, group in enumerate(groups):
        top = over + row * _CELL
        drawn.append(text(left - 8, top + 17, _short(group, 26), "said end"))
        for column, system in enumerate(systems):
            drawn.append(_heated(known.get((group, system)), left + column * wide, top, wide))
    return picture(
        *drawn,
        title=f"By {grouping}",
        description=_heat_words(summaries, grouping),
        height=over + len(groups) * _CELL + 6,
    )


def _heated(summary: Summary | None, left: float, top: float, wide: float) -> Markup:
    empty = box(left + 1, top + 1, wide - 2, _CELL - 2, "empty")
    if summary is None:
        return empty
    ratio, right = summary.get("geometric"), summary["correct"].value
    shown = "nothing passed" if ratio is None else f"{ratio.value:.2f}x"
    said = f"{summary.group}, {summary.system}: {shown}, {right:.0%} correct, {summary.tasks} tasks"
    filled = Markup()
    if ratio is not None:
        depth = min(1.0, abs(math.log(ratio.value)) / math.log(4))
        filled = box(
            left + 1, top + 1, wide - 2, _CELL - 2, "up" if ratio.value >= 1 else "down",
            said=said, opacity=0.06 + 0.5 * depth,
        )  # fmt: skip
    label = f"{shown if ratio is not None else '-'}  ({right:.0%})"
    return joined(empty, filled, text(left + wide / 2, top + 17, label, "said middle"))


def _heat_words(summaries: Sequence[Summary], grouping: str) -> str:
    timed = [each for each in summaries if each.get("geometric") is not None]
    if not timed:
        return f"no winner in any {grouping}"
    best = max(timed, key=lambda each: each["geometric"].value)
    worst = min(timed, key=lambda each: each["geometric"].value)
    return (
        f"geometric mean speed-up and share correct; highest {best.system} on {best.group}, "
        f"{best['geometric'].value:.2f}x; lowest {worst.system} on {worst.group}, "
        f"{worst['geometric'].value:.2f}x"
    )


def _banded(
    places: Sequence[float], values: Sequence[Estimate], y: Callable[[float], float], index: int
) -> list[Markup]:
    ends = [_ends(each) for each in values]
    high = [(at, y(end[1])) for at, end in zip(places, ends, strict=True)]
    low = [(at, y(end[0])) for at, end in zip(places, ends, strict=True)]
    middle = [(at, y(each.value)) for at, each in zip(places, values, strict=True)]
    style = index % COLOURS
    return [
        path([*high, *reversed(low)], f"b{style}", closed=True),
        path(middle if len(middle) > 1 else middle * 2, f"c{style}"),
    ]


def _named(labels: Sequence[tuple[float, str]], left: float) -> list[Markup]:
    """Names beside the ends of lines, moved apart where they would cover each other."""
    drawn, last = [], -math.inf
    for at, name in sorted(labels):
        last = max(at, last + 14)
        drawn.append(text(left, last + 4, _short(name, 24), "said"))
    return drawn


def _key(names: Sequence[str], order: Sequence[str], left: float) -> list[Markup]:
    """Which line is whose; a system looks the same in every picture."""
    return [
        joined(
            line(left, at, left + 26, at, f"c{order.index(name) % COLOURS}"),
            text(left + 32, at + 4, _short(name), "said"),
        )
        for name, at in zip(names, itertools.count(TOP + 12, 18), strict=False)
    ]


def _x_axis(x: Scale, base: float) -> Markup:
    marks = [
        joined(line(x(v), TOP, x(v), base, "grid"), text(x(v), base + 16, f"{v:g}x", "tick middle"))
        for v in x.ticks
    ]
    return joined(*marks, line(x.start, base, x.end, base, "axis"))


def _share_above(tasks: Mapping[str, Sequence[Record]], p: float, measure: Measure) -> float:
    score = fast(p)
    means = []
    for own in tasks.values():
        values = [v for record in own if not math.isnan(v := score(record, measure))]
        if values:
            means.append(sum(values) / len(values))
    return sum(means) / len(means) if means else 0.0


def _log(record: Record, measure: Measure) -> float | None:
    value = log_ratio(record, measure)
    return None if math.isnan(value) else value


def _task_value(records: Sequence[Record], measure: Measure) -> float | None:
    values = [v for record in records if (v := _log(record, measure)) is not None]
    return sum(values) / len(values) if values else None


def _at(ranked: Sequence[float], share: float) -> float:
    place = share * (len(ranked) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ranked) - 1)
    return ranked[below] + (place - below) * (ranked[above] - ranked[below])


def _ends(each: Estimate) -> tuple[float, float]:
    if each.low is None or each.high is None:
        return each.value, each.value
    return each.low, each.high


def _scaled(each: Estimate | None, by: float) -> Estimate:
    assert each is not None
    low, high = _ends(each)
    return Estimate(value=each.value * by, low=low * by, high=high * by, tasks=each.tasks)


def _figure(each: Estimate) -> str:
    if each.low is None or each.high is None:
        return f"{each.value:.2f}x"
    return f"{each.value:.2f}x [{each.low:.2f}, {each.high:.2f}]"


def _short(name: str, most: int = 20) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}…"
