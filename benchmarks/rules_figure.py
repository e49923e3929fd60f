"""The tables and the picture of the rules' benchmark."""

from pathlib import Path
from typing import Any

from benchmarks.report import table
from benchmarks.rules_numbers import Record, best, compiled
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
    line,
    path,
    picture,
    ratio_scale,
    text,
)

_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#6b46c1")
_STYLE = (
    "<style>text{font:12px sans-serif;fill:#555}.end{text-anchor:end}"
    ".middle{text-anchor:middle}.grid{stroke:#ddd}.axis{stroke:#555}"
    "path{fill:none;stroke-width:2}path.seen{stroke-width:1;stroke-opacity:.6}"
    ".one{stroke:#555;stroke-width:1;stroke-dasharray:3 3}"
    + "".join(
        f"path.c{at}{{stroke:{colour}}}circle.c{at}{{fill:{colour}}}"
        for at, colour in enumerate(_COLOURS)
    )
    + "</style>"
)
_HEAD = ["", "tasks", "correct", "fast1", "sure", "average", "geomean", "median", "+-"]


def tables(summary: dict[str, Any]) -> str:
    """All numbers for people."""
    parts = []
    for name, found in summary.items():
        if not isinstance(found, dict) or "all" not in found:
            continue
        for what, levels in found.items():
            rows = [_row(level, numbers) for level, numbers in levels.items() if numbers["tasks"]]
            parts.append(f"{name}, {what}\n{table(_HEAD, rows)}")
    for what, name in (
        ("evaluations", "by evaluations, as the search timed them"),
        ("judged once more", "by evaluations, the best ones judged once more"),
    ):
        rows = [
            [count, *_row(level, numbers)]
            for count, levels in summary[what].items()
            for level, numbers in levels.items()
            if numbers["tasks"]
        ]
        parts += [f"{name}\n{table(['evaluations', *_HEAD], rows)}"] if rows else []
    if beside := summary["over compile"]:
        head = ["", "tasks", "geomean", "surely ahead", "surely behind"]
        rows = [
            [name, each["tasks"], f"{each['geomean']:.3f} [{each['low']:.3f}, {each['high']:.3f}]",
             each["surely ahead"], each["surely behind"]]
            for name, each in beside.items()
        ]  # fmt: skip
        parts.append("rules over torch.compile, task by task\n" + table(head, rows))
    judged = summary["references"]
    if beside and (judged["passed"] or judged["not"]):
        lines = [f"  {key}: {why[:120]}" for key, why in judged["not"].items()]
        passed = f"references judged against themselves: {judged['passed']} passed"
        parts.append("\n".join([f"{passed}, {len(lines)} not", *lines]))
    degenerate = ", ".join(summary["degenerate"]) or "none"
    parts.append(f"degenerate: {degenerate}\nsteps that did not pass: {summary['wrong']}")
    parts += [f"why tasks ended: {stops}"] if (stops := summary.get("stops")) else []
    return "\n\n".join(parts)


def _row(name: str, numbers: dict[str, Any]) -> list[str]:
    shares = [f"{numbers[key]:.1%}" for key in ("correctness", "fast1", "fast1_sure")]
    ratios = [f"{numbers[key]:.3f}" for key in ("average", "geomean", "median")]
    if "low" in numbers:
        ratios[1] += f" [{numbers['low']:.2f}, {numbers['high']:.2f}]"
    width = numbers.get("half_width")
    return [name, str(numbers["tasks"]), *shares, *ratios, "-" if width is None else f"{width:.1%}"]


def per_task(records: dict[str, Record]) -> str:
    """One line per task: best, compile, evaluations, what came of them."""
    rows = []
    for key in sorted(records, key=_in_order):
        record, found = records[key], best(records[key])
        ratio = f"{found['ratio']:.3f} [{found['low']:.3f}, {found['high']:.3f}]" if found else "-"
        beside = compiled("default")(record)
        ends = [step["said"] for step in record["steps"]]
        why = record.get("left_out") or (record.get("message", "") if not found else "")
        failing = ", ".join(sorted({end for end in ends if end != "passed"}))
        rows.append([
            f"{key} {record.get('task', '')[:30]}", ratio,
            f"{beside['ratio']:.3f}" if beside else "-", len(ends), f"{why} {failing}"[:60].strip(),
        ])  # fmt: skip
    return table(["task", "rules", "compile", "steps", ""], rows)


def _in_order(key: str) -> tuple[str, int]:
    level, _, number = key.partition("/")
    return level, int(number) if number.isdigit() else 0


def curve(summary: dict[str, Any], out: Path, *, measure: str = "geomean") -> None:
    """Gain against evaluations per task, one line per level, the compiler as dashes.

    By candidates judged once more where that was asked for; the search's own figures, of which the
    best is always a little too good, are thin lines then.
    """
    seen = summary["evaluations"]
    if not seen:
        return
    points = summary["judged once more"] or seen
    names = list(next(iter(points.values())))
    lines = {name: _along(points, name, measure) for name in names}
    thin = {name: _along(seen, name, measure) for name in names if points is not seen}
    beside = {
        name: found[measure]
        for name, found in summary.get("compile default", {}).get("all", {}).items()
        if found["tasks"]
    }
    every = [value for each in (*lines.values(), *thin.values()) for _, value in each]
    every += beside.values()
    x = Scale(low=1, high=max(2, *map(int, points)), start=LEFT, end=WIDTH - RIGHT - 130, log=True)
    y = ratio_scale(every, start=HEIGHT - BOTTOM, end=TOP)
    drawn: list[Markup] = [axes(x, y, x_name="evaluations per task", y_name=f"{measure} speed-up")]
    for index, (name, places) in enumerate(lines.items()):
        style = f"c{index % 4}"
        if name in thin:
            drawn.append(
                path([(x(count), y(value)) for count, value in thin[name]], f"{style} seen")
            )
        drawn.append(path([(x(count), y(value)) for count, value in places], style))
        drawn += [dot(x(n), y(v), 3.5, style, f"{name}: {v:.3f} after {n}") for n, v in places]
        drawn.append(text(x.end + 8, y(places[-1][1]) + 4, f"{name} {places[-1][1]:.2f}", "tick"))
        if name in beside:
            drawn.append(line(x.start, y(beside[name]), x.end, y(beside[name]), f"one {style}"))
    said = "; ".join(f"{name} ends at {places[-1][1]:.3f}" for name, places in lines.items())
    how = "judged once more; thin: as the search timed them; " if thin else ""
    made = picture(
        *drawn,
        title=f"Gain ({measure} over eager) against evaluations per task",
        description=f"{said}; {how}dashed: torch.compile default",
    )
    write_svg(made, out)


def _along(points: dict[str, Any], name: str, measure: str) -> list[tuple[int, float]]:
    return [(int(count), levels[name][measure]) for count, levels in points.items()]


def write_svg(made: Markup, out: Path) -> None:
    """A picture with its style, to stand alone."""
    svg = str(made).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    out.write_text(svg.replace("<title>", f"{_STYLE}<title>", 1) + "\n")
