"""compute-sanitizer on a candidate that passed: accesses out of bounds, races, stale memory.

It watches a process of its own in which the candidate runs once on drawn inputs. What that
process computes is not looked at again: this is about undefined behaviour that outputs do not show.
"""

import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.sandbox.errors import ChildFailed
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote
from kernelsmith.kernels.toolkit import Toolkit

TOOLS = ("memcheck", "racecheck", "initcheck")
FOUND = 86
"""Exit status that says that the tool found something."""
Examined = tuple[str, str, bool]
"""The tool, what it said in a line, and whether that is nothing."""
_LIMITS = Limits(memory_bytes=None, scratch_bytes=1 << 30, threads=1024, open_files=4096)
_TIMEOUT_S = 120.0
_PACKAGE = Path(__file__).resolve().parents[3]


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
    if "load_inline" in source or task.is_function:
        return []
    workload = next(each for each in task.workloads if not each.held_out)
    about = {"inputs": dict(workload.arguments), "init": dict(workload.init)}
    files = {"task.py": task.source, "candidate.py": source, "about.json": json.dumps(about)}
    run = (
        f"import sys; sys.path[:0] = {[str(_PACKAGE), *sys.path]!r}; "
        "from kernelsmith.evaluate.worker.cuda.alone import main; main()"
    )
    found = []
    for name in TOOLS:
        command = [str(tool), "--tool", name, "--error-exitcode", str(FOUND), "--print-limit", "3"]
        line = f"{shlex.join([*command, sys.executable, '-c', run])} 1>&2"
        child = zygote.spawn(
            entry="kernelsmith.evaluate.worker.compiling:serve", profile=Profile.BUILD,
            limits=_LIMITS, devices=devices,
            readable=[*readable, tool.parent, tool.resolve().parent],
        )  # fmt: skip
        message = {"files": files, "command": ["sh", "-c", line], "outputs": []}
        try:
            reply = child.call(message, timeout_s=_TIMEOUT_S)
        except ChildFailed as error:
            found.append((name, f"did not run: {str(error)[:200]}", True))
            continue
        finally:
            child.kill()
        found.append(_read(name, int(str(reply["status"])), str(reply["stderr"])))
    return found


def _read(name: str, status: int, said: str) -> Examined:
    if status == 0:
        return name, "no errors", True
    lines = [line.lstrip("= ").strip() for line in said.splitlines()]
    lines = [line for line in lines if line and not line.startswith("COMPUTE-SANITIZER")]
    if status == FOUND:
        return name, "; ".join(lines[:3])[:500] or "errors", False
    return name, f"did not run: {' '.join(lines[-1:])[:300]}", True
