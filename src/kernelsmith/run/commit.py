"""Group commit: whatever has gathered is synced at once, and only then shown to the watcher."""

import asyncio
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from kernelsmith.run.journal import Journal
from kernelsmith.run.progress import Progress, Watch

_PAUSE_S = 0.02
"""Between two syncs; a slow disk gets four times what the last one took."""


class Committer:
    """Syncs the journal in the background of a loop, soon after something was appended."""

    def __init__(self, journal: Journal, watch: Watch | None) -> None:
        self._journal, self._watch = journal, watch
        self._waiting: list[Progress] = []
        self._dirty, self._ended = asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        """Ends only by an error: a full disk, or a watcher that raised."""

    def announce(self, progress: Progress) -> None:
        """Show this as soon as what it speaks of will last."""
        if self._watch is not None:
            self._waiting.append(progress)

    async def __aenter__(self) -> Self:
        self._journal.appended = self._dirty.set
        self._dirty.set()
        self.task = asyncio.create_task(self._commits())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self.task is not None
        self._ended.set()
        self._dirty.set()
        await self.task
        self._journal.appended = None

    async def _commits(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            is_last, begun = self._ended.is_set(), time.monotonic()
            if not self._journal.is_synced:
                shown, self._waiting = self._waiting, []
                self._journal.write()
                await asyncio.to_thread(self._journal.harden)
                if self._watch is not None:
                    for each in shown:
                        self._watch(each)
            if is_last:
                return
            await self._pause(max(_PAUSE_S, 4 * (time.monotonic() - begun)))

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ended.wait()
