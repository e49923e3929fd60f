"""KernelBench, levels 1 to 4, from a checkout or the folder in it; tables hold the same entries.

Handled: one exec context for both sides, inputs from a public seed, comparison before the timing
only, three digits of a mean (here: our judge). Problems known to be degenerate carry a note.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.degenerate import note_of
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import dtype_of, missing_package, promised
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import load_task, read_source

_WEIGHTS = "loads a pretrained model from Hugging Face, which a sandbox without network cannot"
NAME = "kernelbench"
LEVELS = (1, 2, 3, 4)
_CATEGORIES = {1: "single operators", 2: "fused operators", 3: "architectures", 4: "models"}


class KernelBench:
    """A checkout of ScalingIntelligence/KernelBench, or its folder of levels."""

    name = NAME

    def __init__(self, path: Path) -> None:
        inner = path / "KernelBench"
        self._root = inner if inner.is_dir() else path
        if not any(self._root.glob("level*/*.py")):
            raise UsageError(f"{str(path)!r} holds no KernelBench/level1")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield level by level, by number."""
        for level in LEVELS:
            folder = self._root / f"level{level}"
            if not folder.is_dir():
                yield absent_level(level, "checkout")
                continue
            for path in sorted(folder.glob("*.py"), key=_number):
                yield self._entry(level, path)

    def _entry(self, level: int, path: Path) -> Entry | Absent:
        number = _number(path)
        try:
            source = read_source(path, "task")
        except UsageError as error:
            return Absent(id=id_of(level, number), reason=str(error), level=f"level {level}")
        return problem(level, number, path.stem, source, lambda: load_task(path))


def id_of(level: int, number: int) -> str:
    """What a problem is called, wherever it was read from."""
    return f"{NAME}/level{level}/{number}"


def absent_level(level: int, where: str) -> Absent:
    """A level of which nothing is there."""
    reason, name = f"not in this {where}", f"level {level}"
    return Absent(id=f"{NAME}/level{level}", reason=reason, level=name)


def problem(
    level: int, number: int, stem: str, source: str, load: Callable[[], Task],
    *, id: str = "",
) -> Entry | Absent:  # fmt: skip
    """One problem as an entry; ``id`` says otherwise where there are several of it."""
    name = id or id_of(level, number)
    absent = partial(Absent, id=name, level=f"level {level}")
    if "from_pretrained" in source:
        return absent(reason=_WEIGHTS)
    try:
        if package := missing_package(source):
            return absent(reason=f"needs {package}: pip install {package}")
        task = promised(load(), stem)
    except (UsageError, SyntaxError) as error:
        return absent(reason=str(error))
    words = re.sub(r"^\d+_", "", stem)
    return Entry(
        id=name, task=task, level=f"level {level}", category=_CATEGORIES[level],
        family="model" if level >= 3 else family_of(words), dtype=dtype_of(source),
        note=note_of(level, number),
    )  # fmt: skip


def _number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    return int(found[0]) if found else 0
