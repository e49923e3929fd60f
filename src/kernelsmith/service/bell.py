"""Who waits for which requests, and is told when one is over."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager


class Watch:
    """What one waiter waits for. Holds ids only: whatever is slow to read piles nothing up."""

    def __init__(self, ids: Collection[str]) -> None:
        self.pending = set(ids)
        self.ended = False
        self._over: list[str] = []
        self._rung = asyncio.Event()

    def end(self) -> None:
        """Wake the waiter, though nothing is over: there will be nothing more."""
        self.ended = True
        self._rung.set()

    def tell(self, id: str) -> None:
        """Say that a request is over."""
        if id in self.pending:
            self.pending.discard(id)
            self._over.append(id)
            self._rung.set()

    async def next(self, timeout_s: float) -> list[str]:
        """Wait until something is over, at most so long; nothing where nothing was."""
        if not self._over and self.pending and not self.ended:
            self._rung.clear()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._rung.wait()
            except TimeoutError:
                return []
        over, self._over = self._over, []
        return over


class Bell:
    """Rings for requests. Used by one thread."""

    def __init__(self) -> None:
        self._watches: dict[str, set[Watch]] = {}

    def ring(self, id: str) -> None:
        """Tell whoever waits for it."""
        for watch in self._watches.pop(id, ()):
            watch.tell(id)

    def forget(self, watch: Watch, id: str) -> None:
        """Do not tell this waiter about that request any more."""
        watch.pending.discard(id)
        self._drop(watch, id)

    def end(self) -> None:
        """Wake everybody: the server ends."""
        for watch in {each for some in self._watches.values() for each in some}:
            watch.end()

    @contextmanager
    def watching(self, ids: Collection[str]) -> Iterator[Watch]:
        """Be told about these. Look at them once more inside: some may have been over before."""
        watch = Watch(ids)
        for id in ids:
            self._watches.setdefault(id, set()).add(watch)
        try:
            yield watch
        finally:
            for id in watch.pending:
                self._drop(watch, id)

    def _drop(self, watch: Watch, id: str) -> None:
        others = self._watches.get(id)
        if others is not None:
            others.discard(watch)
            if not others:
                del self._watches[id]
