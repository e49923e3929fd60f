"""Tables of a bench for a terminal, for Markdown and for LaTeX."""

import re
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from kernelsmith.bench.numbers.compare import Comparison, Contrast, OnTask
from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.numbers.scores import BY_NAME, Unit
from kernelsmith.bench.output.cells import NONE, Cell, Sheet, cell, changed, p_value, written
from kernelsmith.bench.output.sheets import sheets

_FIRST = ("overall", "levels", "sound", "clear", "own", "search", "reached", "pairs", "across",
          "missing")  # fmt: skip
"""What a terminal shows; the rest is in the other outputs."""
_PAPER = ("overall", "levels", "sound", "clear", "reached", "stopped", "beyond", "pairs",
          "explained")  # fmt: skip
_SHOWN_TASKS = 10
_BESIDE = 5
"""Systems that fit beside each other on a terminal."""
_MANY = 7
"""Columns that do."""
_AROUND = 3
"""What stands around a column: a space on each side, and one between."""
_LATEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
          "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
          "<": r"$<$", ">": r"$>$", "[": "{[}", "]": "{]}"}  # fmt: skip


def terminal(found: Findings, console: Console, *, full: bool = False) -> None:
    """Print the tables that are read first; all of them when ``full``."""
    shown = [each for each in sheets(found) if full or each.key in _FIRST]
    if not full:
        # other baselines and clocks are one line in the page; here the chosen one, and the first
        # of each other baseline
        shown = _one_per_baseline(shown)
    for sheet in shown:
        _print(sheet, console)


def markdown(found: Findings) -> str:
    """Every table, with what was measured and where."""
    title = f"{', '.join(found.suites) or 'no suite'}: {', '.join(found.systems)}"
    head = [f"# {_in_markdown(title)}", ""]
    head += [f"{found.tasks} common tasks; {', '.join(found.devices) or 'no device'}; "
             f"judge {', '.join(found.judges) or 'not recorded'}; 95 % intervals by bootstrap over "
             "tasks and seeds.", ""]  # fmt: skip
    return "\n".join([*head, *(_markdown(sheet) for sheet in sheets(found))])


def latex(found: Findings) -> str:
    """The tables that go into a paper, for ``booktabs``."""
    chosen = [sheet for sheet in sheets(found) if sheet.key in _PAPER]
    head = "% \\usepackage{booktabs}; 95 % intervals by bootstrap over tasks and seeds\n"
    used: dict[str, int] = {}
    parts = []
    for sheet in chosen:
        used[sheet.key] = used.get(sheet.key, 0) + 1
        label = sheet.key if used[sheet.key] == 1 else f"{sheet.key}-{used[sheet.key]}"
        parts.append(_latex(sheet, label))
    return head + "\n".join(parts)


def comparison(found: Comparison, console: Console) -> None:
    """Print what ``kernelsmith bench compare A B`` answers."""
    for sheet in comparison_sheets(found):
        _print(sheet, console)


def comparison_markdown(found: Comparison) -> str:
    """The same for a pull request."""
    return "\n".join(_markdown(sheet) for sheet in comparison_sheets(found))


def comparison_sheets(found: Comparison) -> list[Sheet]:
    """Metric by metric, test by test, level by level, and the tasks that moved most."""
    made: list[Sheet] = []
    for each in found.contrasts:
        made += [_metrics(each), _tests(each), *_levels(each), _moved(each)]
    if found.unpaired:
        note = "on one side only, not compared: " + ", ".join(found.unpaired)
        made[0] = Sheet(
            title=made[0].title, header=made[0].header, rows=made[0].rows,
            notes=(*made[0].notes, note), key=made[0].key,
        )  # fmt: skip
    return [sheet for sheet in made if sheet.rows]


def _metrics(found: Contrast) -> Sheet:
    return Sheet(
        title=f"{found.second} against {found.first}, {found.measure}, {found.tasks} common tasks",
        header=("metric", found.first, found.second, "change"),
        rows=tuple(
            (Cell(BY_NAME[each.metric].label), cell(each.first, BY_NAME[each.metric].unit),
             cell(each.second, BY_NAME[each.metric].unit), changed(each))
            for each in found.differences
        ),
        notes=(*((found.said,) if found.said else ()),
               "change: paired over the tasks on which both sides say something; p by paired "
               f"bootstrap{_after_holm(found)}, * below 0.05"),
        key="compare",
    )  # fmt: skip


def _after_holm(found: Contrast) -> str:
    corrected = any(each.corrected is not None for each in found.differences)
    return ", after Holm over the pairs" if corrected else ""


def _tests(found: Contrast) -> Sheet:
    return Sheet(
        title="Task by task",
        header=("metric", "test", "second better", "first better", "ties", "p"),
        rows=tuple(
            (Cell(BY_NAME[name].label), Cell(test.name), Cell(str(test.wins)),
             Cell(str(test.losses)), Cell(str(test.ties)),
             Cell(p_value(test.p)))
            for name, test in found.tests
        ),
        text_columns=2, key="tests",
    )  # fmt: skip


def _levels(found: Contrast) -> list[Sheet]:
    if not found.by_level:
        return []
    names = [each.metric for each in found.by_level[0][1]]
    rows = []
    for level, differences in found.by_level:
        known = {each.metric: each for each in differences}
        rows.append((Cell(level), *(changed(known.get(name)) for name in names)))
    return [
        Sheet(title="By level", header=("level", *(BY_NAME[name].label for name in names)),
              rows=tuple(rows), key="compare-levels",
              notes=("p for each level by itself",))
    ]  # fmt: skip


