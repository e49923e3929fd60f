"""What the built-in tasks say about themselves, and the page of documentation made from it.

``python tests/tasks/suite_table.py`` writes the page anew.
"""

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATHS = sorted((ROOT / "tasks").glob("*.py"))
PAGE = ROOT / "docs" / "tasks.md"

FAMILIES = (
    "elementwise", "activation", "reduction", "scan", "normalisation", "attention", "loss",
    "matmul", "batched matmul", "convolution", "transposed convolution", "pooling", "indexing",
    "sorting", "routing", "quantisation", "recurrence", "optimiser", "image", "sparse",
)  # fmt: skip

_HEAD = """\
# The built-in tasks

{count} tasks in {families} families, written for Kernel-Smith; what a file holds is in
[formats](formats.md). Each has at least two workloads that two processor cores do in milliseconds,
one of odd sizes that is checked and never timed nor shown, and, but for `rms_norm`, large ones
named `gpu: ...`, which are left out on a processor. Shapes are those of the model named; where a
workload is only a part of it, its name says so.

Difficulty: 1 is one pass over the data, or one library call; 2 fuses several, or reads where the
data says; 3 rewards another algorithm than the one written down (online softmax, a scan in
parallel, a product grouped by expert).

`kernelsmith optimize --suite tasks` runs them all. This page is made by
`python tests/tasks/suite_table.py`; a test holds it against the files.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One task, in its own words."""

    name: str
    family: str
    difficulty: int
    origin: str
    about: str


def row(path: Path) -> Row:
    tree = ast.parse(path.read_text())
    said = {
        node.targets[0].id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    return Row(
        name=path.stem,
        family=said["FAMILY"],
        difficulty=said["DIFFICULTY"],
        origin=said["ORIGIN"],
        about=ast.get_docstring(tree).removesuffix("."),
    )


def page() -> str:
    rows = sorted(map(row, PATHS), key=lambda r: (FAMILIES.index(r.family), r.difficulty, r.name))
    lines = [_HEAD.format(count=len(rows), families=len({each.family for each in rows}))]
    lines += ["| family | task | difficulty | what it is | from |", "|---|---|---|---|---|"]
    lines += [
        f"| {each.family} | [`{each.name}`](../tasks/{each.name}.py) | {each.difficulty} "
        f"| {each.about} | {each.origin} |"
        for each in rows
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page())
