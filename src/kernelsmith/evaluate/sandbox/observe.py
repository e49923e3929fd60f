"""Looking at a process from outside, through ``/proc`` and its pidfd."""

import os
import select
from pathlib import Path


def threads(pid: int) -> tuple[int, ...]:
    """List its threads; none when it is gone."""
    try:
        return tuple(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except (FileNotFoundError, ProcessLookupError):
        return ()


def is_stopped(pid: int) -> bool:
    """Whether every thread is stopped; threads that have ended do not count, but one must live."""
    living = [state for thread in threads(pid) if (state := _state(pid, thread)) not in "ZX"]
    return bool(living) and all(state in "Tt" for state in living)


def maps(pid: int) -> str:
    """Return its memory map as the kernel prints it."""
    return Path(f"/proc/{pid}/maps").read_text(errors="replace")


def has_ended(pidfd: int, within_s: float = 0.0) -> bool:
    """Wait for the end of a process; false when it still runs by then."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def _state(pid: int, thread: int) -> str:
    try:
        fd = os.open(f"/proc/{pid}/task/{thread}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return "X"
    try:
        line = os.read(fd, 512)
    except ProcessLookupError:
        return "X"
    finally:
        os.close(fd)
    # The name before the state is the child's choice and may hold anything, brackets included.
    return line[line.rindex(b")") + 2 :][:1].decode()
