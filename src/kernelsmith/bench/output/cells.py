"""Cells of tables: numbers with the digits that they deserve, intervals, and what changed."""

import math
from dataclasses import dataclass

from kernelsmith.bench.numbers.compare import Difference
from kernelsmith.bench.numbers.scores import BY_NAME, Metric, Unit
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.report.numbers import first_line

NONE = "-"
_EXACT = 1e-9
"""An interval narrower than this is arithmetic: the same for every task."""
_MOST_DIGITS = 6
_TRACEBACK = "Traceback (most recent call last):"
_CHANGED = {
    Unit.SHARE: (100.0, 1, " points"), Unit.RATIO: (1.0, 3, ""), Unit.STEPS: (1.0, 1, ""),
    Unit.COUNT: (1.0, 0, ""), Unit.USD: (1.0, 4, " usd"), Unit.SECONDS: (1.0, 0, " s"),
    Unit.SCORE: (1.0, 3, ""),
}  # fmt: skip
"""How a difference is written: factor, digits, unit."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One figure: what is read first, and the interval that stands beside or below it."""

    text: str
    interval: str = ""
    is_best: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One table: a title, what to know before quoting it, and cells."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    text_columns: int = 1
    """How many columns hold words; the rest are numbers, flush right."""
    key: str = ""
    """A short name, for labels."""


def written(value: float, unit: Unit) -> str:
    """A number with the digits that its unit deserves."""
    if unit is Unit.SHARE:
        return f"{100 * value:.1g} %" if 0 < value < 0.001 else f"{100 * value:.1f} %"
    if unit is Unit.RATIO:
        return f"{value:.2f}" if value < 100 else f"{value:.0f}"
    if unit is Unit.STEPS:
        return f"{value:.1f}"
    if unit is Unit.COUNT:
        return f"{value:,.0f}"
    if unit is Unit.USD:
        return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"
    if unit is Unit.SECONDS:
        return f"{value:,.0f} s"
    return f"{value:.3g}"


def cell(found: Estimate | None, unit: Unit, *, is_best: bool = False) -> Cell:
    """A figure with its interval; a dash where there is none."""
    if found is None:
        return Cell(NONE)
    if found.low is None or found.high is None or found.high - found.low <= _EXACT * found.high:
        return Cell(written(found.value, unit), is_best=is_best)
    digits = _share_digits(100 * (found.high - found.low)) if unit is Unit.SHARE else 0
    ends = [_end(each, unit, digits) for each in (found.low, found.high)]
    return Cell(written(found.value, unit), f"[{ends[0]}, {ends[1]}]", is_best)


def _share_digits(points: float) -> int:
    """How many digits tell the ends of an interval of so many percentage points apart."""
    return min(_MOST_DIGITS, max(0, math.ceil(-math.log10(points / 2))))


def _end(value: float, unit: Unit, digits: int) -> str:
    """An end of an interval: the unit stands beside the figure, and ends need fewer digits."""
    if unit is Unit.SHARE:
        return f"{100 * value:.{digits}f}"
    return written(value, unit).removesuffix(" s").removeprefix("$")


def changed(each: Difference | None) -> Cell:
    """What changed from the first to the second, with p."""
    if each is None or each.change is None:
        return Cell(NONE)
    metric = BY_NAME[each.metric]
    p = each.p if each.corrected is None else each.corrected
    said = "" if p is None else f"p {p_value(p)}{' *' if each.is_significant else ''}"
    change = each.change
    assert change.low is not None
    assert change.high is not None
    unit = "x" if metric.is_log else _CHANGED[metric.unit][2]
    value, low, high = (_change(v, metric) for v in (change.value, change.low, change.high))
    width = "" if change.high - change.low < _EXACT else f"[{low}, {high}]"
    return Cell(f"{value}{unit}", "\n".join(part for part in (width, said) if part))


def _change(value: float, metric: Metric) -> str:
    if metric.is_log:
        return f"{value:.3f}"
    factor, digits, _ = _CHANGED[metric.unit]
    return f"{factor * value:+,.{digits}f}"


def p_value(p: float) -> str:
    """A p-value with three digits; no smaller one is worth more."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def amount(value: float | None, unit: Unit) -> Cell:
    """A number without an interval; a dash where there is none."""
    return Cell(NONE if value is None else written(value, unit))


def share(value: float) -> Cell:
    """A share without an interval."""
    return Cell(written(value, Unit.SHARE))


def reason(message: str) -> str:
    """Why something failed, in one line; of a traceback the last one, which names the error."""
    before, found, after = message.partition(_TRACEBACK)
    if not found:
        return first_line(message)
    lines = [line.strip() for line in after.splitlines() if line.strip()]
    return first_line(f"{before.strip()} {lines[-1] if lines else found}".strip())
