"""The zoo: candidate files with a header that says what they are and what should become of them."""

from dataclasses import dataclass
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tasks import load_candidate, load_task
from kernelsmith.evaluate.timing.sampling import StopRule

HERE = Path(__file__).parent

QUICK = Settings(
    stop=StopRule(target_width=0.5, min_pairs=1, max_pairs=1, min_samples=3, budget_s=20.0),
    sample_us=2000.0,
    max_launches=256,
    warmups=1,
    profiled=3,
    robust=False,
)
"""Enough to convict; speed-ups measured so are not quoted anywhere."""


@dataclass(frozen=True)
class Animal:
    """One file of the zoo."""

    path: Path
    number: str
    """Catalogue number, such as ``A1``; ``H`` with a word for honest ones."""
    task: str
    expected: tuple[Verdict, ...]
    """With the static guard on."""
    behaviour: tuple[Verdict, ...]
    """With the static guard off: what the evidence alone says."""
    slow: bool = False
    """Whether judging it takes a minute the first time; its test is marked ``slow``."""

    @property
    def candidate(self) -> Candidate:
        return load_candidate(self.path, "cpu")


def read(path: Path) -> Animal:
    """Read the header: lines ``# key: value`` at the top of the file."""
    header = {}
    for line in path.read_text().splitlines():
        if not line.startswith("# "):
            break
        key, _, value = line[2:].partition(":")
        header[key.strip()] = value.strip()
    expected = tuple(Verdict(each) for each in header["expect"].split())
    behaviour = tuple(Verdict(each) for each in header.get("behaviour", header["expect"]).split())
    slow = header.get("slow", "no") == "yes"
    return Animal(path, header["number"], header["task"], expected, behaviour, slow)


def animals(folder: str) -> list[Animal]:
    """All files of ``offenders`` or ``honest``, in order of name."""
    return [read(path) for path in sorted((HERE / folder).glob("*.py"))]


def shown_always(folder: str) -> set[Path]:
    """The files that every ``make test`` judges; the others are for ``make test-full``.

    One offender per catalogue number and every third honest one: some two minutes on two cores.
    """
    found = animals(folder)
    if folder == "honest":
        return {animal.path for animal in found[::3]}
    first: dict[str, Path] = {}
    for animal in found:
        first.setdefault(animal.number, animal.path)
    return set(first.values())


def parameters(folder: str) -> list[ParameterSet]:
    """All files as test parameters, marked slow where they are not judged every time."""
    always = shown_always(folder)
    return [
        pytest.param(
            animal,
            id=animal.path.stem,
            marks=[pytest.mark.slow] if animal.slow or animal.path not in always else [],
        )
        for animal in animals(folder)
    ]


def task(name: str) -> Task:
    """One of the zoo's small tasks."""
    return load_task(HERE / "tasks" / f"{name}.py")