def _moved(found: Contrast) -> Sheet:
    both = [task for task in found.each if task.ratio is not None]
    most = both
    if len(both) > 2 * _SHOWN_TASKS:
        most = [*both[:_SHOWN_TASKS], *both[-_SHOWN_TASKS:]]
    lone = [task for task in found.each if (task.first is None) is not (task.second is None)]
    notes = [f"{len(both) - len(most)} in between are not shown"] if len(both) > len(most) else []
    if neither := sum(task.first is None and task.second is None for task in found.each):
        notes.append(f"solved by neither: {neither}")
    return Sheet(
        title="Tasks that moved most",
        header=("task", found.first, found.second, "ratio"),
        rows=tuple(_task(task) for task in (*most, *lone)), notes=tuple(notes), key="tasks",
    )  # fmt: skip


def _task(task: OnTask) -> tuple[Cell, ...]:
    sides = [Cell("failed" if v is None else written(v, Unit.RATIO)) for v in
             (task.first, task.second)]  # fmt: skip
    return (Cell(task.entry), *sides, Cell(NONE if task.ratio is None else f"{task.ratio:.3f}x"))


def _one_per_baseline(shown: Sequence[Sheet]) -> list[Sheet]:
    kept, seen = [], set()
    for sheet in shown:
        if sheet.key == "overall":
            baseline = sheet.title.partition(",")[0]
            if baseline in seen:
                continue
            seen.add(baseline)
        kept.append(sheet)
    return kept


def _print(sheet: Sheet, console: Console) -> None:
    """One table, or several below each other where its columns do not fit beside each other."""
    console.print(Text(sheet.title, style="bold"))
    names = {row[0].text for row in sheet.rows}
    can_turn = len(names) == len(sheet.rows) and sheet.text_columns == 1
    is_narrow = sum(_widths(sheet.header, sheet.rows, "\n")) > console.width
    is_turned = can_turn and len(sheet.header) > _MANY and (len(names) <= _BESIDE or is_narrow)
    header, rows = _turned(sheet) if is_turned else (sheet.header, sheet.rows)
    between, words = " " if is_turned else "\n", sheet.text_columns
    fits = sum(_widths(header, rows, between)) <= console.width
    # a long heading may take several lines; figures may not
    wide = _widths(["\n".join(name.split()) for name in header], rows, between)
    for columns in [range(len(header))] if fits else _parts(wide, words, console.width):
        made = Table(pad_edge=False, box=SIMPLE_HEAD)
        for index in columns:
            side: JustifyMethod = "left" if index < words else "right"
            width = None if fits or index < words else wide[index] - _AROUND
            made.add_column(Text(header[index]), justify=side, overflow="fold", width=width)
        for row in rows:
            made.add_row(*(_rich(row[index], between) for index in columns))
        console.print(made)
    for note in sheet.notes:
        console.print(Text(note, style="dim"))
    console.print()


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
        _AROUND + max(cell_len(line) for text in column for line in text.rstrip().split("\n"))
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


def _rich(each: Cell, between: str) -> Text:
    text = Text(each.text, style="bold" if each.is_best else "")
    if each.interval:
        text.append(f"{between}{each.interval}", style="dim")
    return text


def _markdown(sheet: Sheet) -> str:
    lines = [f"## {_in_markdown(sheet.title)}", ""]
    lines.append("| " + " | ".join(map(_in_markdown, sheet.header)) + " |")
    sides = ["---" if i < sheet.text_columns else "---:" for i in range(len(sheet.header))]
    lines.append(f"|{'|'.join(sides)}|")
    for row in sheet.rows:
        lines.append("| " + " | ".join(_cell_in_markdown(each) for each in row) + " |")
    lines.append("")
    for note in sheet.notes:
        lines += [_in_markdown(_sentence(note)) + ".", ""]
    return "\n".join(lines)


def _sentence(note: str) -> str:
    return note[:1].upper() + note[1:]


def _cell_in_markdown(each: Cell) -> str:
    text = _in_markdown(each.text)
    if each.is_best:
        text = f"**{text}**"
    return f"{text} {_in_markdown(each.interval)}".rstrip()


def _in_markdown(text: str) -> str:
    """Harmless in a table's cell: names and reasons are not ours."""
    text = re.sub(r"\s+", " ", text).replace("\\", "\\\\").replace("|", "\\|")
    return text.replace("<", "&lt;").replace("*", "\\*").replace("`", "\\`")


def _latex(sheet: Sheet, label: str) -> str:
    columns = "l" * sheet.text_columns + "r" * (len(sheet.header) - sheet.text_columns)
    lines = [
        r"\begin{table}[t]", r"\centering\small",
        rf"\caption{{{_in_latex('. '.join(map(_sentence, [sheet.title, *sheet.notes])))}.}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
        " & ".join(map(_in_latex, sheet.header)) + r" \\", r"\midrule",
        *(" & ".join(map(_cell_in_latex, row)) + r" \\" for row in sheet.rows),
        r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _cell_in_latex(each: Cell) -> str:
    text = _in_latex(each.text)
    if each.is_best:
        text = rf"\textbf{{{text}}}"
    if not each.interval:
        return text
    # below the figure: beside it, ten columns do not fit a page
    below = r" \\ ".join(rf"\scriptsize {_in_latex(part)}" for part in each.interval.split("\n"))
    return rf"\shortstack[r]{{{text} \\ {below}}}"


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in re.sub(r"\s+", " ", text))
