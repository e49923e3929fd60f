"""Where a table's cells stand on a page or a terminal of some width: turned, or in parts."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from kernelsmith.bench.output.cells import Cell, Sheet

_BESIDE = 5
"""Systems that fit beside each other."""
_MANY = 7
"""Columns that do."""
AROUND = 3
"""What stands around a column: a space on each side, and one between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """One table, or several below each other where its columns do not fit beside each other."""

    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    words: int
    """How many columns hold words."""
    parts: tuple[Sequence[int], ...]
    """The columns of each part."""
    widths: tuple[int, ...] | None
    """Characters of each column, headings on several lines; none where all fits as it is."""
    is_turned: bool
    """Whether metrics stand below each other, with intervals beside their figures."""


def laid(sheet: Sheet, width: int) -> Layout:
    """Lay a table out for lines of ``width`` characters."""
    names = {row[0].text for row in sheet.rows}
    can_turn = len(names) == len(sheet.rows) and sheet.text_columns == 1
    is_narrow = sum(_widths(sheet.header, sheet.rows, "\n")) > width
    is_turned = can_turn and len(sheet.header) > _MANY and (len(names) <= _BESIDE or is_narrow)
    header, rows = _turned(sheet) if is_turned else (sheet.header, sheet.rows)
    between, words = " " if is_turned else "\n", sheet.text_columns
    fits = sum(_widths(header, rows, between)) <= width
    # a long heading may take several lines; figures may not
    wide = _widths(["\n".join(name.split()) for name in header], rows, between)
    return Layout(
        header=header, rows=rows, words=words, is_turned=is_turned,
        parts=(range(len(header)),) if fits else tuple(_parts(wide, words, width)),
        widths=None if fits else tuple(each - AROUND for each in wide),
    )  # fmt: skip


def _parts(wide: Sequence[int], words: int, width: int) -> list[Sequence[int]]:
    """Columns that fit beside each other, in each part behind those that hold words."""
    named = min(sum(wide[:words]), width // 2)
    parts, used = [[*range(words)]], named
    for index in range(words, len(wide)):
        if used + wide[index] > width and len(parts[-1]) > words:
            parts.append([*range(words)])
            used = named
        parts[-1].append(index)
        used += wide[index]
    return [*parts]


def _widths(header: Sequence[str], rows: Sequence[Sequence[Cell]], between: str) -> list[int]:
    """How much room each column takes, with what stands around it."""
    shown = [[*header], *([f"{each.text}{between}{each.interval}" for each in row] for row in rows)]
    return [
        AROUND + max(cell_len(line) for text in column for line in text.rstrip().split("\n"))
        for column in zip(*shown, strict=True)
    ]


def _turned(sheet: Sheet) -> tuple[tuple[str, ...], tuple[tuple[Cell, ...], ...]]:
    """Metrics down, systems across: what fits a terminal where there are more of the former."""
    header = (sheet.header[0], *(row[0].text for row in sheet.rows))
    rows = tuple(
        (Cell(name), *(row[index] for row in sheet.rows))
        for index, name in enumerate(sheet.header)
        if index > 0
    )
    return header, rows
