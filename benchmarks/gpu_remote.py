"""A judge in a process of its own, with a limit on how long it may take over one candidate."""

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.report import ROOT, without_paths
from benchmarks.rules_process import environment

_CLOSING_S = 30.0


class RemoteJudge:
    """Starts when first asked, and again after it died or was stopped; its start is counted."""

    _module = "benchmarks.gpu_worker"

    def __init__(
        self, *, effort: str, backend: str = "triton", settings: dict[str, object] | None = None,
        gpu: dict[str, object] | None = None, more: dict[str, object] | None = None,
    ) -> None:  # fmt: skip
        asked = {"effort": effort, "backend": backend, "settings": settings or {}, "gpu": gpu or {}}
        self._asked = json.dumps({**asked, **(more or {})})
        self._process: subprocess.Popen[bytes] | None = None
        self._errors = os.memfd_create("errors")
        self.device: dict[str, Any] | None = None
        """What it last judged on."""
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """Its process, if it runs."""
        return self._process.pid if self._process else None

    def judge(
        self, task: Path, source: str, *, limit_s: float, library: str = "",
        structure: tuple[str, ...] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Return what it said; ``said`` is a verdict or one of ``gpu_ledger.NO_VERDICT``."""
        begun = time.monotonic()
        process = self._process or self._start()
        asked = {"task": str(task), "source": source, "library": library, "structure": structure}
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        line = self._line(process, begun + limit_s)
        if line is None:
            self._stop()
            said: dict[str, Any] = {"said": "no answer", "message": f"after {limit_s:.0f} s"}
        elif not line.endswith(b"\n"):
            self._stop()
            said = {"said": "died", "message": without_paths(self._tail())}
        else:
            said = json.loads(line)
        self.device = said.pop("device", None) or self.device
        return said | {"seconds": round(time.monotonic() - begun, 3)}

    def close(self) -> float:
        """End it; return how many seconds that took."""
        begun = time.monotonic()
        if self._process is not None:
            assert self._process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_CLOSING_S)
            self._stop()
        return time.monotonic() - begun

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        os.close(self._errors)

    def _start(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module, self._asked],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, cwd=ROOT,
            env=environment(), process_group=0,
        )  # fmt: skip
        self.starts += 1
        return self._process

    def _line(self, process: subprocess.Popen[bytes], until: float) -> bytes | None:
        """Read up to a line's end or the end of all; nothing when the time is up."""
        assert process.stdout is not None
        read = b""
        while not read.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                return None
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                break
            read += piece
        return read

    def _stop(self) -> None:
        """Kill its group; its zygote and their children end when they see it gone."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def _tail(self) -> str:
        size = os.fstat(self._errors).st_size
        last = os.pread(self._errors, 4096, max(0, size - 4096))
        lines = last.decode(errors="replace").strip().splitlines()
        return " | ".join(lines[-3:]) or "no output"
