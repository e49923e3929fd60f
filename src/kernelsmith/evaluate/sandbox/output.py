"""What a child wrote to stdout and stderr: all of it counted, the end of it kept."""

import contextlib
import os

TAIL_BYTES = 16 << 10
_CHUNK = 1 << 16


class Output:
    """The judge's end of a child's output pipe."""

    def __init__(self, fd: int, *, most: int) -> None:
        """Take over the descriptor; after ``most`` bytes nothing more is read."""
        os.set_blocking(fd, False)
        self.fd = fd
        self.most = most
        self.count = 0
        self._tail = bytearray()

    @property
    def exceeded(self) -> bool:
        """Whether the child wrote more than it may."""
        return self.count > self.most

    @property
    def text(self) -> str:
        """The last 16 KiB."""
        return self._tail.decode(errors="replace")

    def drain(self) -> bool:
        """Take in what has come; false when nothing more is to be read, ever."""
        with contextlib.suppress(BlockingIOError):
            while not self.exceeded and (data := os.read(self.fd, _CHUNK)):
                self.count += len(data)
                self._tail = (self._tail + data)[-TAIL_BYTES:]
            return False
        return True

    def close(self) -> None:
        """Let go of the pipe; the tail stays."""
        os.close(self.fd)
