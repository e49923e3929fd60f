"""How much a child may use, enforced by the kernel's resource limits."""

import os
import resource
from dataclasses import dataclass
from pathlib import Path

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one child may use; the defaults suit a small CPU task."""

    memory_bytes: int | None = 4096 * _MIB
    """Address space on top of what the zygote's image has; none for device runtimes that reserve
    terabytes of addresses they never touch."""
    scratch_bytes: int = 256 * _MIB
    """Size of the child's own ``/tmp``, and the largest single file."""
    threads: int = 64
    open_files: int = 256
    output_bytes: int = 8 * _MIB
    """More than this on stdout and stderr, and the judge kills the child."""

    def __post_init__(self) -> None:
        for name in ("scratch_bytes", "threads", "open_files", "output_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; a limit is above zero")
        if self.memory_bytes is not None and self.memory_bytes <= 0:
            raise ValueError(f"memory_bytes is {self.memory_bytes}; a limit is above zero")


def _lower(which: int, value: int) -> None:
    hard = resource.getrlimit(which)[1]
    bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (bound, bound))


def apply(limits: Limits, *, own_count: bool) -> None:
    """Bind this process to ``limits`` for good.

    Args:
        limits: What to allow.
        own_count: Whether the kernel counts this child's threads apart from the judge's; where it
            does not, a limit on them would hit the judge's other processes instead.
    """
    if limits.memory_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        _lower(resource.RLIMIT_AS, pages * resource.getpagesize() + limits.memory_bytes)
    _lower(resource.RLIMIT_FSIZE, limits.scratch_bytes)
    _lower(resource.RLIMIT_NOFILE, limits.open_files)
    if own_count:
        _lower(resource.RLIMIT_NPROC, limits.threads)
    # Not 0: where the machine pipes core dumps to a program, only 1 keeps it from being started.
    _lower(resource.RLIMIT_CORE, 1)
    _lower(resource.RLIMIT_MSGQUEUE, 0)
    _lower(resource.RLIMIT_RTPRIO, 0)
    _lower(resource.RLIMIT_MEMLOCK, 8 * _MIB)


def be_first_to_go() -> None:
    """Make the kernel choose this process when memory runs out, never the judge."""
    fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"1000")
    finally:
        os.close(fd)
