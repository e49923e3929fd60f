"""Where the seconds of a judgement go."""

import time
from collections.abc import ItemsView, Iterator
from contextlib import contextmanager


class Spent:
    """Seconds by name."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._inside = 0.0
        """What was counted by other names inside of the one that is counted now."""

    @contextmanager
    def on(self, name: str) -> Iterator[None]:
        """Count what is done inside, but for what is counted there by another name."""
        begun, outside, self._inside = time.monotonic(), self._inside, 0.0
        try:
            yield
        finally:
            took = time.monotonic() - begun
            self._seconds[name] = self._seconds.get(name, 0.0) + took - self._inside
            self._inside = outside + took

    def items(self) -> ItemsView[str, float]:
        """Seconds, in the order in which they began to be counted."""
        return self._seconds.items()

    def total_s(self, *, without: str) -> float:
        """Of all but one."""
        return sum(seconds for name, seconds in self._seconds.items() if name != without)

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.2f}" for name, seconds in self._seconds.items())
