"""Tables of a bench for a terminal, for Markdown and for LaTeX."""

import re
import textwrap
from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from kernelsmith.bench.numbers.compare import Comparison
from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.output import comparison_sheets
from kernelsmith.bench.output.cells import Cell, Sheet
from kernelsmith.bench.output.layout import Layout, laid
from kernelsmith.bench.output.sheets import sheets

_FIRST = ("overall", "levels", "sound", "clear", "own", "search", "reached", "pairs", "across",
          "missing")  # fmt: skip
"""What a terminal shows; the rest is in the other outputs."""
_PAPER = ("overall", "levels", "sound", "clear", "reached", "stopped", "beyond", "pairs",
          "explained")  # fmt: skip
_PAGE = 90
"""Characters beside each other on a page of one column, in small print."""
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
    for sheet in comparison_sheets.sheets(found):
        _print(sheet, console)


def comparison_markdown(found: Comparison) -> str:
    """The same for a pull request."""
    return "\n".join(_markdown(sheet) for sheet in comparison_sheets.sheets(found))


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
    page = laid(sheet, console.width)
    for columns in page.parts:
        made = Table(pad_edge=False, box=SIMPLE_HEAD)
        for index in columns:
            side: JustifyMethod = "left" if index < page.words else "right"
            width = None if page.widths is None or index < page.words else page.widths[index]
            made.add_column(Text(page.header[index]), justify=side, overflow="fold", width=width)
        for row in page.rows:
            made.add_row(*(_rich(row[index], page.is_turned) for index in columns))
        console.print(made)
    for note in sheet.notes:
        console.print(Text(note, style="dim"))
    console.print()


def _rich(each: Cell, is_turned: bool) -> Text:
    text = Text(each.text, style="bold" if each.is_best else "")
    if each.interval:
        text.append(f"{' ' if is_turned else chr(10)}{each.interval}", style="dim")
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
    """With a capital; a name that stands first keeps its own letters."""
    return f"Of {note}" if re.match(r"\S+:", note) else note[:1].upper() + note[1:]


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
    page = laid(sheet, _PAGE)
    lines = [
        r"\begin{table}[t]", r"\centering\small",
        rf"\caption{{{_in_latex('. '.join(map(_sentence, [sheet.title, *sheet.notes])))}.}}",
        rf"\label{{tab:{label}}}",
    ]  # fmt: skip
    for number, columns in enumerate(page.parts):
        sides = "".join("l" if index < page.words else "r" for index in columns)
        lines += [
            *([r"\par\medskip"] if number else []),
            rf"\begin{{tabular}}{{{sides}}}", r"\toprule",
            " & ".join(_heading_in_latex(page, index) for index in columns) + r" \\", r"\midrule",
            *(
                " & ".join(_cell_in_latex(row[index], page.is_turned) for index in columns)
                + r" \\"
                for row in page.rows
            ),
            r"\bottomrule", r"\end{tabular}",
        ]  # fmt: skip
    return "\n".join([*lines, r"\end{table}", ""])


def _heading_in_latex(page: Layout, index: int) -> str:
    name = page.header[index]
    if page.widths is None or index < page.words:
        return _in_latex(name)
    return _stacked([_in_latex(part) for part in
                     textwrap.wrap(name, page.widths[index], break_long_words=False)])  # fmt: skip


def _cell_in_latex(each: Cell, is_turned: bool) -> str:
    text = _in_latex(each.text)
    if each.is_best:
        text = rf"\textbf{{{text}}}"
    small = [rf"\scriptsize {_in_latex(part)}" for part in each.interval.split("\n") if part]
    if is_turned:
        return " ".join([text, *(f"{{{part}}}" for part in small)])
    # below the figure: beside it, ten columns do not fit a page
    return _stacked([text, *small])


def _stacked(lines: Sequence[str]) -> str:
    joined = r" \\ ".join(lines)
    return rf"\shortstack[r]{{{joined}}}" if len(lines) > 1 else joined


def _in_latex(text: str) -> str:
    return "".join(_LATEX.get(char, char) for char in re.sub(r"\s+", " ", text))
