"""The archive as a heat map: one panel an island, a square a kind of kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.report.markup import Markup, number, tag
from kernelsmith.report.numbers import Cell
from kernelsmith.report.svg import WIDTH, box, picture, text

_MARGIN, _GAP, _ABOVE, _BELOW = 110.0, 22.0, 20.0, 74.0
_LARGEST = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One descriptor of an archive: its name, and what its bins hold."""

    name: str
    labels: tuple[str, ...] = ()
    """By index in a cell; bins beyond are shown by number."""

    def label(self, index: int) -> str:
        """What one bin holds."""
        return self.labels[index] if 0 <= index < len(self.labels) else str(index)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Which bins are drawn, and how large."""

    axes: tuple[int, int | None]
    columns: range
    rows: range
    size: float
    low: float
    high: float

    def place(self, cell: Cell) -> tuple[int, int]:
        first, second = self.axes
        return cell.place[first], cell.place[second] if second is not None else 0

    def shade(self, score: float) -> float:
        if self.high <= self.low:
            return 1.0
        return 0.15 + 0.85 * (score - self.low) / (self.high - self.low)


def unnamed(count: int) -> tuple[Axis, ...]:
    """Axes for an archive that nobody described."""
    return tuple(Axis(name=f"descriptor {index + 1}") for index in range(count))


def drawn_axes(cells: Sequence[Cell], axes: Sequence[Axis]) -> tuple[int, int | None]:
    """The two descriptors that differ most; the score, which the shade shows, only if it must."""
    if len(axes) == 1:
        return 0, None
    spread = [len({cell.place[axis] for cell in cells}) for axis in range(len(axes))]
    ranked = sorted(
        range(len(axes)),
        key=lambda axis: (spread[axis] == 1, axes[axis].name == "score", -spread[axis], axis),
    )
    first, second = sorted(ranked[:2])
    return first, second


def heat_map(cells: Sequence[Cell], axes: Sequence[Axis], best: tuple[int, ...] | None) -> Markup:
    """Draw every island; ``best`` is the winner's island and cell."""
    grid = _grid(cells, axes)
    first, second = grid.axes
    islands = sorted({cell.island for cell in cells})
    wide, high = len(grid.columns) * grid.size, len(grid.rows) * grid.size
    beside = max(1, int((WIDTH - _MARGIN + _GAP) // (wide + _GAP)))
    drawn: list[Markup] = []
    for index, island in enumerate(islands):
        column, row = index % beside, index // beside
        left, over = _MARGIN + column * (wide + _GAP), row * (high + _ABOVE + _BELOW) + _ABOVE
        own = [cell for cell in cells if cell.island == island]
        drawn.append(text(left, over - 6, f"island {island}", "tick"))
        drawn += _panel(own, grid, (left, over), best)
        drawn += _below(axes[first], grid, left, over + high)
        if column == 0 and second is not None:
            drawn += _beside(axes[second], grid, left, over)
    rows = -(-len(islands) // beside)
    return picture(
        *drawn,
        title="Archive",
        description=f"{len(cells)} cells are taken in {len(islands)} islands; "
        f"scores from {grid.low:.3g} to {grid.high:.3g}, a stronger colour is better",
        height=rows * (high + _ABOVE + _BELOW),
    )


def _grid(cells: Sequence[Cell], axes: Sequence[Axis]) -> _Grid:
    first, second = drawn_axes(cells, axes)
    across = [cell.place[first] for cell in cells]
    up = [cell.place[second] for cell in cells] if second is not None else [0]
    columns, rows = range(min(across), max(across) + 1), range(min(up), max(up) + 1)
    scores = [cell.score for cell in cells]
    return _Grid(
        axes=(first, second),
        columns=columns,
        rows=rows,
        size=min(_LARGEST, 360.0 / max(len(columns), len(rows))),
        low=min(scores),
        high=max(scores),
    )


def _panel(
    cells: Sequence[Cell], grid: _Grid, corner: tuple[float, float], best: tuple[int, ...] | None
) -> list[Markup]:
    left, over = corner
    size = grid.size
    drawn = [box(left, over, len(grid.columns) * size, len(grid.rows) * size, "empty")]
    groups: dict[tuple[int, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(grid.place(cell), []).append(cell)
    for (column, row), group in groups.items():
        held = max(group, key=lambda cell: cell.score)
        more = f", best of {len(group)} cells" if len(group) > 1 else ""
        is_best = any((cell.island, *cell.place) == best for cell in group)
        drawn.append(
            box(
                left + (column - grid.columns.start) * size + 1,
                over + (grid.rows.stop - 1 - row) * size + 1,
                size - 2, size - 2,
                "cell winner" if is_best else "cell",
                opacity=grid.shade(held.score),
                said=f"score {held.score:.3g}, {held.point.speedup}, step {held.point.step}{more}",
            )
        )  # fmt: skip
    return drawn


def _below(axis: Axis, grid: _Grid, left: float, base: float) -> list[Markup]:
    drawn = []
    for index in grid.columns:
        at = left + (index - grid.columns.start + 0.5) * grid.size + 3
        turn = f"rotate(-45 {number(at)} {number(base + 12)})"
        drawn.append(
            tag("text", axis.label(index), x=at, y=base + 12, class_="tick end", transform=turn)
        )
    return drawn


def _beside(axis: Axis, grid: _Grid, left: float, over: float) -> list[Markup]:
    return [
        text(left - 6, over + (grid.rows.stop - 0.5 - index) * grid.size + 4, axis.label(index),
             "tick end")
        for index in grid.rows
    ]  # fmt: skip
