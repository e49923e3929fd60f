"""Reading and writing another process's memory from outside, without its help."""

import ctypes
import errno
import os
from collections.abc import Callable

from kernelsmith.evaluate.sandbox.syscalls import LIBC


class Unmapped(Exception):
    """The other process has no such memory, or not all of it."""


class _Span(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def read_into(pid: int, address: int, buffer: memoryview) -> None:
    """Fill a writable buffer from ``address`` on.

    Raises:
        Unmapped: Some of it is not there; the buffer may be half filled.
        ProcessLookupError: The process is gone.
    """
    _transfer(LIBC.process_vm_readv, pid, address, buffer)


def write(pid: int, address: int, data: memoryview) -> None:
    """Store the bytes from ``address`` on; raises as ``read_into`` does."""
    # ctypes takes the address of writable buffers only, and most of what is written is `bytes`.
    source = data if not data.readonly else memoryview(bytearray(data))
    _transfer(LIBC.process_vm_writev, pid, address, source)


def _transfer(move: Callable[..., int], pid: int, address: int, buffer: memoryview) -> None:
    flat = buffer.cast("B")
    total = flat.nbytes
    if total == 0:
        return
    if not 0 <= address < 1 << 64:
        raise Unmapped(f"{address:#x} is no address")
    here = ctypes.addressof((ctypes.c_char * total).from_buffer(flat))
    done = 0
    while done < total:
        local = _Span(here + done, total - done)
        remote = _Span(address + done, total - done)
        ctypes.set_errno(0)
        moved = move(
            ctypes.c_int(pid),
            ctypes.byref(local),
            ctypes.c_ulong(1),
            ctypes.byref(remote),
            ctypes.c_ulong(1),
            ctypes.c_ulong(0),
        )
        if moved > 0:
            done += moved
            continue
        code = ctypes.get_errno()
        if code in (errno.EFAULT, errno.EINVAL, 0):
            raise Unmapped(f"no memory at {address + done:#x}, {done} bytes into {total}")
        raise OSError(code, os.strerror(code))


for _move in (LIBC.process_vm_readv, LIBC.process_vm_writev):
    _move.restype = ctypes.c_ssize_t
