"""Software perf events: where the threads of another process are, without their knowing.

Kernel interface: ``man perf_event_open``. The event is the CPU clock, which needs no hardware
counter and so works in virtual machines too.
"""

import ctypes
import fcntl
import mmap
import os
import platform
import struct
from pathlib import Path

_SYSCALL = {"x86_64": 298, "aarch64": 241}
_TYPE_SOFTWARE, _CPU_CLOCK = 1, 0
_SAMPLE_IP, _SAMPLE_TID = 1 << 0, 1 << 1
_DISABLED, _INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_MMAP, _FREQ, _MMAP2 = 1 << 8, 1 << 10, 1 << 23
_CLOEXEC = 1 << 3
_ENABLE, _DISABLE, _SET_OUTPUT = 0x2400, 0x2401, 0x2405
_RECORD_MMAP, _RECORD_SAMPLE, _RECORD_MMAP2 = 1, 9, 10
_ATTR_BYTES = 128
_HEAD_AT, _TAIL_AT = 1024, 1032
"""Where the control page keeps the ring's two ends."""

ANY_PROCESS = -1
UNKNOWN = 0
"""Stands for an address whose memory was exchanged while it was sampled."""


def open_event(pid: int, *, cpu: int, frequency: int) -> int:
    """Open one event and return its descriptor.

    Raises:
        OSError: This machine, or this user, may not sample like that.
    """
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"no perf_event_open number known for {platform.machine()!r}")
    flags = _DISABLED | _EXCLUDE_KERNEL | _EXCLUDE_HV | _MMAP | _MMAP2 | _FREQ
    if pid != ANY_PROCESS:
        flags |= _INHERIT
    head = struct.pack("=IIQQQQQ", _TYPE_SOFTWARE, _ATTR_BYTES, _CPU_CLOCK, frequency,
                       _SAMPLE_IP | _SAMPLE_TID, 0, flags)  # fmt: skip
    attribute = ctypes.create_string_buffer(head, _ATTR_BYTES)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = int(libc.syscall(number, attribute, pid, cpu, -1, _CLOEXEC))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "perf_event_open")
    return fd


class Ring:
    """What one CPU's events wrote, in a buffer shared with the kernel."""

    def __init__(self, leader: int) -> None:
        self._fds = [leader]
        self._memory = _map_ring(leader)

    def join(self, fd: int) -> None:
        """Let another event of the same CPU write here too."""
        fcntl.ioctl(fd, _SET_OUTPUT, self._fds[0])
        self._fds.append(fd)

    def enable(self) -> None:
        """Forget what was written and start."""
        head = self._memory[_HEAD_AT : _HEAD_AT + 8]
        self._memory[_TAIL_AT : _TAIL_AT + 8] = head
        for fd in self._fds:
            fcntl.ioctl(fd, _ENABLE, 0)

    def disable(self) -> None:
        """Stop writing; what is there stays."""
        for fd in self._fds:
            fcntl.ioctl(fd, _DISABLE, 0)

    def read(self, pid: int) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return a process's samples as (thread, address), and the code it mapped meanwhile."""
        data = self._content()
        samples: list[tuple[int, int]] = []
        mapped: list[tuple[int, int]] = []
        at = 0
        while at < len(data):
            kind, _, size = struct.unpack_from("=IHH", data, at)
            if kind == _RECORD_SAMPLE:
                address, owner, thread = struct.unpack_from("=QII", data, at + 8)
                if owner == pid:
                    samples.append((thread, address))
            elif kind in (_RECORD_MMAP, _RECORD_MMAP2):
                owner, _, start, length = struct.unpack_from("=IIQQ", data, at + 8)
                if owner == pid:
                    mapped.append((start, start + length))
            at += size
        return samples, mapped

    def _content(self) -> bytes:
        head, tail = struct.unpack_from("=QQ", self._memory, _HEAD_AT)
        ring = self._memory[mmap.PAGESIZE :]
        first, last = tail % len(ring), head % len(ring)
        if head == tail:
            return b""
        return ring[first:last] if first < last else ring[first:] + ring[:last]

    def close(self) -> None:
        """Give buffer and descriptors back."""
        self._memory.close()
        for fd in self._fds:
            os.close(fd)
        self._fds.clear()


def _map_ring(fd: int) -> mmap.mmap:
    # 1 MiB holds 8 s at 5 kHz; users other than root are allowed 512 KiB per CPU by default.
    pages = (1 << 20) // mmap.PAGESIZE
    while True:
        try:
            return mmap.mmap(fd, (1 + pages) * mmap.PAGESIZE)
        except OSError:
            pages //= 2
            if pages == 0:
                raise


def online_cpus() -> list[int]:
    """List the CPUs that may run something."""
    cpus: list[int] = []
    for part in Path("/sys/devices/system/cpu/online").read_text().strip().split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
