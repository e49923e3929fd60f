"""When to send the next request: rate limits, pauses that a server asks for, and back-off."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

_MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Time, as something to be handed in."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often and how patiently a request is tried again."""

    attempts: int = 6
    first_s: float = 1.0
    """Doubled at every further attempt."""
    longest_s: float = 60.0
    longest_asked_s: float = 300.0
    """A server that asks for a longer pause than that is given up on."""

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.first_s < 0:
            raise ValueError(f"at least one attempt, and no negative pause; got {self}")

    def pause_s(self, attempt: int, *, seed: int, asked_s: float | None) -> float:
        """Seconds to wait after failed attempt ``attempt`` (from 1).

        Exponential with jitter between a half and the whole, drawn from ``seed``; never less than
        the server asked for.
        """
        jitter = random.Random(f"retry/{seed}/{attempt}").uniform(0.5, 1.0)
        own = min(self.longest_s, self.first_s * 2.0 ** min(attempt - 1, 30)) * jitter
        return own if asked_s is None else asked_s + min(own, 1.0)


class Pace:
    """Lets at most so many requests start in any minute, and none while the server wants a rest."""

    def __init__(self, per_minute: int | None, clock: Clock) -> None:
        self._per_minute, self._clock = per_minute, clock
        self._starts: deque[float] = deque()
        self._held_until = 0.0

    async def turn(self) -> None:
        """Wait until a request may start, and count it."""
        while (wait := self._wait_s()) > 0:
            await self._clock.sleep(wait)
        self._starts.append(self._clock.now())

    def hold(self, seconds: float) -> None:
        """Start nothing for that long; requests that are under way go on."""
        self._held_until = max(self._held_until, self._clock.now() + seconds)

    def _wait_s(self) -> float:
        now = self._clock.now()
        while self._starts and self._starts[0] + _MINUTE_S <= now:
            self._starts.popleft()
        wait = self._held_until - now
        if self._per_minute is not None and len(self._starts) >= self._per_minute:
            wait = max(wait, self._starts[0] + _MINUTE_S - now)
        if self._per_minute is None:
            self._starts.clear()
        return wait
