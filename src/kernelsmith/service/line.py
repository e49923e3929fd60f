"""Who is next: clients share devices evenly, and keep their own order by priority.

Held in memory (a number per request) and made anew from the store after a start. A worker stays
with a task whose reference it has open for a while: opening one costs more than going out of turn.
"""

from collections import OrderedDict, deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kernelsmith.service.store import Entry

Place = tuple[str, str | None]
"""Backend, and the device's name where only one will do."""


@dataclass(slots=True)
class _Shelf:
    """One client's requests for one place: by priority, by task, in order of arrival."""

    tiers: dict[int, OrderedDict[str, deque[int]]] = field(default_factory=dict)

    def put(self, entry: Entry, *, first: bool) -> None:
        tier = self.tiers.setdefault(entry.priority, OrderedDict())
        waiting = tier.setdefault(entry.task, deque())
        if first:
            waiting.appendleft(entry.seq)
            tier.move_to_end(entry.task, last=False)
        else:
            waiting.append(entry.seq)

    @property
    def priority(self) -> int:
        return max(self.tiers)

    def tasks(self) -> Collection[str]:
        return self.tiers[self.priority].keys()

    def rotate(self, task: str) -> None:
        """Let the client's other tasks go first."""
        tier = self.tiers[self.priority]
        if task in tier:
            tier.move_to_end(task)

    def take(self, warm: Collection[str]) -> tuple[int, str]:
        priority = self.priority
        tier = self.tiers[priority]
        task = next((each for each in warm if each in tier), None) or next(iter(tier))
        waiting = tier[task]
        seq = waiting.popleft()
        if not waiting:
            del tier[task]
        if not tier:
            del self.tiers[priority]
        return seq, task


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a worker is to do next."""

    entry: Entry
    expected_s: float
    """What the client was charged in advance."""


class Line:
    """The order of all requests that wait, cancelled ones included. Used by one thread."""

    def __init__(self, *, streak: int = 16, quantum_s: float = 30.0) -> None:
        """Set how long a worker may stay.

        Args:
            streak: Requests of one task that a worker may take in a row while others wait.
            quantum_s: How far ahead of its share a client may get for that.
        """
        self._streak, self._quantum_s = streak, quantum_s
        self._shelves: dict[Place, dict[str, _Shelf]] = {}
        self._used_s: dict[str, float] = {}
        """Device time by client, as far as fairness goes."""
        self._waiting: dict[str, int] = {}
        self._expected_s = 1.0

    def __len__(self) -> int:
        return sum(self._waiting.values())

    def waiting(self, client: str) -> int:
        """How many requests of one client wait."""
        return self._waiting.get(client, 0)

    def depths(self) -> Iterator[tuple[Place, int]]:
        """How many wait for each place."""
        for place, shelves in self._shelves.items():
            tiers = (tier for shelf in shelves.values() for tier in shelf.tiers.values())
            yield place, sum(len(waiting) for tier in tiers for waiting in tier.values())

    def put(self, entry: Entry, *, first: bool = False) -> None:
        """Let a request wait; ``first`` before its client's others."""
        client = entry.client
        if not self._waiting.get(client):
            # Whoever was away does not save up time to spend at everybody's cost.
            floor = min((self._used_s[c] for c, n in self._waiting.items() if n), default=0.0)
            self._used_s[client] = max(self._used_s.get(client, 0.0), floor)
        self._waiting[client] = self._waiting.get(client, 0) + 1
        shelves = self._shelves.setdefault((entry.backend, entry.device), {})
        shelves.setdefault(client, _Shelf()).put(entry, first=first)

    def take(
        self, backend: str, device: str, *, warm: Collection[str] = (),
        last: Turn | None = None, row: int = 0,
    ) -> Turn | None:  # fmt: skip
        """Say what a worker on this device does next; none where nothing waits for it.

        Args:
            backend: Of the worker.
            device: Its name.
            warm: Tasks whose references it has open.
            last: What it did before.
            row: How many of the last one's task it has done in a row.
        """
        places = [(backend, device), (backend, None)]
        tired = last is not None and row >= self._streak
        warm = () if tired else warm
        client = self._next_client(places, warm, last)
        if client is None:
            return None
        shelves = [
            (place, self._shelves[place][client])
            for place in places
            if client in self._shelves.get(place, {})
        ]
        place, shelf = max(shelves, key=lambda each: each[1].priority)
        if last is not None and tired:
            shelf.rotate(last.entry.task)
        priority = shelf.priority
        seq, task = shelf.take(warm)
        self._waiting[client] -= 1
        if not shelf.tiers:
            del self._shelves[place][client]
            if not self._shelves[place]:
                del self._shelves[place]
        self._used_s[client] += self._expected_s
        entry = Entry(
            seq=seq, client=client, task=task, backend=place[0], device=place[1], priority=priority
        )
        return Turn(entry=entry, expected_s=self._expected_s)

    def charge(self, turn: Turn, seconds: float) -> None:
        """Say how long a turn really took."""
        self._used_s[turn.entry.client] += seconds - turn.expected_s
        self._expected_s += 0.1 * (seconds - self._expected_s)

    def _next_client(
        self, places: list[Place], warm: Collection[str], last: Turn | None
    ) -> str | None:
        clients = {client for place in places for client in self._shelves.get(place, {})}
        if not clients:
            return None
        least = min(clients, key=lambda each: (self._used_s[each], each))
        before = least if last is None else last.entry.client
        if before not in clients or before == least:
            return least
        ahead = self._used_s[before] - self._used_s[least]
        shelves = [self._shelves.get(place, {}).get(before) for place in places]
        has_warm = any(s is not None and any(t in s.tasks() for t in warm) for s in shelves)
        return before if has_warm and ahead <= self._quantum_s else least
