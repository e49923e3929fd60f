"""Who has the device while several judges share it: looked at from beside, for so many seconds.

Reads the kernel's list of locks fifty times a second: how long somebody had the device alone, how
many shared it or waited, how many rooms were taken. Nothing of it disturbs what is timed.
"""

import argparse
import os
import re
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

_HELD = re.compile(r"\d+: (-> )?FLOCK +ADVISORY +(READ|WRITE) +(-?\d+) +\S+:(\d+) ")
_LOOK_S = 0.02
_FULL = 3900
"""Bytes from which a read of ``/proc/locks`` may have ended for want of room: it gives a page."""


@dataclass(slots=True)
class Seen:
    """One look."""

    alone: int | None = None
    """The process that has the device alone."""
    sharing: int = 0
    waiting: int = 0
    rooms: int = 0


@dataclass(slots=True)
class Spells:
    """How long it went on being one thing or the other."""

    of: dict[str, list[float]] = field(default_factory=dict)
    _last: str = ""
    _since: float = 0.0

    def note(self, kind: str, now: float) -> None:
        """What it is now."""
        if kind != self._last:
            if self._last:
                self.of.setdefault(self._last, []).append(now - self._since)
            self._last, self._since = kind, now


def files(folder: Path) -> dict[int, str]:
    """What the lock files of all devices are, by inode: ``lock``, ``wish``, ``door``, ``room7``."""
    found = folder.glob(f"kernelsmith-{os.getuid()}-*")
    return {each.stat().st_ino: each.suffix[1:] for each in found if each.is_file()}


def listed() -> str:
    """The locks of all processes, as they were at one moment if they fit into a page.

    One read is one state. A second one goes on by counting lines, so a lock that is taken in
    between makes it repeat a line; it is asked only where the first was full.
    """
    fd = os.open("/proc/locks", os.O_RDONLY)
    try:
        parts = [os.read(fd, 1 << 20)]
        while len(parts[-1]) >= _FULL:
            parts.append(os.read(fd, 1 << 20))
    finally:
        os.close(fd)
    return b"".join(parts).decode()


def seen(locks: str, known: dict[int, str]) -> Seen:
    """What a list of locks says."""
    found = Seen()
    rooms = set()
    for line in locks.splitlines():
        held = _HELD.match(line)
        name = known.get(int(held[4]), "") if held else ""
        if held is None or not name:
            continue
        if name.startswith("room") and not held[1]:
            rooms.add(held[4])  # one has it, whatever is listed twice
        elif name == "lock" and held[1]:
            found.waiting += 1
        elif name == "lock" and held[2] == "WRITE":
            found.alone = int(held[3])
        elif name == "lock":
            found.sharing += 1
    found.rooms = len(rooms)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=25.0)
    args = parser.parse_args()
    known = files(Path(tempfile.gettempdir()))
    if not known:
        raise SystemExit("nobody has judged on a GPU here since this machine started")
    looks, spells, until = [], Spells(), time.monotonic() + args.seconds
    while time.monotonic() < until:
        looks.append(seen(listed(), known))
        last = looks[-1]
        kind = "alone" if last.alone is not None else "shared" if last.sharing else "nobody"
        spells.note(kind, time.monotonic())
        time.sleep(_LOOK_S)
    mean = statistics.mean
    print(f"{len(looks)} looks; had alone {mean(each.alone is not None for each in looks):.0%}")
    print(f"sharing it {mean(each.sharing for each in looks):.1f}", end=", ")
    print(f"waiting for it {mean(each.waiting for each in looks):.1f}", end=", ")
    print(f"rooms taken {mean(each.rooms for each in looks):.1f} (means)")
    for kind, lasted in sorted(spells.of.items()):
        half, most = statistics.median(lasted), max(lasted)
        print(f"{kind}: {len(lasted)} spells, median {half:.2f} s, longest {most:.2f} s")


if __name__ == "__main__":
    main()
