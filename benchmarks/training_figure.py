"""The picture of a training: mean reward of each step, one line per selection."""

from pathlib import Path

from benchmarks.rules_figure import write_svg
from kernelsmith.report.markup import Markup
from kernelsmith.report.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    axes,
    dot,
    path,
    picture,
    text,
)

Curve = list[dict[str, float]]


def rewards(curves: dict[str, Curve], out: Path) -> None:
    """Mean reward against step; nothing where nobody was reinforced."""
    lines = {
        name.removeprefix("grpo-"): [
            (each["step"], each["mean_reward"]) for each in curve if "mean_reward" in each
        ]
        for name, curve in curves.items()
        if name.startswith("grpo-")
    }
    lines = {name: places for name, places in lines.items() if places}
    if not lines:
        return
    last = max(step for places in lines.values() for step, _ in places)
    top = max(value for places in lines.values() for _, value in places)
    low = min(0.0, *(value for places in lines.values() for _, value in places))
    x = Scale(low=0, high=max(2.0, last), start=LEFT, end=WIDTH - RIGHT - 130)
    y = Scale(low=low, high=1.1 * max(top, 0.1), start=HEIGHT - BOTTOM, end=TOP)
    drawn: list[Markup] = [axes(x, y, x_name="step", y_name="mean reward", unit="")]
    for index, (name, places) in enumerate(lines.items()):
        style = f"c{index % 4}"
        drawn.append(path([(x(step), y(value)) for step, value in places], style))
        drawn += [
            dot(x(s), y(v), 3.0, style, f"{name}: {v:.2f} at step {s:.0f}") for s, v in places
        ]
        mean = sum(value for _, value in places) / len(places)
        drawn.append(dot(x.end + 12, TOP + 20 * index + 10, 4.0, style))
        drawn.append(text(x.end + 20, TOP + 20 * index + 14, f"{name}, mean {mean:.2f}", "tick"))
    ends = [f"{name} ends at {places[-1][1]:.2f}" for name, places in lines.items()]
    made = picture(
        *drawn, title="Mean reward of each step of reinforcement, by which questions were asked",
        description="; ".join(ends),
    )  # fmt: skip
    write_svg(made, out)
