"""Any folder of KernelBench files, sub-folders included."""

from collections.abc import Iterator
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.families import family_of
from kernelsmith.bench.suites.reading import declared, dtype_of, missing_package
from kernelsmith.bench.suites.survey import Surveyor
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import load_task, read_source


class Folder:
    """Files as they are; what stands in sub-folders has these as its category."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            raise UsageError(f"{str(path)!r} is no folder")
        self._root = path
        if not any(self._paths()):
            raise UsageError(f"{str(path)!r} holds no task: there is no .py in it")
        self.name = path.resolve().name.replace(" ", "_") or "folder"

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield every Python file below, in the order of names."""
        with Surveyor() as surveyor:
            for path in sorted(self._paths()):
                yield self._entry(path, surveyor)

    def _paths(self) -> Iterator[Path]:
        for path in self._root.rglob("*.py"):
            parts = path.relative_to(self._root).parts
            if not any(part.startswith((".", "_")) for part in parts):
                yield path

    def _entry(self, path: Path, surveyor: Surveyor) -> Entry | Absent:
        inside = path.relative_to(self._root).with_suffix("")
        name = f"{self.name}/{inside.as_posix()}".replace(" ", "_")
        try:
            source = read_source(path, "task")
            if package := missing_package(source):
                return Absent(id=name, reason=f"needs {package}: pip install {package}")
            task = load_task(path, surveyor.ask)
        except (UsageError, SyntaxError) as error:
            return Absent(id=name, reason=str(error))
        category = inside.parent.as_posix() if inside.parent != Path() else ""
        said = declared(source)
        return Entry(
            id=name, task=task, level=said.get("DIFFICULTY", ""), category=category,
            family=said.get("FAMILY") or family_of(path.stem, category), dtype=dtype_of(source),
        )  # fmt: skip
