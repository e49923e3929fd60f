"""Ending a run from outside: a signal once lets work in flight finish, twice does not."""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interruption:
    """Whether someone asked for the end, and how urgently."""

    def __init__(self) -> None:
        self._asked, self._urgent = asyncio.Event(), asyncio.Event()
        self._asking: asyncio.Task[Any] | None = None

    @property
    def is_set(self) -> bool:
        """Whether someone asked."""
        return self._asked.is_set()

    def set(self, *, at_once: bool = False) -> None:
        """Ask; the second time, or ``at_once``, without waiting for anything."""
        if at_once or self._asked.is_set():
            self._urgent.set()
        self._asked.set()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Have Ctrl-C and SIGTERM ask meanwhile; only a main thread can hear them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        for each in _SIGNALS:
            loop.add_signal_handler(each, self.set)
        try:
            yield
        finally:
            for each in _SIGNALS:
                loop.remove_signal_handler(each)

    def close(self) -> None:
        """Stop waiting for anyone to ask."""
        if self._asking is not None:
            self._asking.cancel()

    async def waited(self, task: asyncio.Task[Any], beside: asyncio.Task[None]) -> bool:
        """Wait for ``task``; false where someone asks for the end first.

        ``beside`` must not end meanwhile; what it raises is raised here.
        """
        if not task.done() and not self.is_set:
            if self._asking is None:
                self._asking = asyncio.create_task(self._asked.wait())
            both = (task, beside, self._asking)
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if beside.done():
                beside.result()
        return task.done() and not self.is_set

    async def landed(
        self, tasks: Callable[[], Iterable[asyncio.Task[Any]]], *, grace_s: float
    ) -> None:
        """Let ``tasks`` finish, unless it takes too long or someone gets urgent."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_s
        urgent = asyncio.ensure_future(self._urgent.wait())
        try:
            while pending := {task for task in tasks() if not task.done()}:
                left = deadline - loop.time()
                if left <= 0 or self._urgent.is_set():
                    return
                await asyncio.wait(
                    {*pending, urgent}, timeout=left, return_when=asyncio.FIRST_COMPLETED
                )
        finally:
            urgent.cancel()
