"""Where a thread of another process is, asked by stopping it for some microseconds.

Slower and more noticeable than perf events, but often allowed where those are not: a parent may
trace its children.
"""

import ctypes
import os
import platform
import signal
import struct
import time
from pathlib import Path

_SEIZE, _INTERRUPT, _DETACH, _GETREGSET = 0x4206, 0x4207, 17, 0x4204
_PRSTATUS = 1
_WALL, _NOTHREAD = 0x40000000, 0x20000000
_OF_PROCESS = 2
"""The clock of another process's CPU time, as the kernel numbers it beside the process."""
_COUNTER_AT = {"x86_64": 16 * 8, "aarch64": 32 * 8}
"""Where the general registers keep the instruction pointer."""


class _Buffer(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _ptrace(request: int, tid: int, address: int, data: object) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.restype = ctypes.c_long
    if libc.ptrace(request, tid, ctypes.c_void_p(address), data) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), f"ptrace of {tid}")


def address_of(tid: int) -> int:
    """Stop a thread, read its instruction pointer and let it go on as it was.

    Raises:
        OSError: The thread ended, or this user may not trace it.
    """
    at = _COUNTER_AT.get(platform.machine())
    if at is None:
        raise OSError(f"no register layout known for {platform.machine()!r}")
    _ptrace(_SEIZE, tid, 0, None)
    pending = 0
    try:
        _ptrace(_INTERRUPT, tid, 0, None)
        # Without NOTHREAD another thread of the judge could be handed this stop, or we its child.
        _, status = os.waitpid(tid, _WALL | _NOTHREAD)
        if not os.WIFSTOPPED(status):
            raise ProcessLookupError(f"thread {tid} ended while it was asked")
        if status >> 16 == 0 and os.WSTOPSIG(status) != signal.SIGTRAP:
            pending = os.WSTOPSIG(status)  # a signal was on its way: hand it on when letting go
        registers = ctypes.create_string_buffer(512)
        buffer = _Buffer(ctypes.cast(registers, ctypes.c_void_p), len(registers))
        _ptrace(_GETREGSET, tid, _PRSTATUS, ctypes.byref(buffer))
        (address,) = struct.unpack_from("=Q", registers, at)
        return int(address)
    finally:
        # Fails only when the thread is gone, and then there is nothing to let go.
        libc = ctypes.CDLL(None)
        libc.ptrace(_DETACH, tid, None, ctypes.c_void_p(pending))


def cpu_s(pid: int) -> float:
    """Return the CPU time a process has had, to the scheduler's tick; 0 when it is gone."""
    try:
        return time.clock_gettime(~pid << 3 | _OF_PROCESS)
    except OSError:
        return 0.0


def running_threads(pid: int) -> list[int]:
    """List the threads that are on a CPU or wait for one; none when the process is gone."""
    found = []
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:
        return []
    for tid in threads:
        try:
            status = Path(f"/proc/{pid}/task/{tid}/stat").read_bytes()
        except (FileNotFoundError, ProcessLookupError):
            continue
        # The name stands in parentheses and may hold anything, parentheses too.
        if status.rpartition(b")")[2].split()[0] == b"R":
            found.append(int(tid))
    return found
