"""The system call filter: a BPF program that denies what no kernel needs."""

import ctypes
import errno
import os
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kernelsmith.evaluate.sandbox.numbers import AUDIT_ARCH, LAST_KNOWN, numbers
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.syscalls import MACHINE, call

_LOAD, _JUMP_EQUAL, _JUMP_ABOVE, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x06
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000

_CLONE_THREAD = 0x00010000
_CLONE_NEW_ANYTHING = 0x7E020000
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_MM = 1, 4, 35
_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_NOTIFY = 8, 10, 15, 1026
_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX = 0x8901, 0x8902, 0x5412, 0x541C

_SIGKILL, _SIGSTOP = 9, 19

_FOR_BUILDERS = (
    *("execve", "execveat", "fork", "vfork"),
    *("rt_sigqueueinfo", "rt_tgsigqueueinfo", "tkill"),
    *("memfd_create", "setrlimit"),
)
_FOR_DRIVERS = ("bind", "listen", "socket")
"""A GPU driver opens a local socket when it starts; it fails with error 304 where it cannot."""
_FOR_WATCHERS = (*_FOR_DRIVERS, "accept", "accept4", "connect", "socketpair")
"""ncu and compute-sanitizer reach the program that they watch over TCP."""
_AF_UNIX, _AF_INET = 1, 2
_LOOKED_INTO = ("clone", "clone3", "fcntl", "ioctl", "kill", "prctl", "prlimit64", "tgkill")

_SECCOMP_SET_MODE_FILTER = 1
# Without it, older kernels switch on a mitigation that slows the very code we are here to time.
_FILTER_FLAG_SPEC_ALLOW = 4

_Instruction = tuple[int, int, str, str]
"""Code, operand, and the labels to jump to when true and when false ('' = the next)."""


class _Program:
    def __init__(self) -> None:
        self._code: list[_Instruction] = []
        self._labels: dict[str, int] = {}

    def add(self, code: int, operand: int, true: str = "", false: str = "") -> None:
        self._code.append((code, operand, true, false))

    def label(self, name: str) -> None:
        self._labels[name] = len(self._code)

    def assemble(self) -> bytes:
        def distance(at: int, label: str) -> int:
            return self._labels[label] - at - 1 if label else 0

        return b"".join(
            struct.pack("=HBBI", code, distance(at, true), distance(at, false), operand)
            for at, (code, operand, true, false) in enumerate(self._code)
        )


def denied(profile: Profile, *, driver: bool = False) -> tuple[str, ...]:
    """Name the calls that always fail in this profile."""
    kept = {*_LOOKED_INTO}
    if driver:
        kept |= {*_FOR_DRIVERS}
    if profile is not Profile.RUN:
        kept |= {*_FOR_BUILDERS}
    if profile is Profile.WATCH:
        kept |= {*_FOR_WATCHERS}
    return tuple(sorted(set(numbers(MACHINE)) - kept))


def program(profile: Profile, *, pid: int, driver: bool = False) -> bytes:
    """Assemble the filter for the process that calls itself ``pid``.

    ``clone3`` answers ENOSYS, because its flags lie in memory that a filter cannot read; libc then
    uses ``clone``. Timers, ``fcntl`` and message queues that can send a chosen signal are denied
    since a SIGCONT would wake a child that the judge has frozen. A running child may neither kill
    itself nor set a limit that makes the kernel do it: a SIGKILL that the judge did not send is to
    mean that the machine was at fault. Nor may it make memory files, which no limit counts.
    """
    call_numbers = numbers(MACHINE)
    code = _Program()
    code.add(_LOAD, _ARCH_AT)
    code.add(_JUMP_EQUAL, AUDIT_ARCH[MACHINE], "", "deny")
    code.add(_LOAD, _NUMBER_AT)
    code.add(_JUMP_ABOVE, LAST_KNOWN, "unknown")
    code.add(_JUMP_EQUAL, call_numbers["clone3"], "unknown")
    for name in denied(profile, driver=driver):
        code.add(_JUMP_EQUAL, call_numbers[name], "deny")

    run = profile is Profile.RUN
    own = (0, pid) if run else (0,)
    if profile is Profile.WATCH:
        _look(code, "socket", only={0: (_AF_UNIX, _AF_INET)})
    elif driver:
        _look(code, "socket", only={0: (_AF_UNIX,)})
    _look(code, "prctl", never={0: (_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_MM)})
    _look(code, "fcntl", never={2: (_F_SETOWN, _F_SETSIG, _F_SETOWN_EX, _F_NOTIFY)})
    _look(code, "ioctl", never={2: (_FIOSETOWN, _SIOCSPGRP, _TIOCSTI, _TIOCLINUX)})
    # Words 4 and 5 are the pointer to a new limit.
    _look(code, "prlimit64", only={0: own, 4: (0,), 5: (0,)} if run else {0: own})
    if run:
        _look(code, "kill", never={2: (_SIGKILL, _SIGSTOP)}, only={0: (pid,)})
        _look(code, "tgkill", never={4: (_SIGKILL, _SIGSTOP)}, only={0: (pid,)})
    code.add(_JUMP_EQUAL, call_numbers["clone"], "", "allow")
    code.add(_LOAD, _ARGUMENTS_AT)
    code.add(_JUMP_BITS, _CLONE_NEW_ANYTHING, "deny")
    if run:
        code.add(_JUMP_BITS, _CLONE_THREAD, "", "deny")
    code.label("allow")
    code.add(_RETURN, _ALLOW)
    code.label("deny")
    code.add(_RETURN, _ERRNO | errno.EPERM)
    code.label("unknown")
    code.add(_RETURN, _ERRNO | errno.ENOSYS)
    return code.assemble()


_Words = Mapping[int, Sequence[int]]
"""Values by half-argument: word 2 is the lower half of the second argument."""
_ANY: _Words = MappingProxyType({})


def _look(code: _Program, name: str, *, never: _Words = _ANY, only: _Words = _ANY) -> None:
    """Decide one call by its arguments."""
    code.add(_JUMP_EQUAL, numbers(MACHINE)[name], "", f"not {name}")
    for word, values in never.items():
        code.add(_LOAD, _ARGUMENTS_AT + 4 * word)
        for value in values:
            code.add(_JUMP_EQUAL, value, "deny")
    for word, values in only.items():
        code.add(_LOAD, _ARGUMENTS_AT + 4 * word)
        for value in values:
            code.add(_JUMP_EQUAL, value, f"{name} {word}")
        code.add(_RETURN, _ERRNO | errno.EPERM)
        code.label(f"{name} {word}")
    code.add(_RETURN, _ALLOW)
    code.label(f"not {name}")


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def install(profile: Profile, *, driver: bool = False) -> None:
    """Filter this thread's calls for good, and those of all it starts; needs no_new_privs.

    With ``driver``, local sockets can be made, though nothing can be connected to.
    """
    code = program(profile, pid=os.getpid(), driver=driver)
    found = _FilterProgram(len(code) // 8, code)
    try:
        call("seccomp", _SECCOMP_SET_MODE_FILTER, _FILTER_FLAG_SPEC_ALLOW, found)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        call("seccomp", _SECCOMP_SET_MODE_FILTER, 0, found)
