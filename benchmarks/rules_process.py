"""A command with a limit on its time; all that it started ends with it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from types import MappingProxyType

from benchmarks.report import ROOT, without_paths
from kernelsmith.propose.rules.compiler.nursery import Ended

_LOOK_S = 0.5
"""How often it is looked whether to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """How a command ended."""

    output: str
    error: str
    """Empty where it did what it should: else its last words, or that the time was up."""
    cut_short: bool = False


def bounded(
    module: str, arguments: Sequence[str], *, limit_s: float, stop: Event | None = None,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Done:  # fmt: skip
    """Run one of our modules, until it ends, the time is up, or another thread says stop.

    ``more`` is added to its environment.
    """
    process = subprocess.Popen(
        [sys.executable, "-m", module, *arguments], cwd=ROOT, process_group=0, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment() | dict(more),
    )  # fmt: skip
    begun = time.monotonic()
    said: tuple[str, str] | None = None
    try:
        while said is None:
            left = limit_s - (time.monotonic() - begun)
            if left <= 0 or (stop is not None and stop.is_set()):
                return _cut_short(limit_s)
            with suppress(subprocess.TimeoutExpired):
                said = process.communicate(timeout=min(left, _LOOK_S))
    finally:
        _end(process)
    output, errors = said
    return _ended(process.returncode, errors, output=output)


def done_by(ended: Ended, limit_s: float) -> Done:
    """The same of a process that a nursery forked."""
    return _cut_short(limit_s) if ended.status is None else _ended(ended.status, ended.said)


def environment() -> dict[str, str]:
    """Ours, with our own modules to be found."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    return os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)}


def _cut_short(limit_s: float) -> Done:
    return Done(output="", error=f"cut short after {limit_s:.0f} s", cut_short=True)


def _ended(status: int, errors: str, *, output: str = "") -> Done:
    if not status:
        return Done(output=output, error="")
    tail = " | ".join(errors.strip().splitlines()[-2:]) or f"exit {status}"
    return Done(output=output, error=without_paths(tail))


def _end(process: subprocess.Popen[str]) -> None:
    """End it and everything below it; some of that has sessions of its own."""
    for pid in [*_below(process.pid), process.pid]:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _below(root: int) -> list[int]:
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return sorted(found - {root}, reverse=True)
