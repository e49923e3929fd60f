"""From journals to samples: every judged step of every run, with its lineage and its kind."""

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kernelsmith.bench.suites.families import FAMILIES, family_of
from kernelsmith.bench.suites.reading import declared
from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.errors import UsageError
from kernelsmith.run.journal import read
from kernelsmith.run.recorded import Recorded
from kernelsmith.run.start import JOURNAL
from kernelsmith.training.data.sample import Sample, Stage

EXPERT_STEPS = 40
"""How far the paper evolves on its expert tasks; later steps of a longer run are left out."""
_PLUMBING = {"Module", "Parameter", "ModuleList", "Sequential", "randn", "rand", "zeros", "ones",
             "empty", "tensor", "manual_seed", "randint", "full", "arange"}  # fmt: skip


def journals_in(paths: Iterable[Path]) -> list[Path]:
    """The journals at these places: files, runs, or folders with runs anywhere below.

    Raises:
        UsageError: There is none at one of them.
    """
    found: list[Path] = []
    for path in paths:
        here = [path] if path.is_file() else sorted(path.rglob(JOURNAL))
        if not here:
            raise UsageError(f"no run in {str(path)!r}: there is no {JOURNAL} below it")
        found += here
    return list(dict.fromkeys(each.resolve() for each in found))


def read_samples(
    paths: Sequence[Path], stage: Stage, centres: Sequence[str] | None = None
) -> list[Sample]:
    """Read runs, and take their judged steps as samples; ``centres`` names the only tasks wanted.

    Raises:
        UsageError: A journal cannot be read, or there is none.
    """
    samples: list[Sample] = []
    for path in journals_in(paths):
        recorded = read(path)
        if centres is None or recorded.header.task.name in centres:
            samples += samples_of(recorded, stage)
    return samples


def samples_of(recorded: Recorded, stage: Stage) -> Iterator[Sample]:
    """The judged steps of one run in order.

    A duplicate is left out: its step was not judged, it repeats what an earlier one was told.
    """
    task = recorded.header.task
    family, difficulty = family_in(task), difficulty_of(task)
    name = recorded.header.run or task.name
    roots: dict[CandidateId, tuple[CandidateId, int]] = {}
    for step in recorded.steps[: EXPERT_STEPS if stage is Stage.EXPERT else None]:
        if step.candidate is None or step.evaluation is None:
            continue
        if step.placement.outcome is Outcome.DUPLICATE:
            continue
        parent = step.brief.parent.candidate.id if step.brief.parent is not None else None
        root, depth = roots.get(parent, (parent, 0)) if parent is not None else (None, -1)
        place = (root or step.candidate.id, depth + 1)
        roots.setdefault(step.candidate.id, place)
        yield Sample(
            run=name, stage=stage, step=step, family=family, difficulty=difficulty,
            lineage=place[0], depth=place[1],
        )  # fmt: skip


def family_in(task: Task) -> str:
    """As the task file declares it, else guessed from its name."""
    said = _declared(task).get("FAMILY", "")
    return said if said in FAMILIES else family_of(task.name)


def difficulty_of(task: Task) -> int:
    """1 to 3: as declared, else by the number and kinds of operators that the reference calls."""
    said = _declared(task).get("DIFFICULTY", "")
    if said.isdigit():
        return min(max(int(said), 1), 3)
    kinds = operators_of(task)
    heavy = sum(bool(re.search(r"conv|linear|matmul|attention|bmm|einsum", each)) for each in kinds)
    weight = len(kinds) + 2 * heavy
    return 1 if weight <= 2 else 2 if weight <= 7 else 3


def operators_of(task: Task) -> list[str]:
    """Names of what the reference's own code calls, in order; empty where it is no Python."""
    try:
        tree = ast.parse(task.source)
    except SyntaxError:
        return []
    places = [node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    found: list[str] = []
    for place in places:
        if isinstance(place, ast.FunctionDef) and place.name.startswith("get_"):
            continue
        for node in ast.walk(place):
            if isinstance(node, ast.Call):
                called = node.func
                name = called.attr if isinstance(called, ast.Attribute) else ""
                if name and not name.startswith("_") and name not in _PLUMBING:
                    found.append(name.lower())
    return found


def _declared(task: Task) -> dict[str, str]:
    try:
        return declared(task.source)
    except SyntaxError:  # a null task is an expression with a comment
        return {}
