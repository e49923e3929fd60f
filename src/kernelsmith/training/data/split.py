"""Training and held-out tasks: split by task, with near copies on the same side."""

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.training.data.sample import Sample

ALIKE = 0.7
"""Jaccard likeness of 5-word shingles from which two references are copies of each other."""
_SHINGLE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Which tasks are trained on, which are held out, and which are neither."""

    train: frozenset[str]
    held_out: frozenset[str]
    dropped: frozenset[str] = frozenset()
    """Copies of a benchmark's tasks: they belong nowhere."""

    def of(self, samples: Iterable[Sample]) -> tuple[list[Sample], list[Sample]]:
        """The samples of both sides."""
        every = list(samples)
        return (
            [each for each in every if each.task.name in self.train],
            [each for each in every if each.task.name in self.held_out],
        )


def split(
    tasks: Sequence[Task], *, share: float = 0.2, seed: int = 0, benchmark: Sequence[Task] = (),
    held_out: Sequence[str] = (),
) -> Split:  # fmt: skip
    """Hold out about ``share`` of the tasks, groups of near copies together.

    Args:
        tasks: Each once, whatever the number of runs on it.
        share: Of the tasks.
        seed: Another split.
        benchmark: What results will be reported on; copies of these are dropped.
        held_out: Names to hold out instead of a drawn share; their copies go with them.

    Raises:
        UsageError: A name is unknown, or the share leaves a side empty on purpose.
    """
    if not 0 <= share < 1:
        raise UsageError(f"a held-out share lies in 0 to 1; got {share}")
    named = {each.name: each for each in tasks}
    if unknown := sorted(set(held_out) - set(named)):
        raise UsageError(f"no task {unknown[0]!r} to hold out; there are {', '.join(named)}")
    shingles = {name: shingles_of(task.source) for name, task in named.items()}
    known = [shingles_of(task.source) for task in benchmark]
    dropped = {
        name for name, mine in shingles.items() if any(likeness(mine, b) >= ALIKE for b in known)
    }
    groups = _groups({name: shingles[name] for name in named if name not in dropped})
    kept = sum(len(group) for group in groups)
    out: set[str] = set()
    if held_out:
        out = {name for group in groups if group & set(held_out) for name in group}
    else:
        for group in sorted(groups, key=lambda names: _hash(sorted(names)[0], seed)):
            if len(out) + len(group) <= max(
                round(share * kept), 1 if share > 0 and kept > 1 else 0
            ):
                out |= group
    return Split(
        train=frozenset(named) - out - dropped, held_out=frozenset(out), dropped=frozenset(dropped)
    )


def shingles_of(source: str) -> frozenset[str]:
    """Every five words in a row of what a reference computes, names of classes left out."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        words = re.findall(r"\w+|[^\s\w]", source)
    else:
        body = [
            node for node in tree.body
            if not (isinstance(node, ast.FunctionDef) and node.name.startswith("get_"))
            and isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Expr)
            and not _is_docstring(node)
        ]  # fmt: skip
        text = "\n".join(ast.unparse(node) for node in body)
        names = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
        words = ["CLASS" if w in names else w for w in re.findall(r"\w+|[^\s\w]", text)]
    last = max(1, len(words) - _SHINGLE + 1)
    return frozenset(" ".join(words[at : at + _SHINGLE]) for at in range(last))


def likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard: 1 for copies."""
    either = len(one | other)
    return len(one & other) / either if either else 0.0


def _groups(shingles: Mapping[str, frozenset[str]]) -> list[set[str]]:
    """Names that are linked by likeness, directly or through others."""
    home = {name: name for name in shingles}

    def root(name: str) -> str:
        while home[name] != name:
            name = home[name]
        return name

    names = sorted(shingles)
    holders: dict[str, list[str]] = {}
    for name in names:  # only those who share a shingle can be alike
        near = {other for each in shingles[name] for other in holders.get(each, ())}
        for other in sorted(near):
            if likeness(shingles[name], shingles[other]) >= ALIKE:
                home[root(name)] = root(other)
        for each in shingles[name]:
            holders.setdefault(each, []).append(name)
    groups: dict[str, set[str]] = {}
    for name in names:
        groups.setdefault(root(name), set()).add(name)
    return list(groups.values())


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _hash(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed} {name}".encode()).hexdigest()
