"""The sections about the search: curve, verdicts, archive, lineage, all steps."""

from collections.abc import Sequence

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.report import pictures
from kernelsmith.report.heat import Axis, drawn_axes, heat_map, unnamed
from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.numbers import Numbers, Point, point_of
from kernelsmith.report.tables import Cellular, figure, folded, table

_MOST_ROWS = 1000
"""Steps in the table at the end; of a longer run, the bests and the last ones are listed."""
_MOST_CELLS = 200
_MOST_GENERATIONS = 40
"""Of a longer line, the first and the last ones are listed."""


def curve(numbers: Numbers) -> Markup | None:
    """Best speed-up against step, and each new best as a row."""
    if not numbers.points:
        return tag("p", "No step was taken yet.")
    drawn = pictures.curve(numbers.points)
    said = (
        "The line is the best speed-up so far, the band its 95 % interval. Grey dots passed and "
        "were no improvement; ticks at the bottom did not pass, coloured as under Verdicts."
    )
    rows: list[Sequence[Cellular]] = [
        (point.step, _ratio(point.speedup), _range(point.speedup), _ratio(point.gain),
         point.proposer, point.note)
        for point in numbers.bests
    ]  # fmt: skip
    listed = table(
        ("step", "speed-up", "interval", "over parent", "by", "what it tried"), rows,
        numeric=(0, 1, 2, 3), caption="Each new best",
    )  # fmt: skip
    return joined(figure(drawn, said), listed)


def verdicts(numbers: Numbers) -> Markup | None:
    """How the steps ended, and what the latest of each sort was told."""
    if not numbers.points:
        return None
    tally = numbers.tally
    total = sum(number for _, number in tally)
    rows: list[Sequence[Cellular]] = [
        (
            joined(tag("span", class_=f"key s-{fate}"), fate.replace("_", " ")),
            number, f"{number / total:.0%}", _example(numbers.points, fate),
        )
        for fate, number in tally
    ]  # fmt: skip
    return joined(
        figure(pictures.shares([(f, float(n)) for f, n in tally], title="Verdicts"), ""),
        table(("end", "steps", "share", "the latest one said"), rows, numeric=(1, 2)),
    )


def archive(numbers: Numbers, axes: Sequence[Axis]) -> Markup | None:
    """Which kinds of kernels were found, as a map and as a table."""
    if not numbers.cells:
        return None
    winner = numbers.winner
    best = (
        (winner.placement.island, *winner.placement.cell)
        if winner and winner.placement.cell
        else None
    )
    axes = axes or unnamed(len(numbers.cells[0].place))
    first, second = drawn_axes(numbers.cells, axes)
    over = f"{axes[first].name} and {axes[second].name}" if second is not None else axes[first].name
    said = (
        f"Each square is a kind of kernel by {over}, the stronger its colour the better its best "
        "one; the framed one holds the winner. Migrants are copies and are not drawn."
    )
    ranked = sorted(numbers.cells, key=lambda cell: -cell.score)
    rows: list[Sequence[Cellular]] = [
        (
            cell.island, *(axis.label(at) for axis, at in zip(axes, cell.place, strict=True)),
            f"{cell.score:.4g}", cell.point.step, cell.arrivals,
        )
        for cell in ranked[:_MOST_CELLS]
    ]  # fmt: skip
    names = [axis.name for axis in axes]
    end = len(names) + 1
    listed = table(
        ("island", *names, "score", "step", "times taken"), rows, numeric=(0, end, end + 1, end + 2)
    )
    left = len(ranked) - len(rows)
    more = f" (the best {len(rows)}; {left} more in the journal)" if left else ""
    return joined(
        figure(heat_map(numbers.cells, axes, best), said),
        folded(f"{len(ranked)} cells as a table{more}", listed),
    )


def lineage(numbers: Numbers) -> Markup | None:
    """The winner's line among all others."""
    if not numbers.lineage:
        return None
    steps = [step.brief.number for step in numbers.lineage]
    said = "Every candidate that was timed, joined to its parent; the winner's line is thick."
    rows: list[Sequence[Cellular]] = []
    line = numbers.lineage
    for step in (line[0], *line[1:][-_MOST_GENERATIONS:]):
        point = point_of(step)
        rows.append(
            (point.step, point.candidate or "", _ratio(point.speedup), _ratio(point.gain),
             point.proposer, point.note)
        )  # fmt: skip
    return joined(
        figure(pictures.lineage(numbers.points, steps), said),
        table(
            ("step", "candidate", "speed-up", "over parent", "by", "what it tried"), rows,
            numeric=(0, 2, 3), caption="From the first of its line to the winner",
        ),
    )  # fmt: skip


def steps(numbers: Numbers) -> Markup | None:
    """Every step as a row, folded."""
    chosen = list(numbers.points)
    if len(chosen) > _MOST_ROWS:
        last = chosen[-_MOST_ROWS // 2 :]
        chosen = [point for point in chosen[: -len(last)] if point.is_best] + last
    rows: list[Sequence[Cellular]] = [
        (
            point.step, point.fate.replace("_", " "), _ratio(point.speedup), point.proposer,
            (point.note if point.fate == Verdict.PASSED else point.message or point.note)[:100],
        )
        for point in chosen
    ]  # fmt: skip
    if not rows:
        return None
    listed = table(("step", "end", "speed-up", "by", "note"), rows, numeric=(0, 2))
    return folded(f"{len(rows)} of {len(numbers.points)} steps", listed)


def _example(points: Sequence[Point], fate: str) -> str:
    return next((point.message for point in reversed(points) if point.fate == fate), "")


def _ratio(ratio: Ratio | None) -> str:
    return f"{ratio.value:.3f}x" if ratio else ""


def _range(ratio: Ratio | None) -> str:
    return f"{ratio.low:.3f} to {ratio.high:.3f}" if ratio else ""
