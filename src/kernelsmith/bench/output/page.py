"""One self-contained HTML page for a bench: no script, nothing from elsewhere, all escaped."""

from collections.abc import Mapping
from pathlib import Path

from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.numbers.scores import METRICS, SEARCH_ONLY, Measure
from kernelsmith.bench.output import figures
from kernelsmith.bench.output.cells import Cell, Sheet, reason
from kernelsmith.bench.output.sheets import sheets, verdict_of
from kernelsmith.bench.record import Record
from kernelsmith.errors import UsageError
from kernelsmith.report.markup import Markup, joined, tag
from kernelsmith.report.style import STYLE
from kernelsmith.report.tables import facts, figure, folded, table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_WIDE = """
main{max-width:70rem}td small{color:var(--dim);white-space:nowrap}td b{font-weight:700}
caption{color:var(--fg);font-weight:600;padding:1.1rem 0 .3rem}p.note{font-size:.85rem}
""".strip()
_AT_ONCE = 40
"""Rows of a table that stand open; longer ones are opened on demand."""


def write(found: Findings, path: Path) -> None:
    """Write the page.

    Raises:
        UsageError: It cannot be written there.
    """
    try:
        path.write_text(page(found), encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def page(found: Findings) -> str:
    """The whole page as HTML."""
    made = [(name, inner) for name, inner in _sections(found).items() if inner]
    body = tag(
        "main",
        _head(found),
        tag("nav", *(tag("a", name, href=f"#{_anchor(name)}") for name, _ in made),
            aria_label="parts"),
        *(
            tag("section", tag("h2", name, id=_anchor(name)), inner, aria_labelledby=_anchor(name))
            for name, inner in made
        ),
    )  # fmt: skip
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", **{"http-equiv": "Content-Security-Policy", "content": _POLICY}),
        tag("meta", name_="viewport", content="width=device-width,initial-scale=1"),
        tag("title", f"{', '.join(found.suites) or 'bench'}: {', '.join(found.systems)}"),
        tag("style", Markup(f"{STYLE}\n{figures.STYLE}\n{_WIDE}")),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', body), lang='en')}\n"


def _sections(found: Findings) -> Mapping[str, Markup]:
    by_key: dict[str, list[Sheet]] = {}
    for sheet in sheets(found):
        by_key.setdefault(sheet.key, []).append(sheet)

    def tables(*keys: str) -> Markup:
        return joined(*(_sheet(sheet) for key in keys for sheet in by_key.get(key, ())))

    def behind(said: str, *keys: str) -> Markup:
        inner = tables(*keys)
        return folded(said, inner) if inner else Markup()

    first, others = by_key.get("overall", [])[:1], by_key.get("overall", [])[1:]
    by_key["overall"], by_key["others"] = first, others
    return {
        "Results": joined(
            tables("overall", "sound", "clear", "own"),
            behind("Beside other baselines, and by other clocks", "others"),
        ),
        "Best against step": _curve(found),
        "What few steps give": joined(
            _few(found), tables("reached"), behind("Rules to stop by, replayed", "stopped")
        ),
        "Speed-ups": _speedups(found),
        "By level": joined(tables("levels"), behind("What later steps still gain", "beyond")),
        "By kind of task": joined(
            _heat(found), behind("The same with intervals", "category", "family", "dtype")
        ),
        "Pairs of systems": tables("pairs"),
        "Searches and their cost": tables("search", "prices"),
        "What refining does": tables("explained", "rounds", "flows"),
        "Devices": tables("across"),
        "Every task": _every_task(found),
        "Without a record": tables("missing"),
        "How it was measured": _measured(found),
    }


def _head(found: Findings) -> Markup:
    title = f"{', '.join(found.suites) or 'no suite'}: {', '.join(found.systems) or 'no system'}"
    parts = [tag("h1", title)]
    records = [record for own in found.records.values() for record in own]
    if not records:
        said = "no records" if not found.systems else "the systems have no task in common"
        return joined(*parts, tag("div", tag("b", said), class_="hero fail"))
    passed = sum(record.passed for record in records)
    parts.append(
        facts(
            ("systems", str(len(found.systems))),
            ("common tasks", f"{found.tasks:,}"),
            ("records on them", f"{len(records):,}"),
            ("passed", f"{passed:,}"),
            ("degenerate tasks", str(len(found.degenerate))),
            ("without a record", str(len(found.missing))),
            ("devices", str(len(found.devices))),
        )
    )
    if found.said:
        parts.append(tag("p", tag("strong", "Note: "), found.said, "."))
    return joined(*parts)


def _curve(found: Findings) -> Markup:
    curves = [search.curve for search in found.searches.values()]
    if not curves:
        return Markup()
    return figure(
        figures.best_against_step(curves, found.systems),
        "Geometric mean over tasks of the best so far, eager kept until beaten, as the searches "
        "timed it; bands are 95 % intervals over tasks and seeds. Dots at the end: the winners "
        "judged again, which takes the luck of choosing the best of many out.",
    )


def _few(found: Findings) -> Markup:
    drawn = figures.cost_quality(found)
    if drawn is None:
        return Markup()
    return figure(
        drawn,
        "Share of the logarithm of the whole search's speed-up that was there after so many steps.",
    )


def _speedups(found: Findings) -> Markup:
    if not found.records:
        return Markup()
    parts = [
        figure(
            figures.profile(found.records, found.measure, found.systems),
            f"Share of all tasks with a right kernel more than p times as fast, {found.measure}; "
            "at p = 1 it is fast_1. A line that starts low fails often, one that ends late wins "
            "by much.",
        )
    ]
    drawn = figures.distribution(found.records, found.measure, found.systems)
    if drawn is not None:
        parts.append(
            figure(
                drawn,
                "A dot is a task's winner (geometric mean over seeds), the box holds the middle "
                "half, the line is the median; failed tasks have no dot.",
            )
        )
    return joined(*parts)


def _heat(found: Findings) -> Markup:
    said = "Geometric mean speed-up of winners, and the share of tasks that are correct."
    drawn = [
        figure(picture, said)
        for grouping in ("category", "family")
        if (picture := figures.heat(found.groups.get(grouping, ()), grouping)) is not None
    ]
    return joined(*drawn)


def _every_task(found: Findings) -> Markup:
    systems = list(found.records)
    cells: dict[str, dict[str, list[str]]] = {}
    notes: dict[str, str] = {}
    for name, own in found.records.items():
        for record in own:
            ratio = found.measure.of(record)
            said = _untimed(record, found.measure)
            cells.setdefault(record.entry, {}).setdefault(name, []).append(
                said if ratio is None else str(ratio)
            )
            notes[record.entry] = record.note
    if not cells:
        return Markup()
    rows = [
        (entry, *("; ".join(own.get(name, ["-"])) for name in systems), notes[entry])
        for entry, own in cells.items()
    ]
    made = table(
        ("task", *systems, "note"), rows, numeric=range(1, len(systems) + 1),
        caption=f"Speed-up {found.measure}, with its own 95 % interval; seeds one after the other",
    )  # fmt: skip
    return folded(f"{len(rows):,} tasks", made, is_open=len(rows) <= _AT_ONCE)


def _untimed(record: Record, measure: Measure) -> str:
    """What stands in place of a ratio: that something failed, or was not timed, and why."""
    beside = record.over(measure.baseline)
    if record.passed:
        said, why = "right, not timed", "" if beside is None else beside.trouble
    else:
        said, why = verdict_of(record), record.message
    return f"{said}: {reason(why)}" if why else said


def _measured(found: Findings) -> Markup:
    rows = [*found.allowed.items()]
    rows += [("device", each) for each in found.devices]
    rows += [("judge", each) for each in found.judges]
    rows += [(name, version) for name, version in found.versions]
    said = (
        "Every winner is judged by the same judge, and timed interleaved with the baseline in the "
        "same run. Intervals over tasks are 95 %, by bootstrap: tasks first, then seeds inside "
        "them; they say how the figure would move on other tasks of this kind. The same records "
        f"give the same figures (seed {found.seed})."
    )
    searched = bool(found.searches)
    means = [
        (metric.label, metric.said) for metric in METRICS
        if searched or metric.name not in SEARCH_ONLY
    ]  # fmt: skip
    return joined(
        tag("p", said),
        table(("what", "value"), rows) if rows else Markup(),
        folded("What the metrics mean", table(("metric", "meaning"), means)),
    )


def _sheet(sheet: Sheet) -> Markup:
    numeric = range(sheet.text_columns, len(sheet.header))
    made = table(
        sheet.header,
        [[_cell(each) for each in row] for row in sheet.rows],
        numeric=numeric,
        caption=sheet.title,
    )
    notes = [tag("p", note, class_="dim note") for note in sheet.notes]
    if len(sheet.rows) > _AT_ONCE:
        made = folded(f"{sheet.title}: {len(sheet.rows):,} rows", made)
    return joined(made, *notes)


def _cell(each: Cell) -> Markup:
    text = tag("b", each.text) if each.is_best else joined(each.text)
    if not each.interval:
        return text
    lines = each.interval.split("\n")
    small = joined(*(joined(tag("br"), tag("small", part)) for part in lines))
    return joined(text, small)


def _anchor(name: str) -> str:
    return name.lower().replace(" ", "-")
