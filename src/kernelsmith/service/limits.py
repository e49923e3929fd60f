"""What one client may ask of the service: sizes, rates, and how thorough a judge it may want."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from kernelsmith.errors import SmithError, UsageError
from kernelsmith.evaluate.settings import Settings
from kernelsmith.service.wire import Request


class TooMuch(SmithError):
    """More than the service takes now; ask again after ``after_s``."""

    def __init__(self, message: str, after_s: float = 1.0) -> None:
        super().__init__(message)
        self.after_s = after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds on requests. Those on settings keep one client from holding a device for hours."""

    body_bytes: int = 8 << 20
    source_bytes: int = 1 << 20
    """Of a task, a candidate or a baseline, each."""
    batch: int = 1000
    rate: float = 200.0
    """HTTP requests a second that a client may make for long; ten times as many at once."""
    queued: int = 200_000
    """Requests waiting, of all clients together."""
    queued_each: int = 100_000
    waiting_each: int = 1024
    """Long polls and streams that a client may hold open."""
    read_s: float = 30.0
    """How long a body may take to arrive."""
    timeout_s: float = 600.0
    budget_s: float = 600.0
    pairs: int = 64
    trials: int = 64
    launches: int = 1 << 16
    sample_bytes: int = 1 << 34

    def check(self, request: Request) -> None:
        """Refuse what is out of bounds.

        Raises:
            UsageError: Something is; the message says what and what the bound is.
        """
        task = request.task
        sources = {"task.source": task.source, "candidate.source": request.candidate.source}
        if task.baseline is not None:
            sources["task.baseline"] = task.baseline
        if request.baseline is not None:
            sources["baseline.source"] = request.baseline.source
            if request.baseline.backend != request.candidate.backend:
                raise UsageError("candidate and baseline are for one backend")
        for name, source in sources.items():
            if len(source.encode()) > self.source_bytes:
                raise UsageError(f"{name} holds more than {self.source_bytes} bytes")
        self._check_settings(request.settings)

    def _check_settings(self, said: Settings) -> None:
        if not said.static:
            raise UsageError("settings.static is on here: source is read before it runs")
        gpu, stop = said.gpu, said.stop
        bounds = {
            "timeout_s": (said.timeout_s, self.timeout_s),
            "stop.budget_s": (stop.budget_s, self.budget_s),
            "stop.max_pairs": (stop.max_pairs, self.pairs),
            "stop.min_samples": (stop.min_samples, self.trials),
            "trials": (said.trials, self.trials),
            "max_launches": (said.max_launches, self.launches),
            "sample_us": (said.sample_us, 1e6),
            "sample_bytes": (said.sample_bytes, self.sample_bytes),
            "warmups": (said.warmups, self.trials),
            "profiled": (said.profiled, self.trials),
            "parts": (said.parts, self.trials),
            "spot_checks": (said.spot_checks, self.launches),
            "gpu.sample_us": (gpu.sample_us, 1e6),
            "gpu.sample_bytes": (gpu.sample_bytes, self.sample_bytes),
            "gpu.max_launches": (gpu.max_launches, self.launches),
            "gpu.samples": (gpu.samples, self.trials),
            "gpu.rounds": (gpu.rounds, self.trials),
            "gpu.calls": (gpu.calls, self.trials),
            "gpu.examined_s": (gpu.examined_s, 60.0),
            "gpu.alone": (gpu.alone, self.trials),
            "gpu.warmups": (gpu.warmups, self.trials),
        }
        for name, (value, most) in bounds.items():
            if not 0 <= value <= most:
                raise UsageError(f"settings.{name} lies in 0 to {most:g} here; got {value:g}")
        if not 0 < said.contention < math.inf:
            raise UsageError(f"settings.contention is above 0; got {said.contention:g}")


class Pace:
    """A token bucket per client: ``rate`` a second for long, ``burst`` at once."""

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left: dict[str, tuple[float, float]] = {}
        """Tokens, and when they were counted; by client, of whom there are as many as tokens."""

    def take(self, client: str) -> None:
        """Count one.

        Raises:
            TooMuch: The client has to wait.
        """
        now = self._clock()
        left, since = self._left.get(client, (self._burst, now))
        left = min(self._burst, left + (now - since) * self._rate)
        if left < 1.0:
            self._left[client] = (left, now)
            wait = (1.0 - left) / self._rate
            raise TooMuch(f"more than {self._rate:g} requests a second", wait)
        self._left[client] = (left - 1.0, now)
