"""The one thread that writes to the store: whatever waits goes into one transaction.

An operation is answered when its transaction lasts, so an acknowledged request survives the
server; and a hundred clients at a time cost one write to the disk, not a hundred.
"""

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from kernelsmith.errors import SmithError
from kernelsmith.service.store import Store

T = TypeVar("T")
_TOGETHER = 256
"""Operations in one transaction at most; each may hold a whole batch of requests."""


class StoreUnavailable(SmithError):
    """Nothing can be written now, most likely for lack of space; nothing was changed."""


class Writer:
    """Runs operations on a store in the order they come."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: queue.SimpleQueue[tuple[Callable[[Store], Any], Future[Any]] | None]
        self._queue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="store", daemon=True)
        self._thread.start()

    async def do(self, operation: Callable[[Store], T]) -> T:
        """Run an operation, and return when what it did lasts.

        Raises:
            StoreUnavailable: It could not be written, and nothing was.
        """
        future: Future[T] = Future()
        self._queue.put((operation, future))
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        """Finish what was begun, and end."""
        self._queue.put(None)
        self._thread.join()
        self._store.close()

    def _loop(self) -> None:
        ended = False
        while not ended:
            batch: list[tuple[Callable[[Store], Any], Future[Any]]] = []
            item = self._queue.get()
            while True:
                if item is None:
                    ended = True
                    break
                if item[1].set_running_or_notify_cancel():
                    batch.append(item)
                if len(batch) == _TOGETHER or self._queue.empty():
                    break
                item = self._queue.get()
            if batch:
                self._commit(batch)

    def _commit(self, batch: list[tuple[Callable[[Store], Any], Future[Any]]]) -> None:
        done: list[Callable[[], None]] = []
        try:
            self._store.begin()
            for operation, future in batch:
                done.append(self._one(operation, future))
            self._store.commit()
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._store.rollback()
            # What SQLite says may name a file of ours.
            full = "full" in str(error)
            said = StoreUnavailable("the disk is full" if full else "the queue cannot be written")
            for _, future in batch:
                future.set_exception(said)
            return
        except BaseException as error:
            for _, future in batch:
                future.set_exception(error)
            raise
        for answer in done:
            answer()

    def _one(self, operation: Callable[[Store], Any], future: Future[Any]) -> Callable[[], None]:
        self._store.savepoint()
        try:
            value = operation(self._store)
        except SmithError as error:
            self._store.undo()
            refused = error
            return lambda: future.set_exception(refused)
        return lambda: future.set_result(value)
