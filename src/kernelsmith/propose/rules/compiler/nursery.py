"""A process that has torch's compiler loaded, and forks one of its own for every question.

Loading the compiler takes as long as most questions (six seconds of a processor on two slow cores,
four where an H200 was), and a task asks several times. What is forked has everything loaded and
nothing else: no torch operator ran before it and no driver was asked. It ends with whoever asked,
and the process it came from ends with its owner, or when nobody has asked for a while.
"""

import atexit
import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

ADDRESS = "KERNELSMITH_NURSERY"
"""Names a nursery that somebody else has opened, for processes below; or says that there is none.
"""
NONE = "none"
ASKED, REPLIED, SAID = "asked.json", "replies.jsonl", "said.txt"
"""Files in the folder of a question: standard input, output and errors."""
_READ_WHEN_LOADED = ("TORCH", "OMP_", "MKL_", "KMP_", "ONEDNN_", "LD_", "CXX", "PYTHONPATH")
"""Beginnings of what libraries look at while they are loaded, and not again."""
_OF_ONE_QUESTION = "TORCHINDUCTOR_CACHE_DIR"
"""Looked at whenever it is needed."""
_NO_THREADS = {"OPENBLAS_NUM_THREADS": "1"}
"""Else numpy starts one as it is loaded, and a process with threads should not fork."""
_LOOK_S = 0.2
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a process ended."""

    status: int | None
    """What it exited with; none: its time was up, or somebody said stop."""
    said: str
    """Its standard error."""


class Gone(Exception):
    """The nursery ended before it answered; the text has its last words."""


class Nursery:
    """The process, from its owner's side."""

    def __init__(self, environment: Mapping[str, str], *, gpu: bool) -> None:
        self._folder = tempfile.mkdtemp(prefix="kernelsmith-nursery-")
        self.address = f"{self._folder}/socket"
        self._process: subprocess.Popen[bytes] | None = None
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with listening:
            listening.bind(self.address)
            listening.listen(64)  # whoever asks before it is loaded, waits
            with open(f"{self._folder}/{SAID}", "wb") as errors:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", f"{__package__}.nursery_process",
                     str(listening.fileno()), "gpu" if gpu else "cpu"],
                    stdin=subprocess.PIPE, stdout=errors, stderr=errors,
                    cwd=self._folder, env={**_NO_THREADS, **environment},
                    pass_fds=(listening.fileno(),), start_new_session=True,
                )  # fmt: skip

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""
        return self._process is not None and self._process.poll() is None

    @property
    def last_words(self) -> str:
        """The last line that it said, if any."""
        with suppress(OSError):
            lines = Path(self._folder, SAID).read_text(errors="replace").strip().splitlines()
            return lines[-1][:200] if lines else ""
        return ""

    def close(self) -> None:
        """End it, and all that came from it."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()  # which it waits for, once it is loaded
            try:
                self._process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


def ask(
    address: str, module: str, arguments: Sequence[str], *, folder: Path,
    environment: Mapping[str, str], timeout_s: float, stop: threading.Event | None = None,
) -> Ended:  # fmt: skip
    """Run ``main`` of a module in a process of its own, until it ends or the time is up.

    Its standard streams are the files ``ASKED``, ``REPLIED`` and ``SAID`` of the folder.

    Args:
        address: Of a nursery.
        module: Which one.
        arguments: What it finds in ``sys.argv``.
        folder: Where it runs.
        environment: What it finds there; what is read while libraries load was read before.
        timeout_s: How long it may take.
        stop: Another thread's way to end it.

    Raises:
        Gone: The nursery ended first.
    """
    until = time.monotonic() + timeout_s
    asked = {"module": module, "arguments": list(arguments), "folder": str(folder),
             "environment": dict(environment)}  # fmt: skip
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as line:
        try:
            line.connect(address)
            line.sendall(json.dumps(asked).encode() + b"\n")
            status = _status(line, until, stop)
        except OSError as error:
            raise Gone(str(error)) from error
    said = Path(folder, SAID)
    return Ended(status=status, said=said.read_text(errors="replace") if said.exists() else "")


def _status(line: socket.socket, until: float, stop: threading.Event | None) -> int | None:
    """Wait for the last word; hanging up ends what runs."""
    found = b""
    while not found.endswith(b"\n"):
        left = until - time.monotonic()
        if left <= 0 or (stop is not None and stop.is_set()):
            return None
        line.settimeout(min(left, _LOOK_S))
        with suppress(TimeoutError):
            more = line.recv(64)
            if not more:
                raise Gone("it hung up")
            found += more
    return int(found)


class _Open:
    """The nurseries of this process, one for each way in which the compiler can be loaded."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nurseries: dict[object, Nursery] = {}
        self._owner = os.getpid()

    def at(self, environment: Mapping[str, str], *, gpu: bool) -> Nursery:
        key = (gpu, *sorted((k, v) for k, v in environment.items() if _is_read_when_loaded(k)))
        with self._lock:
            if self._owner != os.getpid():  # forked: what is open belongs to somebody else
                self._nurseries, self._owner = {}, os.getpid()
            for gone in [k for k, each in self._nurseries.items() if not each.is_open]:
                self._nurseries.pop(gone).close()
            if key not in self._nurseries:
                self._nurseries[key] = Nursery(environment, gpu=gpu)
            return self._nurseries[key]

    def close(self) -> None:
        if self._owner == os.getpid():
            for each in self._nurseries.values():
                each.close()
            self._nurseries.clear()


