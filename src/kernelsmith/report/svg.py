"""What pictures are made of: scales, axes, frames."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.report.markup import Markup, joined, number, tag

WIDTH, HEIGHT = 900.0, 280.0
LEFT, RIGHT, TOP, BOTTOM = 52.0, 14.0, 14.0, 34.0

Segment = tuple[float, float, float, float]
"""A line from one place to another: x, y, x, y."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """From values to places along one axis."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high or (self.log and self.low <= 0):
            raise ValueError(f"a scale spans something; got {self.low} to {self.high}")

    def __call__(self, value: float) -> float:
        """The place of a value; what lies outside is put on the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    @property
    def ticks(self) -> list[float]:
        """Round values on the axis, about five."""
        if self.log:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            for steps in ((1, 2, 3, 5, 7), (1, 2, 5), (1,), (1,)):
                every = [step * 10.0**decade for decade in decades for step in steps]
                found = [each for each in every if self.low <= each <= self.high]
                if len(found) <= 7:
                    break
            return found[:: max(1, math.ceil(len(found) / 7))]
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def _round_step(rough: float) -> float:
    decade = 10.0 ** math.floor(math.log10(rough))
    return next(step * decade for step in (1, 2, 2.5, 5, 10) if step * decade >= rough * 0.999)


def ratio_scale(values: Sequence[float], *, start: float, end: float) -> Scale:
    """A scale for speed-ups that holds 1 and all of them; logarithmic where they span much."""
    low, high = min([1.0, *values]), max([1.0, *values])
    if high / low > 4:
        return Scale(low=low / 1.1, high=high * 1.1, start=start, end=end, log=True)
    room = max(high - low, 0.1) * 0.08
    return Scale(low=max(low - room, 0.0), high=high + room, start=start, end=end)


def step_scale(last: int) -> Scale:
    """A horizontal scale for the numbers of steps, from 0."""
    return Scale(low=0, high=max(last, 1), start=LEFT, end=WIDTH - RIGHT)


def picture(
    *parts: str, title: str, description: str, width: float = WIDTH, height: float = HEIGHT
) -> Markup:
    """A drawing with a title, and a description for whoever cannot see it."""
    return tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        *parts,
        viewBox=f"0 0 {number(width)} {number(height)}",
        role="img",
        aria_label=f"{title}. {description}",
        style=f"max-width:{number(width)}px",
    )


def axes(x: Scale, y: Scale, *, x_name: str, y_name: str, unit: str = "x") -> Markup:
    """Two axes with grid lines, numbers and names."""
    lines = []
    for value in y.ticks:
        place = y(value)
        lines.append(line(x.start, place, x.end, place, "grid"))
        lines.append(text(x.start - 6, place + 4, f"{value:g}{unit}", "tick end"))
    for value in x.ticks:
        if float(value).is_integer() or x.log:
            lines.append(line(x(value), y.start, x(value), y.start + 4, "axis"))
            lines.append(text(x(value), y.start + 16, f"{value:g}", "tick middle"))
    lines.append(line(x.start, y.start, x.end, y.start, "axis"))
    lines.append(text(x.end, y.start + 29, x_name, "tick end"))
    lines.append(text(x.start + 4, y.end + 2, y_name, "tick"))
    return joined(*lines)


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Markup:
    """A straight line."""
    return segments([(x1, y1, x2, y2)], style)


def segments(lines: Sequence[Segment], style: str) -> Markup:
    """Many straight lines of one style; nothing where there are none."""
    if not lines:
        return Markup()
    drawn = "".join(
        f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}" for x1, y1, x2, y2 in lines
    )
    return tag("path", d=drawn, class_=style)


def path(places: Sequence[tuple[float, float]], style: str, *, closed: bool = False) -> Markup:
    """A line through places."""
    drawn = "L".join(f"{number(x)} {number(y)}" for x, y in places)
    return tag("path", d=f"M{drawn}{'Z' if closed else ''}", class_=style)


def text(x: float, y: float, said: str, style: str) -> Markup:
    """Words at a place."""
    return tag("text", said, x=x, y=y, class_=style)


def dot(x: float, y: float, radius: float, style: str, said: str = "") -> Markup:
    """A filled circle that says something when pointed at."""
    inner = (tag("title", said),) if said else ()
    return tag("circle", *inner, cx=x, cy=y, r=radius, class_=style)


def box(
    x: float, y: float, width: float, height: float, style: str, *,
    said: str = "", opacity: float | None = None,
) -> Markup:  # fmt: skip
    """A filled rectangle that says something when pointed at."""
    inner = (tag("title", said),) if said else ()
    shown = None if opacity is None else f"{opacity:.2f}"
    return tag(
        "rect", *inner, x=x, y=y, width=max(width, 0.5), height=height, class_=style,
        fill_opacity=shown,
    )  # fmt: skip
