"""Balance over families and difficulties, so that no kind of task drowns the others."""

import hashlib
from collections.abc import Sequence

from kernelsmith.errors import UsageError
from kernelsmith.training.data.sample import Sample

Cell = tuple[str, int]


def balanced(samples: Sequence[Sample], most: int | None = None, *, seed: int = 0) -> list[Sample]:
    """At most ``most`` samples, spread as evenly over (family, difficulty) as there are any.

    Small cells are kept whole and the room they leave goes to the others (water filling). Inside a
    cell tasks take turns, then a hash decides: adding a run never reshuffles the rest.

    Raises:
        UsageError: ``most`` is no number of samples.
    """
    if most is None or most >= len(samples):
        return list(samples)
    if most < 1:
        raise UsageError(f"a data set holds at least one sample; got {most}")
    cells: dict[Cell, list[Sample]] = {}
    for each in samples:
        cells.setdefault((each.family, each.difficulty), []).append(each)
    level = _level([len(cell) for cell in cells.values()], most)
    chosen: set[str] = set()
    over: list[Sample] = []
    for cell in cells.values():
        ranked = _by_turns(cell, seed)
        chosen |= {each.id for each in ranked[:level]}
        over += ranked[level : level + 1]
    spare = sorted(over, key=lambda each: _hash(each, seed))[: max(0, most - len(chosen))]
    chosen |= {each.id for each in spare}
    return [each for each in samples if each.id in chosen][:most]


def _level(sizes: Sequence[int], most: int) -> int:
    """The largest number per cell that keeps the sum within ``most``."""
    level = 0
    while sum(min(size, level + 1) for size in sizes) <= most and level < max(sizes):
        level += 1
    return level


def _by_turns(cell: Sequence[Sample], seed: int) -> list[Sample]:
    tasks: dict[str, list[Sample]] = {}
    for each in sorted(cell, key=lambda sample: _hash(sample, seed)):
        tasks.setdefault(each.task.name, []).append(each)
    turns = [(rank, _hash(each, seed), each) for own in tasks.values()
             for rank, each in enumerate(own)]  # fmt: skip
    return [each for _, _, each in sorted(turns, key=lambda turn: turn[:2])]


def _hash(sample: Sample, seed: int) -> str:
    return hashlib.sha256(f"{seed} {sample.id}".encode()).hexdigest()