_open = _Open()
atexit.register(_open.close)


def run(
    module: str, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str],
    gpu: bool, timeout_s: float, stop: threading.Event | None = None,
) -> Ended:  # fmt: skip
    """The same as ``ask``, with a nursery that fits: one named by ``ADDRESS``, or one of our own.

    Where none can be had, the module runs in a process that loads everything for itself.

    Args:
        module: Whose ``main`` runs.
        arguments: Its arguments.
        folder: Where.
        environment: Its environment.
        gpu: Whether it compiles for a GPU.
        timeout_s: How long it may take, loading included.
        stop: Another thread's way to end it.
    """
    until = time.monotonic() + timeout_s
    theirs = environment.get(ADDRESS, "")
    for _ in range(0 if theirs == NONE else 2):
        own = None if theirs else _open.at(environment, gpu=gpu)
        try:
            return ask(
                own.address if own else theirs, module, arguments, folder=folder,
                environment=environment, timeout_s=until - time.monotonic(), stop=stop,
            )  # fmt: skip
        except Gone as error:
            # It ends by itself when nobody asks; that can be the moment in which somebody does.
            theirs = ""
            said = own.last_words if own else ""
            logger.info("a process with torch's compiler loaded ended: %s", said or error)
    return _by_itself(module, arguments, folder=folder, environment=environment,
                      until=until, stop=stop)  # fmt: skip


def address(environment: Mapping[str, str], *, gpu: bool) -> str:
    """Of a nursery of this process that loads the compiler so, for processes below."""
    return environment.get(ADDRESS) or _open.at(environment, gpu=gpu).address


def _by_itself(
    module: str, arguments: Sequence[str], *, folder: Path, environment: Mapping[str, str],
    until: float, stop: threading.Event | None,
) -> Ended:  # fmt: skip
    """The same in a process that loads everything for itself."""
    with ExitStack() as files:
        given = Path(folder, ASKED)
        source = files.enter_context(open(given if given.exists() else os.devnull, "rb"))
        out = files.enter_context(open(folder / REPLIED, "wb"))
        errors = files.enter_context(open(folder / SAID, "wb"))
        process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments], stdin=source, stdout=out, stderr=errors,
            cwd=folder, env=dict(environment), start_new_session=True,
        )  # fmt: skip
        status = None
        try:
            while status is None and not (stop is not None and stop.is_set()):
                left = until - time.monotonic()
                if left <= 0:
                    break
                with suppress(subprocess.TimeoutExpired):
                    status = process.wait(timeout=min(left, _LOOK_S))
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return Ended(status=status, said=(folder / SAID).read_text(errors="replace"))


def _is_read_when_loaded(name: str) -> bool:
    return name.startswith(_READ_WHEN_LOADED) and name != _OF_ONE_QUESTION
