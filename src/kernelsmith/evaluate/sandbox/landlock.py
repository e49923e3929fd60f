"""Landlock: a second wall around files, and the only one where namespaces are refused."""

import ctypes
import os
import stat
from collections.abc import Sequence

from kernelsmith.evaluate.sandbox.syscalls import call

NEWEST_KNOWN_ABI = 7

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_UP_TO_MAKE_SYM = (1 << 13) - 1
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_BIND_AND_CONNECT_TCP = 3
_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_RULE_PATH_BENEATH = 1
_CREATE_RULESET_VERSION = 1
_LOG_NOTHING = 1


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def abi() -> int:
    """Return the interface version to use, or raise ``OSError`` where the kernel has none."""
    found = call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)
    return min(found, NEWEST_KNOWN_ABI)


def restrict(
    *, readable: Sequence[str], writable: Sequence[str], devices: Sequence[str],
    network: bool = False,
) -> int:  # fmt: skip
    """Leave this thread and all it starts only these paths, and return the ABI in force.

    Files that are already open stay as they are. Paths that do not exist are passed over.
    """
    version = abi()
    handled = _UP_TO_MAKE_SYM
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL_DEV if version >= 5 else 0
    denied = 0 if network else _BIND_AND_CONNECT_TCP
    ruleset = _Ruleset(handled, denied, _ABSTRACT_SOCKETS_AND_SIGNALS)
    size = 8 if version < 4 else 16 if version < 6 else 24
    rules = call("landlock_create_ruleset", ruleset, size, 0)
    try:
        read = _EXECUTE | _READ_FILE | _READ_DIR
        for path in readable:
            _allow(rules, path, read)
        for path in writable:
            _allow(rules, path, handled)
        for path in devices:
            _allow(rules, path, handled & (_READ_FILE | _WRITE_FILE | _IOCTL_DEV))
        call("landlock_restrict_self", rules, _LOG_NOTHING if version >= 7 else 0)
    finally:
        os.close(rules)
    return version


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _ON_A_FILE
        call("landlock_add_rule", rules, _RULE_PATH_BENEATH, _PathBeneath(rights, fd), 0)
    finally:
        os.close(fd)
