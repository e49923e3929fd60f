"""Which tasks the rules are measured on: KernelBench's levels, or a folder of our own."""

from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.gpu_references import STRUCTURE, missing, number, spread_over
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.tasks import fitting, load_task

SAMPLE = 10
"""Even-numbered tasks of each level that the long curve is measured on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One task of the benchmark."""

    key: str
    """``level2/17``, or the task's name."""
    path: Path
    structure: tuple[str, ...] = ()
    left_out: str = ""
    """Why nobody can judge it; it counts as not solved."""

    @property
    def group(self) -> str:
        """Its level, or ``tasks``."""
        return self.key.partition("/")[0] if "/" in self.key else "tasks"

    def task(self, *, gpu: bool) -> Task:
        """Read it, as ``kernelsmith optimize`` does."""
        task = fitting(load_task(self.path), gpu=gpu)
        return replace(task, structure=self.structure) if self.structure else task


def file_name(key: str) -> str:
    """A key as part of a file's name."""
    return key.replace("/", "-")


def of_kernelbench(
    checkout: Path, levels: list[int], *, parity: str = "all", sample: bool = False
) -> list[Chosen]:
    """Tasks of some levels; the even-numbered ones are only ever measured.

    Args:
        checkout: A checkout of KernelBench.
        levels: 1 to 3.
        parity: ``odd``, ``even`` or ``all``.
        sample: Ten even-numbered ones of each level, always the same.
    """
    found: list[Chosen] = []
    for level in levels:
        paths = sorted((checkout / "KernelBench" / f"level{level}").glob("*.py"), key=number)
        wanted = {"odd": (1,), "even": (0,), "all": (0, 1)}["even" if sample else parity]
        every = [_chosen(level, path) for path in paths if number(path) % 2 in wanted]
        if sample:
            # What this machine lacks does not change the sample.
            every = spread_over(every, SAMPLE)
        found += every
    return in_turns(found)


def of_folder(folder: Path) -> list[Chosen]:
    """Every task file of a folder."""
    return [Chosen(key=path.stem, path=path) for path in sorted(folder.glob("*.py"))]


def in_turns(tasks: list[Chosen]) -> list[Chosen]:
    """The groups in turn, so that a part of them is spread over all."""
    sizes: dict[str, int] = {}
    for each in tasks:
        sizes[each.group] = sizes.get(each.group, 0) + 1
    place = dict.fromkeys(sizes, 0)
    keyed = []
    for each in tasks:
        keyed.append((place[each.group] / sizes[each.group], each))
        place[each.group] += 1
    return [each for _, each in sorted(keyed, key=lambda pair: (pair[0], pair[1].group))]


def _chosen(level: int, path: Path) -> Chosen:
    key = f"level{level}/{number(path)}"
    package = missing(path.read_text())
    structure, _ = STRUCTURE.get(key, ("", ""))
    return Chosen(
        key=key, path=path, structure=(structure,) if structure else (),
        left_out=f"needs {package}" if package else "",
    )  # fmt: skip
