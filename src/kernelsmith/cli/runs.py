"""A run's folder, as the verbs that work on it see it."""

import re
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.report.heat import Axis
from kernelsmith.report.numbers import Numbers
from kernelsmith.run.recorded import Recorded

REPORT = "report.html"
_STEERING = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def folder_of(path: Path) -> Path:
    """Find a run by its folder or by a file in it.

    Raises:
        UsageError: There is no journal.
    """
    from kernelsmith.run.start import JOURNAL

    folder = path.parent if path.is_file() else path
    if not folder.exists():
        raise UsageError(f"no run {str(path)!r}; a run is a folder with a {JOURNAL}")
    if not (folder / JOURNAL).is_file():
        inside = sorted(each.parent for each in folder.glob(f"*/{JOURNAL}"))
        hint = f"; runs in it: {', '.join(each.name for each in inside[:5])}" if inside else ""
        raise UsageError(f"{str(folder)!r} holds no {JOURNAL}{hint}")
    return folder


def read_run(folder: Path) -> Recorded:
    """Read a run's journal, also while the run is under way."""
    from kernelsmith.run.journal import read
    from kernelsmith.run.start import JOURNAL

    return read(folder / JOURNAL)


def write_report(folder: Path, recorded: Recorded, numbers: Numbers) -> Path:
    """Write the run's page beside its journal."""
    from kernelsmith.report.about import about_of
    from kernelsmith.report.page import page
    from kernelsmith.run.best import replace_file

    about = about_of(
        recorded,
        folder=str(folder),
        axes=axes_of(recorded),
        has_parent=len(numbers.lineage) > 1,
    )
    path = folder / REPORT
    replace_file(path, page(numbers, about))
    return path


def axes_of(recorded: Recorded) -> tuple[Axis, ...]:
    """What the cells of a run's archive are made of."""
    from kernelsmith.search.descriptors import DIMENSIONS

    found = []
    for name in recorded.config.search.dimensions:
        dimension = DIMENSIONS[name]
        labels = tuple(dimension.label(index) for index in range(dimension.size))
        found.append(Axis(name=name, labels=labels))
    return tuple(found)


def visible(text: str) -> str:
    """Text from anywhere, for a terminal: what would steer it is shown as a question mark."""
    return _STEERING.sub("\ufffd", text.replace("\r\n", "\n"))
