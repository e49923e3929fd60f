"""Who is judged next, where several are judged side by side and a GPU's memory is what they share.

Left to themselves, large tasks wait at the door of the rooms before every evaluation while small
ones slip in, or keep all others out. Here a task is begun when it fits beside those under way.
Large ones go first, the largest before the others, but few at a time: they really take what is
counted for them, where small ones take half of it, and what they wait for is the device. Small
ones, which are mostly processes and compilers, keep the cores busy meanwhile.
"""

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from threading import Condition

from benchmarks.rules_tasks import Chosen
from kernelsmith.evaluate.rooms import ROOMS

ALL = 80
"""Rooms that are kept for all tasks under way: of 140 GB, 17 were contexts of nine judges."""
ALONE = ROOMS + 1
"""Rooms of a task that nobody can be judged beside."""
LARGE = 24
"""Rooms from which a task is mostly traffic of memory."""
OF_LARGE = 76
"""Rooms that large tasks may fill together."""
USUAL = 6
"""Rooms of a task that nothing is known of."""
_LOOK_S = 0.5


class Packing:
    """Keeps count of the rooms of all tasks under way; shared by those who judge."""

    def __init__(
        self, rooms: Mapping[str, int], *, most_large: int, until: float = math.inf,
        of: int = ALL,
    ) -> None:  # fmt: skip
        """Begin with nobody under way.

        Args:
            rooms: What tasks take, by key.
            most_large: Of large tasks at a time.
            until: By ``time.monotonic``, when nothing more is begun: what was handed out and never
                begun says nothing of its end.
            of: How many rooms there are.
        """
        self._rooms, self._most_large, self._until, self._of = rooms, most_large, until, of
        self._under_way: dict[str, int] = {}
        self._back: list[Chosen] = []
        self._changed = Condition()

    def rooms(self, key: str) -> int:
        """What it takes, all of them at most."""
        return min(self._rooms.get(key, USUAL), self._of)

    def needs_all(self, key: str) -> bool:
        """Whether nobody can be judged beside it."""
        return self._rooms.get(key, USUAL) >= ALONE

    def in_order(self, tasks: Iterable[Chosen]) -> Iterator[Chosen]:
        """Each of them once, when it fits, and whatever came back; who has one says ``done``."""
        waiting = sorted(tasks, key=lambda each: -max(LARGE - 1, self.rooms(each.key)))
        while (chosen := self._next(waiting)) is not None:
            yield chosen

    def again(self, chosen: Chosen) -> None:
        """It found no memory beside others: it is begun once more, behind all the rest."""
        with self._changed:
            self._back.append(chosen)

    def done(self, key: str) -> None:
        """Its rooms are free again."""
        with self._changed:
            self._under_way.pop(key, None)
            self._changed.notify_all()

    def _next(self, waiting: list[Chosen]) -> Chosen | None:
        """Wait for one that fits; none where there are no more, or it is too late."""
        with self._changed:
            while True:
                waiting += self._back
                self._back.clear()
                place = self._fitting(waiting)
                if place is not None:
                    chosen = waiting.pop(place)
                    self._under_way[chosen.key] = self.rooms(chosen.key)
                    return chosen
                # Who is under way may still come back.
                over = time.monotonic() >= self._until
                if over or not (waiting or self._under_way):
                    return None
                self._changed.wait(_LOOK_S)

    def _fitting(self, waiting: list[Chosen]) -> int | None:
        """The first that may begin now; alone, everything may."""
        free = self._of - sum(self._under_way.values())
        large = [each for each in self._under_way.values() if each >= LARGE]
        for place, each in enumerate(waiting):
            count = self.rooms(each.key)
            fits = count < LARGE or not large or (
                len(large) < self._most_large and sum(large) + count <= OF_LARGE
            )  # fmt: skip
            if count <= free and fits:
                return place
        return 0 if waiting and not self._under_way else None
