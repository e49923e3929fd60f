"""What a bench leaves beside its records: ``results.json``, ``report.html`` and tables."""

from pathlib import Path

from kernelsmith.bench.ledger import Results
from kernelsmith.bench.numbers.compare import Comparison
from kernelsmith.bench.numbers.findings import Findings, as_json, findings
from kernelsmith.bench.numbers.scores import Measure
from kernelsmith.bench.output import page, tables
from kernelsmith.errors import UsageError
from kernelsmith.run.best import replace_file

RESULTS, REPORT, MARKDOWN, LATEX = "results.json", "report.html", "table.md", "table.tex"
COMPARED, COMPARED_MARKDOWN = "compare.json", "compare.md"


def write(results: Results, folder: Path, *, measure: Measure | None = None) -> Findings:
    """Work everything out and write it down.

    Raises:
        UsageError: It cannot be written.
    """
    found = findings(results.records, missing=results.missing, measure=measure)
    try:
        replace_file(folder / RESULTS, as_json(found))
        replace_file(folder / MARKDOWN, tables.markdown(found))
        replace_file(folder / LATEX, tables.latex(found))
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    page.write(found, folder / REPORT)
    return found


def write_comparison(found: Comparison, folder: Path) -> None:
    """Write a comparison for machines and for a pull request.

    Raises:
        UsageError: It cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / COMPARED, found.as_json())
        replace_file(folder / COMPARED_MARKDOWN, tables.comparison_markdown(found))
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
