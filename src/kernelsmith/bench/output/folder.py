"""What a bench leaves beside its records: ``results.json``, ``report.html`` and tables."""

from pathlib import Path

from kernelsmith.bench.ledger import Results
from kernelsmith.bench.numbers.findings import Findings, as_json, findings
from kernelsmith.bench.output import page, tables
from kernelsmith.errors import UsageError
from kernelsmith.run.best import replace_file

RESULTS, REPORT, MARKDOWN, LATEX = "results.json", "report.html", "table.md", "table.tex"


def write(results: Results, folder: Path) -> Findings:
    """Work everything out and write it down.

    Raises:
        UsageError: It cannot be written.
    """
    found = findings(results.records, missing=results.missing)
    try:
        replace_file(folder / RESULTS, as_json(found))
        replace_file(folder / MARKDOWN, tables.markdown(found))
        replace_file(folder / LATEX, tables.latex(found))
    except OSError as error:
        raise UsageError(f"cannot write {folder}: {error.strerror}") from error
    page.write(found, folder / REPORT)
    return found
