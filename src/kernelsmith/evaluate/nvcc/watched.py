"""A candidate by itself in a process that a tool of NVIDIA's watches from its beginning."""

import json
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote

_LIMITS = Limits(memory_bytes=None, scratch_bytes=1 << 30, threads=1024, open_files=4096)
_TIMEOUT_S = 60.0
"""Seconds: it has the device to itself meanwhile, and others wait."""
_PACKAGE = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How the tool ended, what it printed, and what it wrote."""

    status: int
    text: str
    files: dict[str, str]


def can_be_watched(task: Task, source: str) -> bool:
    """Whether the candidate runs by itself: torch's own builds would take a minute each."""
    return "load_inline" not in source and not task.is_function


def watched(
    zygote: Zygote, command: Sequence[str], task: Task, source: str, *,
    devices: Sequence[Path] = (), readable: Sequence[Path] = (), outputs: Sequence[str] = (),
) -> Said:  # fmt: skip
    """Run the candidate once on drawn inputs, under ``command``, whose first word is the tool.

    Raises:
        ChildFailed: The process ended, or took too long.
    """
    tool = Path(command[0])
    workload = next(each for each in task.workloads if not each.held_out)
    about = {"inputs": dict(workload.arguments), "init": dict(workload.init)}
    files = {"task.py": task.source, "candidate.py": source, "about.json": json.dumps(about)}
    run = (
        f"import sys; sys.path[:0] = {[str(_PACKAGE), *sys.path]!r}; "
        "from kernelsmith.evaluate.worker.cuda.alone import main; main()"
    )
    line = f"{shlex.join([*command, sys.executable, '-c', run])} 1>&2"
    child = zygote.spawn(
        entry="kernelsmith.evaluate.worker.compiling:serve", profile=Profile.WATCH,
        limits=_LIMITS, devices=devices, readable=[*readable, tool.parent, tool.resolve().parent],
    )  # fmt: skip
    try:
        message = {"files": files, "command": ["sh", "-c", line], "outputs": list(outputs)}
        reply = child.call(message, timeout_s=_TIMEOUT_S)
        made = reply["outputs"]
        assert isinstance(made, dict)
        return Said(
            status=int(str(reply["status"])),
            text=str(reply["stderr"]),
            files={
                name: bytes(child.read(address, size)).decode(errors="replace")
                for name, (address, size) in made.items()
            },
        )
    finally:
        child.kill()
