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
    """A lock between all judges of one user on one machine, by files that survive nobody.

    Whoever waits to have the device alone holds the second file meanwhile. Those who share it can
    look, and step aside: a compiler that one of them waits for may take half a minute.
    """

    def __init__(self, device: str, folder: Path | None = None) -> None:
        where = folder or Path(tempfile.gettempdir())
        self.path = where / f"kernelsmith-{os.getuid()}-{device}.lock"
        self._wish = self.path.with_suffix(".wish")

    @contextlib.contextmanager
    def shared(self) -> Iterator["Sharing"]:
        """Hold the device together with other builders and checkers."""
        with _locked(self.path, fcntl.LOCK_SH) as fd, _opened(self._wish) as wish:
            yield Sharing(fd, wish)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the device alone."""
        with contextlib.ExitStack() as held:
            with _locked(self._wish, fcntl.LOCK_EX):
                held.enter_context(_locked(self.path, fcntl.LOCK_EX))
            yield


class Sharing:
    """A share of the device, which its holder can leave to somebody for a while."""

    def __init__(self, fd: int, wish: int) -> None:
        self._fd, self._wish = fd, wish

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits to have the device alone."""
        try:
            fcntl.flock(self._wish, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._wish, fcntl.LOCK_UN)
        return False

    def step_aside(self) -> None:
        """Let those who wait have it, one after the other; returns with the share back."""
        self.leave()
        self.come_back()

    def leave(self) -> None:
        """Let go of it."""
        fcntl.flock(self._fd, fcntl.LOCK_UN)

    def come_back(self) -> None:
        """Wait for it, behind those who want the device alone."""
        fcntl.flock(self._wish, fcntl.LOCK_SH)
        fcntl.flock(self._wish, fcntl.LOCK_UN)
        fcntl.flock(self._fd, fcntl.LOCK_SH)


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
def _opened(path: Path) -> Iterator[int]:
    fd = lock_file(path)
    try:
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _locked(path: Path, kind: int) -> Iterator[int]:
    with _opened(path) as fd:
        fcntl.flock(fd, kind)
        yield fd


@contextlib.contextmanager
def _one_by_one(wanted: Iterable[Callable[[], AbstractContextManager[object]]]) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for each in wanted:
            held.enter_context(each())
        yield
