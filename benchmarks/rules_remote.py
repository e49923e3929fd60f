"""The worker that optimises tasks, in a process of its own; keeps what it said before it ended."""

import contextlib
import json
import subprocess
import time
from types import TracebackType
from typing import Any

from benchmarks.gpu_remote import RemoteJudge
from benchmarks.report import without_paths


class RemoteRules(RemoteJudge):
    """Starts when first asked, and again after it died or was stopped."""

    _module = "benchmarks.rules_worker"
    _waiting = b""
    """Read, and not answered yet."""

    def __init__(
        self, *, effort: str, backend: str, compiles: bool = False, beside: bool = False
    ) -> None:
        """``beside``: others judge on the same device, so what needs all of it is refused."""
        more: dict[str, object] = {"compiles": compiles, "beside": beside}
        super().__init__(effort=effort, backend=backend, more=more)

    def begin(self) -> None:
        """Start it now, so that it is there when it is first asked."""
        if self._process is None:
            self._start()

    def optimise(self, asked: dict[str, Any], *, limit_s: float) -> dict[str, Any]:
        """All that was said within the limit; ``said`` tells how it ended where that was early."""
        begun = time.monotonic()
        process = self._process or self._start()
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(json.dumps(asked).encode() + b"\n")
            process.stdin.flush()
        known: dict[str, Any] = {"steps": [], "compile": {}}
        while not known.pop("done", False):
            line = self._line(process, begun + limit_s)
            if line is None:
                self._stop()
                known |= {"said": "no answer", "message": f"after {limit_s:.0f} s"}
                break
            if not line.endswith(b"\n"):
                self._stop()
                known |= {"said": "died", "message": without_paths(self._tail())}
                break
            known = json.loads(line)
        self.device = known.pop("device", None) or self.device
        return known | {"seconds": round(time.monotonic() - begun, 2)}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._stop()  # whoever stopped us does not wait for the task at hand
        super().__exit__(kind, error, trace)

    def _start(self) -> subprocess.Popen[bytes]:
        self._waiting = b""
        return super()._start()

    def _line(self, process: subprocess.Popen[bytes], until: float) -> bytes | None:
        """The next whole line: several may have come at once."""
        waiting = self._waiting
        while b"\n" not in waiting:
            more = super()._line(process, until)
            if more is None or not more:
                self._waiting = b""
                return None if more is None else waiting
            waiting += more
            if not more.endswith(b"\n"):
                break  # the end of all
        line, newline, self._waiting = waiting.partition(b"\n")
        return line + newline
