"""Cores of this machine in groups, so that several judges time at once without sharing one."""

import os
from collections.abc import Collection
from pathlib import Path

from kernelsmith.errors import UsageError

_SYSTEM = Path("/sys/devices/system/cpu")


def groups(
    size: int, *, cores: Collection[int] | None = None, system: Path = _SYSTEM
) -> list[tuple[int, ...]]:
    """Split the cores that this process may use into groups of ``size``; what is left over is idle.

    Two threads of one core stay in one group where they fit: what one of them does slows the other.

    Raises:
        UsageError: There are fewer cores than that.
    """
    own = os.sched_getaffinity(0) if cores is None else cores
    if not 1 <= size <= len(own):
        raise UsageError(f"a judge gets 1 to {len(own)} cores here; got {size}")
    ordered = sorted(own, key=lambda core: (_first_sibling(core, system), core))
    return [tuple(sorted(ordered[at : at + size])) for at in range(0, len(own) - size + 1, size)]


def _first_sibling(core: int, system: Path) -> int:
    """The lowest number among the threads of a core; its own where the system does not say."""
    try:
        said = (system / f"cpu{core}" / "topology" / "thread_siblings_list").read_text()
        return min(int(part) for part in said.replace("-", ",").split(","))
    except (OSError, ValueError):
        return core
