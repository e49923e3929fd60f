"""A device's memory in parts, for those who use it side by side.

What a judge may take is known before it begins, from one forward of the reference. It takes as many
rooms as that fills and waits where they are not free, so that nobody runs out of memory for what
others are doing. Rooms are locked files: who is killed leaves them.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from kernelsmith.evaluate.exclusive import lock_file

ROOMS = 88
"""A third more than there would be: what a judgement takes is counted as if all of it were there at
once, and two small ones hardly ever have their fullest moment together (with as many as fit, all
taken, 70 of 140 GB were in use at the median, 112 in one moment of twenty). Who finds no memory all
the same is judged again with twice the rooms, four times as many, and then alone."""
_SMALL = 8
"""Rooms up to which that is so. Larger ones really take what is counted for them: six of 13 rooms
and more filled an H200, and all of them ran short."""
LARGEST = 72
"""Rooms that one may have beside others."""
PART = 1 / 64
"""Of the device's memory in each room: with rooms of four times the size, most small tasks took two
for a little more than one."""
_LOOK_S = 0.04
_PATIENCE_S = 20.0
"""How long one who needs many rooms lets others pass who need few: while it stands at the door,
rooms stay empty until there are enough."""


class Rooms:
    """The rooms of one device, between all judges of one user on one machine."""

    def __init__(self, device: str, folder: Path | None = None) -> None:
        where = folder or Path(tempfile.gettempdir())
        name = f"kernelsmith-{os.getuid()}-{device}"
        self._door = where / f"{name}.door"
        self._rooms = [where / f"{name}.room{number}" for number in range(ROOMS)]

    @contextmanager
    def taken(self, count: int, *, patience_s: float = _PATIENCE_S) -> Iterator[None]:
        """Hold so many of them. Who fits goes first; who waited for long is not passed any more."""
        if not 1 <= count <= ROOMS:
            raise ValueError(f"there are {ROOMS} rooms; {count} were asked for")
        with ExitStack() as held:
            until = time.monotonic() + patience_s
            while not self._entered_all(count, until, held):
                time.sleep(_LOOK_S)
            yield

    def _entered_all(self, count: int, until: float, held: ExitStack) -> bool:
        """Take so many rooms that are free, or none of them; at the door, wait for them."""
        with ExitStack() as tried, ExitStack() as at_the_door:
            fcntl.flock(_opened(self._door, at_the_door), fcntl.LOCK_EX)
            taken: set[Path] = set()
            while True:
                for room in self._rooms:
                    if len(taken) < count and room not in taken and _entered(room, tried):
                        taken.add(room)
                if len(taken) == count:
                    held.push(tried.pop_all())
                    return True
                if time.monotonic() < until:
                    return False
                time.sleep(_LOOK_S)


def rooms_for(needed: int, total: int) -> int | None:
    """How many rooms hold so many bytes; none where that is too much to be beside others."""
    count = max(1, -(-needed // max(1, int(PART * total))))
    return count if count <= LARGEST else None


def kept_for(count: int) -> int:
    """How many rooms are kept for one that has counted so many."""
    truly = min(2 * count - _SMALL, -(-count * PART * ROOMS // 1))
    return min(max(count, int(truly)), ROOMS)


def _opened(path: Path, until: ExitStack) -> int:
    fd = lock_file(path)
    until.callback(os.close, fd)
    return fd


def _entered(room: Path, held: ExitStack) -> bool:
    with ExitStack() as tried:
        try:
            fcntl.flock(_opened(room, tried), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        held.push(tried.pop_all())
        return True
