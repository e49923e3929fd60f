"""The built-in suite: the tasks that come with Kernel-Smith's sources."""

from collections.abc import Iterator
from pathlib import Path

from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.bench.suites.reading import declared
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.tasks import load_task, read_source

FOLDER = Path(__file__).parents[4] / "tasks"


class Builtin:
    """Tasks with a family and a difficulty of their own; see ``docs/tasks.md``."""

    name = "builtin"
    _absent = (
        "the built-in tasks are not at {path!r}: they come with the sources; clone the repository "
        "and install it with pip install -e, or use folder:PATH"
    )

    def __init__(self, path: Path = FOLDER) -> None:
        if not any(path.glob("*.py")):
            raise UsageError(self._absent.format(path=str(path)))
        self._root = path

    def entries(self) -> Iterator[Entry | Absent]:
        """Yield tasks in the order of names."""
        for path in sorted(self._root.glob("*.py")):
            name = f"{self.name}/{path.stem}"
            try:
                task = load_task(path)
            except UsageError as error:
                yield Absent(id=name, reason=str(error))
                continue
            said = declared(read_source(path, "task"))
            origin = said.get("ORIGIN", "")
            timed = [each.dtype for each in task.workloads if not each.held_out]
            yield Entry(
                id=name, task=task, level=f"difficulty {said.get('DIFFICULTY', '?')}",
                category=said.get("FAMILY", ""), family=said.get("FAMILY", "other"),
                dtype=timed[0] or "float32", note=f"shapes of {origin}" if origin else "",
            )  # fmt: skip
