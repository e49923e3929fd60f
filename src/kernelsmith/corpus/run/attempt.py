"""Harvested code may raise anything; what was only worth a try becomes a value here."""

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def attempted(call: Callable[[], T]) -> T | None:
    """What it gives; none where it raised, unless the process is to end or memory ran out."""
    try:
        return call()
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException:  # SystemExit too
        return None


def works(call: Callable[[], object]) -> bool:
    """Whether it gives anything at all, None included."""
    return attempted(lambda: (call(),)) is not None
