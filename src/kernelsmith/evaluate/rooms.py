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

ROOMS = 12
PART = 1 / 16
"""Of the device's memory in each room; the rest is for contexts, and for what torch's compiler is
asked meanwhile."""
_LOOK_S = 0.02


class Rooms:
    """The rooms of one device, between all judges of one user on one machine."""

    def __init__(self, device: str, folder: Path | None = None) -> None:
        where = folder or Path(tempfile.gettempdir())
        name = f"kernelsmith-{os.getuid()}-{device}"
        self._door = where / f"{name}.door"
        self._rooms = [where / f"{name}.room{number}" for number in range(ROOMS)]

    @contextmanager
    def taken(self, count: int) -> Iterator[None]:
        """Hold so many of them; whoever is at the door gets all that it needs before the next."""
        if not 1 <= count <= ROOMS:
            raise ValueError(f"there are {ROOMS} rooms; {count} were asked for")
        with ExitStack() as held:
            with ExitStack() as at_the_door:
                fcntl.flock(_opened(self._door, at_the_door), fcntl.LOCK_EX)
                taken: set[Path] = set()
                while True:
                    for room in self._rooms:
                        if len(taken) < count and room not in taken and _entered(room, held):
                            taken.add(room)
                    if len(taken) == count:
                        break
                    time.sleep(_LOOK_S)
            yield


def rooms_for(needed: int, total: int) -> int | None:
    """How many rooms hold so many bytes; none where all of them do not."""
    count = max(1, -(-needed // max(1, int(PART * total))))
    return count if count <= ROOMS else None


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
