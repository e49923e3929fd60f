"""One device, many judges: checking shares it, timing owns it."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path


def lock_file(path: Path) -> int:
    """Open a file to lock it.

    Each holder opens it anew: a lock belongs to the open file, so threads of one process exclude
    each other too, and a killed process lets go by itself.
    """
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


class DeviceLock:
    """A lock between all judges of one user on one machine, by a file that survives nobody."""

    def __init__(self, device: str, folder: Path | None = None) -> None:
        where = folder or Path(tempfile.gettempdir())
        self.path = where / f"kernelsmith-{os.getuid()}-{device}.lock"

    @contextlib.contextmanager
    def shared(self) -> Iterator[None]:
        """Hold the device together with other builders and checkers."""
        with self._held(fcntl.LOCK_SH):
            yield

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone."""
        with self._held(fcntl.LOCK_EX):
            yield

    @contextlib.contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        fd = lock_file(self.path)
        try:
            fcntl.flock(fd, kind)
            yield
        finally:
            os.close(fd)


class CoreLock:
    """The cores that a judge may use: who has others does not wait for it, who shares one does."""

    def __init__(self, cores: Collection[int], folder: Path | None = None) -> None:
        # Everybody asks for the lowest core first: nobody waits for one who waits for them.
        self._locks = [DeviceLock(f"cpu{core}", folder) for core in sorted(cores)]

    def shared(self) -> AbstractContextManager[None]:
        """Hold them together with other builders and checkers."""
        return _one_by_one(each.shared for each in self._locks)

    def exclusive(self) -> AbstractContextManager[None]:
        """Hold them alone."""
        return _one_by_one(each.exclusive for each in self._locks)


@contextlib.contextmanager
def _one_by_one(wanted: Iterable[Callable[[], AbstractContextManager[None]]]) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for each in wanted:
            held.enter_context(each())
        yield
