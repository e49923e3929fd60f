"""The parent's end of the process in which a task's code is traced and compared."""

import contextlib
import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kernelsmith.domain.task import Task, Workload
from kernelsmith.propose.rules.graph import NotRecognised

_KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH")
_TIMEOUT_S = 120.0


class Session:
    """One child process; a request that takes too long, or kills it, ends the session."""

    def __init__(self, process: subprocess.Popen[bytes], timeout_s: float) -> None:
        self._process = process
        self._timeout_s = timeout_s

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its reply.

        Raises:
            NotRecognised: The task's code refuses, fails, dies or takes too long.
        """
        process = self._process
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(request).encode() + b"\n")
            process.stdin.flush()
            line = self._line()
        except OSError:
            line = b""
        if not line:
            raise NotRecognised("rules cannot trace the task: its process ended or hung")
        reply = json.loads(line)
        assert isinstance(reply, dict)
        if "refused" in reply:
            raise NotRecognised(f"rules cannot trace the task: {reply['refused']}")
        return reply

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        stop, found = time.monotonic() + self._timeout_s, b""
        with selectors.DefaultSelector() as waiting:
            waiting.register(self._process.stdout, selectors.EVENT_READ)
            while not found.endswith(b"\n"):
                if not waiting.select(max(0.0, stop - time.monotonic())):
                    self._process.kill()
                    return b""
                part = os.read(self._process.stdout.fileno(), 1 << 20)
                if not part:
                    return b""
                found += part
        return found


def _packages() -> list[str]:
    """What tasks import that is not installed; this process begins in another folder."""
    named = os.environ.get("KERNELSMITH_PACKAGES", "").split(os.pathsep)
    return [os.path.abspath(each) for each in named if each]


@contextlib.contextmanager
def open_session(timeout_s: float = _TIMEOUT_S) -> Iterator[Session]:
    """Start the child in an empty folder; it ends with the block."""
    root = Path(__file__).parents[4]
    environment = {
        **{key: os.environ[key] for key in _KEPT if key in os.environ},
        "PYTHONPATH": os.pathsep.join([str(root), *_packages()]),
        "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
    }  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="kernelsmith-rewrite-") as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "kernelsmith.propose.rules.rewrite.child"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            cwd=folder, env=environment,
        )  # fmt: skip
        try:
            yield Session(process, timeout_s)
        finally:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def request_for(
    task: Task, workload: Workload, source: str, do: str, **more: Any
) -> dict[str, Any]:
    """What the child must know to make the model and inputs of one workload."""
    return {
        "do": do, "source": source, "entry": task.entry, "training": task.training,
        "arguments": dict(workload.arguments), "init": dict(workload.init),
        "dtype": workload.dtype, **more,
    }  # fmt: skip
