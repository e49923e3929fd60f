"""Giving up what makes a process powerful: its user, its capabilities, its way back to them."""

import errno
import os
import struct
from pathlib import Path

from kernelsmith.evaluate.sandbox.syscalls import (
    PR_CAP_AMBIENT,
    PR_CAP_AMBIENT_CLEAR_ALL,
    PR_CAPBSET_DROP,
    PR_SET_NO_NEW_PRIVS,
    call,
    prctl,
)

_CAPABILITY_VERSION_3 = 0x20080522
_FIRST_UID, _UIDS = 60_000, 5_000


def spare_uid(pid: int) -> int:
    """Choose a user id for the child of this pid; live children get different ones."""
    return _FIRST_UID + pid % _UIDS


def others_exist() -> bool:
    """Whether root here can be one of the spare users; in a container it may be all there is."""
    for name in ("uid_map", "gid_map"):
        lines = Path("/proc/self", name).read_text().splitlines()
        ranges = [(int(start), int(count)) for start, _, count in map(str.split, lines)]
        if not any(
            start <= _FIRST_UID and start + count >= _FIRST_UID + _UIDS for start, count in ranges
        ):
            return False
    return True


def map_user(uid: int, gid: int) -> None:
    """Be the same user inside a new user namespace; right after the clone that made it."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def drop_bounding_set() -> None:
    """Make it impossible for any program to gain a capability; needs CAP_SETPCAP."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:
                return
            raise


def become(uid: int) -> None:
    """Change to a user that owns nothing; for root only, and for good."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def drop_capabilities() -> None:
    """Give up every capability held now."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    call("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


def no_new_privileges() -> None:
    """Make set-user-id programs ordinary ones."""
    prctl(PR_SET_NO_NEW_PRIVS, 1)
