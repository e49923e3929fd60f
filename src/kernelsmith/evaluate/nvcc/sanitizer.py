"""compute-sanitizer on a candidate that passed: accesses out of bounds, races, stale memory.

It watches a process of its own in which the candidate runs once on drawn inputs. What that
process computes is not looked at again: this is about undefined behaviour that outputs do not show.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.nvcc.watched import can_be_watched, watched
from kernelsmith.evaluate.sandbox.errors import ChildFailed
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.toolkit import Toolkit

TOOLS = ("memcheck", "racecheck", "initcheck")
FOUND = 86
"""Exit status that says that the tool found something."""
Examined = tuple[str, str, bool]
"""The tool, what it said in a line, and whether that is nothing."""


def find_sanitizer(toolkit: Toolkit) -> Path | None:
    """On the path, or beside nvcc."""
    found = shutil.which("compute-sanitizer")
    if found:
        return Path(found)
    beside = toolkit.nvcc.parent / "compute-sanitizer" if toolkit.nvcc is not None else None
    return beside if beside is not None and beside.exists() else None


def examined(
    zygote: Zygote, tool: Path, task: Task, source: str, *, devices: Sequence[Path] = (),
    readable: Sequence[Path] = (),
) -> list[Examined]:  # fmt: skip
    """Run the candidate under each tool; one that cannot run is no finding."""
    if not can_be_watched(task, source):
        return []
    found = []
    for name in TOOLS:
        command = [str(tool), "--tool", name, "--error-exitcode", str(FOUND), "--print-limit", "3"]
        try:
            said = watched(zygote, command, task, source, devices=devices, readable=readable)
        except ChildFailed as error:
            found.append((name, f"did not run: {str(error)[:200]}", True))
            rest = TOOLS[len(found) :]  # one that hangs does so under each of its names
            return [*found, *((each, f"not run after {name}", True) for each in rest)]
        found.append(_read(name, said.status, said.text))
    return found


def _read(name: str, status: int, said: str) -> Examined:
    if status == 0:
        return name, "no errors", True
    lines = [line.lstrip("= ").strip() for line in said.splitlines()]
    lines = [line for line in lines if line and not line.startswith("COMPUTE-SANITIZER")]
    if status == FOUND:
        return name, "; ".join(lines[:3])[:500] or "errors", False
    return name, f"did not run: {' '.join(lines[-1:])[:300]}", True
