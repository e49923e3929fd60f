"""Who has the GPU while a compiler works: one file, locked as the judge locks it.

The judge times alone and checks together with others. A capture does the same by the same file:
what the compiler times it times alone, tensors are made beside others, and while it only compiles
nobody waits for it.
"""

import fcntl
import functools
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_TIMES = ("benchmark_gpu", "benchmark_gpu_with_cuda_graph")


class Turn:
    """The lock of one GPU; without a file there is nothing to wait for."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._depth = 0

    @property
    def counts(self) -> bool:
        """Whether there is anybody to wait for."""
        return self._path is not None

    @property
    def is_held(self) -> bool:
        """Whether it is ours at the moment."""
        return self._depth > 0

    @contextmanager
    def held(self, *, alone: bool) -> Iterator[None]:
        """Hold it, by oneself or with others who do not time; inside itself it is held already."""
        if self._path is None or self._depth:
            yield
            return
        fd = _opened(self._path)
        try:
            # Waiting for others is not the compiler's time.
            left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
            if alone:
                self._wait_alone(fd)
            else:
                fcntl.flock(fd, fcntl.LOCK_SH)
            signal.setitimer(signal.ITIMER_REAL, left)
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
        finally:
            os.close(fd)

    def _wait_alone(self, fd: int) -> None:
        """Judges who share the device see the second file held, and step aside."""
        assert self._path is not None
        wish = _opened(os.path.splitext(self._path)[0] + ".wish")
        try:
            fcntl.flock(wish, fcntl.LOCK_EX)
            fcntl.flock(fd, fcntl.LOCK_EX)
        finally:
            os.close(wish)


def _opened(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def time_alone(benchmarking: Any, turn: Turn) -> bool:
    """Let the compiler's own stopwatch take the turn for every timing; whether there is one.

    Args:
        benchmarking: Inductor's module of that name.
        turn: The lock of the GPU.
    """
    found = False
    for kind in [each for each in vars(benchmarking).values() if isinstance(each, type)]:
        for name in _TIMES:
            if callable(own := vars(kind).get(name)):
                setattr(kind, name, _alone(own, turn))
                found = True
    return found


def _alone(timed: Callable[..., object], turn: Turn) -> Callable[..., object]:
    @functools.wraps(timed)
    def run(*args: object, **keywords: object) -> object:
        with turn.held(alone=True):
            return timed(*args, **keywords)

    return run
