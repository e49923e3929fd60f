"""The page of a training: curves, stage times and sample answers, in one file without scripts."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.style import STYLE
from kernelsmith.report.svg import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Scale,
    axes,
    path,
    picture,
)

METRICS, ANSWERS, PAGE = "metrics.jsonl", "answers.jsonl", "index.html"
_KL = "distance to the first policy"
_CURVES = (
    ("mean_reward", "reward", "mean over the answers of a step"),
    ("correct", "share of correct answers", "judged passed"),
    ("faster", "share faster than the parent", "beyond the interval"),
    ("gain", "speed-up over the parent", "mean over correct answers"),
    ("loss", "loss", "what each update lowers"),
    ("eval_loss", "loss on rows held back", "does it still generalise?"),
    ("kl", _KL, "KL divergence, estimated from the sampled tokens; nats per token"),
    ("completions/mean_length", "length of answers", "tokens"),
    ("entropy", "entropy", "nats per token"),
)
_STAGES = ("seconds_generating", "seconds_judging", "seconds_waiting", "seconds_updating")
_SHOWN = 40

Row = Mapping[str, object]


def write_page(folder: Path, title: str) -> Path:
    """Write ``index.html`` from what the folder holds so far."""
    metrics, answers = _lines(folder / METRICS), _lines(folder / ANSWERS)
    parts = [tag("h1", title), tag("p", _summary(metrics), class_="dim")]
    for key, name, about in _CURVES:
        points = [(step, value) for row in metrics if (value := _number(row.get(key))) is not None
                  and (step := _number(row.get("step"))) is not None]  # fmt: skip
        if len(points) > 1:
            drawn = tag("figure", _curve(points, name), tag("figcaption", about))
            parts.append(tag("section", tag("h2", name), drawn))
    if any("mean_reward" in row for row in metrics) and not any("kl" in row for row in metrics):
        why = "not measured: no reference model was loaded (watch_kl is off)"
        parts.append(tag("section", tag("h2", _KL), tag("p", why)))
    if stages := _stages(metrics):
        parts.append(tag("section", tag("h2", "Where the time goes"), stages))
    if answers:
        parts.append(tag("section", tag("h2", "The last answers"), _answers(answers[-_SHOWN:])))
    page = joined(
        Markup("<!doctype html>"),
        tag(
            "html",
            tag("head", tag("meta", charset="utf-8"), tag("title", title),
                tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
                tag("style", Markup(STYLE))),
            tag("body", tag("main", *parts)),
            lang="en",
        ),
    )  # fmt: skip
    target, draft = folder / PAGE, folder / f".{PAGE}.draft"
    draft.write_text(page, encoding="utf-8")
    draft.replace(target)
    return target


def _summary(metrics: Sequence[Row]) -> str:
    if not metrics:
        return "nothing was logged yet"
    last = metrics[-1]
    said = [f"step {_number(last.get('step')) or 0:.0f}"]
    for key in ("loss", "mean_reward", "correct", "gain"):
        found = [value for row in metrics if (value := _number(row.get(key))) is not None]
        if found:
            said.append(f"{key} {found[0]:.3g} to {found[-1]:.3g}")
    return ", ".join(said)


def _curve(points: Sequence[tuple[float, float]], name: str) -> Markup:
    values = [value for _, value in points]
    low, high = min(values), max(values)
    room = (high - low) * 0.08 or max(abs(high) * 0.1, 0.1)
    steps = [step for step, _ in points]
    x = Scale(low=min(steps), high=max(max(steps), min(steps) + 1), start=LEFT, end=WIDTH - RIGHT)
    y = Scale(low=low - room, high=high + room, start=HEIGHT - BOTTOM, end=TOP)
    return picture(
        axes(x, y, x_name="step", y_name=name, unit=""),
        path([(x(step), y(value)) for step, value in points], "line"),
        title=name,
        description=f"from {values[0]:.3g} to {values[-1]:.3g} over {len(points)} logs",
    )


def _stages(metrics: Sequence[Row]) -> Markup | None:
    sums = {key: math.fsum(_number(row.get(key)) or 0.0 for row in metrics) for key in _STAGES}
    if not any(sums.values()):
        return None
    rows = [
        tag("tr", tag("td", key.removeprefix("seconds_")), tag("td", f"{value:.1f} s", class_="n"))
        for key, value in sums.items()
    ]
    note = "judging runs beside generating; waiting is what could not be overlapped"
    return tag("table", tag("caption", note), *rows)


def _answers(answers: Sequence[Row]) -> Markup:
    names = ("step", "task", "answer", "outcome", "over the parent", "reward")
    head = tag("tr", *(tag("th", name) for name in names))
    rows = [
        tag(
            "tr", tag("td", str(row.get("step", "")), class_="n"), tag("td", str(row.get("task"))),
            tag("td", tag("code", str(row.get("answer", ""))[:200])),
            tag("td", str(row.get("outcome", ""))), tag("td", _two(row.get("gain")), class_="n"),
            tag("td", _two(row.get("reward")), class_="n"),
        )
        for row in reversed(answers)
    ]  # fmt: skip
    return tag("div", tag("table", head, *rows), class_="wide")


def _two(value: object) -> str:
    found = _number(value)
    return "" if found is None else f"{found:.2f}"


def _number(value: object) -> float | None:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None  # type: ignore[arg-type]


def _lines(path: Path) -> list[Row]:
    if not path.is_file():
        return []
    found: list[Row] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            said = json.loads(line)
        except ValueError:
            continue  # the last line may be half written while a training goes on
        if isinstance(said, dict):
            found.append(said)
    return found
