"""What torch's compiler wrote, kept on disk: the same question is not asked twice.

A file's name is a hash of all that decides the answer: source, workload, options, kind and name of
the device, versions of torch and Triton, and our own code that captures. So nothing has to be
declared stale; what nobody asks for any more just lies there.
"""

import hashlib
import json
import logging
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.propose.rules.compiler.capture import (
    Captured,
    Device,
    Request,
    Skipped,
    from_reply,
    to_reply,
)

Ask = Callable[[Sequence[Request]], Sequence[Captured | Skipped]]
logger = logging.getLogger(__name__)
_SCHEMA = "capture/1"
_CODE = ("capture.py", "child.py", "exact_attention.py", "facts.py", "imagined.py", "paths.py",
         "tuning.py", "turns.py", "../hollow.py")  # fmt: skip
_PASSING = ("out of memory", "took more than", "ended early", "no GPU here", "no guard",
            "No space left")  # fmt: skip
"""Reasons that may be gone by tomorrow: kept for the run that met them, and for no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """Folders with captures: the run's own, which holds all that it was told, and a shared one."""

    own: Path
    shared: Path | None = None
    device: str = ""
    """Name of the GPU that captures are made on."""

    def asked(
        self, task: Task, requests: Sequence[Request], ask: Ask, *, kind: Device
    ) -> list[Captured | Skipped]:
        """Answers from the shelf; the compiler is asked for the others, which are kept.

        Args:
            task: What the requests belong to.
            requests: What is wanted, in order.
            ask: Asks the compiler.
            kind: For which kind of device.
        """
        names = [self._name(task, each, kind) for each in requests]
        found = {name: told for name in dict.fromkeys(names) if (told := self._told(name))}
        missing = {
            name: each for name, each in zip(names, requests, strict=True) if name not in found
        }
        replies = ask(list(missing.values())) if missing else []
        for name, reply in zip(missing, replies, strict=True):
            found[name] = reply
        for name, reply in found.items():
            self._keep(name, reply)
        return [found[name] for name in names]

    def _name(self, task: Task, request: Request, kind: Device) -> str:
        options = request.options
        decides = {
            "source": request.source, "entry": task.entry, "training": task.training,
            "arguments": request.workload.arguments, "init": request.workload.init,
            "dtype": request.workload.dtype, "kind": kind, "settings": options.settings,
            "measure_s": options.measure_s if kind == "cuda" else 0.0, "threads": options.threads,
            "device": self.device if kind == "cuda" else platform.machine(), "made_by": _made_by(),
        }  # fmt: skip
        return hashlib.sha256(json.dumps(decides, sort_keys=True).encode()).hexdigest()

    def _told(self, name: str) -> Captured | Skipped | None:
        for folder in (self.own, self.shared):
            path = folder / f"{name}.json" if folder is not None else None
            if path is None or not path.exists():
                continue
            try:
                return _decoded(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, LookupError, TypeError, AssertionError):
                logger.warning("%s is broken, so the compiler is asked again", path)
        return None

    def _keep(self, name: str, reply: Captured | Skipped) -> None:
        """Write where it is missing; a folder that cannot be written costs a capture, no run."""
        passing = isinstance(reply, Skipped) and any(each in reply.reason for each in _PASSING)
        for folder in (self.own, None if passing else self.shared):
            if folder is None or _is_whole(folder / f"{name}.json"):
                continue
            try:
                _replace(folder / f"{name}.json", _encoded(reply))
            except OSError as error:
                logger.warning("captures are not kept in %s: %s", folder, error.strerror)


def _encoded(reply: Captured | Skipped) -> str:
    found = json.dumps(to_reply(reply))
    return json.dumps({"schema": _SCHEMA, "sha256": _hash(found), "found": found})


def _decoded(text: str) -> Captured | Skipped:
    """Raises ``ValueError`` and its like where the file is not what was written."""
    held = json.loads(text)
    if held["schema"] != _SCHEMA or held["sha256"] != _hash(held["found"]):
        raise ValueError("another file than was written")
    return from_reply(json.loads(held["found"]))


def _is_whole(path: Path) -> bool:
    try:
        _decoded(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError, AssertionError):
        return False
    return True


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _replace(path: Path, text: str) -> None:
    """Whoever reads sees the whole file or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, made = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(made, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(made)
        raise


@cache
def _made_by() -> str:
    """Versions of what writes the text, and a hash of what asks for it."""
    versions = []
    for package in ("torch", "triton"):
        with suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    code = "".join((Path(__file__).parent / each).read_text(encoding="utf-8") for each in _CODE)
    return "; ".join([*versions, f"capture {_hash(code)[:16]}"])
