"""KernelBench, levels 1 to 4, from a checkout or the folder in it.

Handled: one exec context for both sides, inputs from a public seed, comparison before the timing
only, three digits of a mean (here: our judge). Problems known to be degenerate carry a note.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.degenerate import note_of
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import dtype_of, missing_package, promised
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import load_task, read_source

_WEIGHTS = "loads a pretrained model from Hugging Face, which a sandbox without network cannot"
_CATEGORIES = {1: "single operators", 2: "fused operators", 3: "architectures", 4: "models"}


class KernelBench:
    """A checkout of ScalingIntelligence/KernelBench, or its folder of levels."""

    name = "kernelbench"

    def __init__(self, path: Path) -> None:
        inner = path / "KernelBench"
        self._root = inner if inner.is_dir() else path
        if not any(self._root.glob("level*/*.py")):
            raise UsageError(f"{str(path)!r} holds no KernelBench/level1")

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield level by level, by number."""
        for level in (1, 2, 3, 4):
            folder = self._root / f"level{level}"
            if not folder.is_dir():
                yield Absent(
                    id=f"{self.name}/level{level}", reason="not in this checkout",
                    level=f"level {level}",
                )  # fmt: skip
                continue
            for path in sorted(folder.glob("*.py"), key=_number):
                yield self._entry(level, path)

    def _entry(self, level: int, path: Path) -> Entry | Absent:
        number = _number(path)
        name = f"{self.name}/level{level}/{number}"
        absent = partial(Absent, id=name, level=f"level {level}")
        try:
            source = read_source(path, "task")
            if "from_pretrained" in source:
                return absent(reason=_WEIGHTS)
            if package := missing_package(source):
                return absent(reason=f"needs {package}: pip install {package}")
            task = promised(load_task(path), path.stem)
        except (UsageError, SyntaxError) as error:
            return absent(reason=str(error))
        words = re.sub(r"^\d+_", "", path.stem)
        return Entry(
            id=name, task=task, level=f"level {level}", category=_CATEGORIES[level],
            family="model" if level >= 3 else family_of(words), dtype=dtype_of(source),
            note=note_of(level, number),
        )  # fmt: skip


def _number(path: Path) -> int:
    found = re.match(r"\d+", path.name)
    return int(found[0]) if found else 0
