"""A root directory of the child's own, holding what it may read and nothing else."""

import ctypes
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.evaluate.sandbox.syscalls import call, mount, unmount

SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib64",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    # torch asks these which vector instructions to use; without them it runs slower code.
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
)
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
SCRATCH = "/tmp"
SHARED_MEMORY = "/dev/shm"

_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _REC, _PRIVATE = 0x20, 0x1000, 0x4000, 0x40000
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

# The new root grows here; sources are opened first, so it may hide some of them.
_BASE = "/tmp"


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """What the new root holds besides the system directories."""

    readable: Sequence[str]
    devices: Sequence[str]
    scratch_bytes: int
    uid: int
    gid: int


def enter(root: Root) -> None:
    """Make the new root, move into its scratch directory, and let go of the old one.

    It leaves descriptors open that reach into the old root; the caller closes them.
    Needs a mount and a process namespace of its own. Raises ``OSError`` when refused, and then
    leaves the process somewhere half-way: it must not go on.
    """
    wanted = [*SYSTEM, *root.readable]
    links = dict(link for path in wanted for link in _links(path))
    binds = {path: _open(path) for path in _outermost(map(os.path.realpath, wanted))}
    nodes = {path: _open(path) for path in (*DEVICES, *root.devices) if os.path.exists(path)}
    own_proc = _open(os.path.realpath("/proc/self"))

    mount("none", "/", None, _REC | _PRIVATE)
    mount("tmpfs", _BASE, "tmpfs", _NOSUID | _NODEV, "mode=755,size=1m,nr_inodes=8192")
    for directory in ("dev/shm", "etc", "proc", "tmp"):
        os.makedirs(f"{_BASE}/{directory}")
    # Before the binds, since a readable path may lie in a directory of the same name.
    _mount_scratch(root)
    for path, target in links.items():
        if not any(_within(path, bind) for bind in binds):
            os.makedirs(os.path.dirname(_BASE + path), exist_ok=True)
            os.symlink(target, _BASE + path)
    for path, fd in binds.items():
        _bind(fd, _BASE + path, _RDONLY | _NOSUID | _NODEV)
    for path, fd in nodes.items():
        _bind(fd, _BASE + path, _RDONLY | _NOSUID | _NOEXEC)
    _mount_proc(own_proc, writable=bool(root.devices))
    _write_accounts(root)
    _restrict(_BASE, _RDONLY | _NOSUID | _NODEV, recursive=False)

    os.chdir(_BASE)
    call("pivot_root", b".", b".")
    unmount(".", _DETACH)
    os.chdir(SCRATCH)
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)


def _within(path: str, parent: str) -> bool:
    return path == parent or path.startswith(parent.rstrip("/") + "/")


def _outermost(paths: Iterable[str]) -> Iterator[str]:
    """Yield the paths that exist and lie in no other one, parents first."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if path == "/":
            raise PermissionError("'/' would show the child everything")
        if os.path.exists(path) and not any(_within(path, other) for other in kept):
            kept.append(path)
            yield path


def _links(path: str) -> Iterator[tuple[str, str]]:
    """Yield each symbolic link on the way to ``path``, with its target."""
    at = "/"
    for part in Path(path).parts[1:]:
        here = os.path.join(at, part)
        if os.path.islink(here):
            yield here, os.readlink(here)
        at = os.path.realpath(here)


def _open(path: str) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _bind(source: int, target: str, attributes: int) -> None:
    if Path(f"/proc/self/fd/{source}").is_dir():
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_CLOEXEC, 0o444))
    # Recursive, for a user namespace may not take a mount without those that cover parts of it.
    mount(f"/proc/self/fd/{source}", target, None, _BIND | _REC)
    _restrict(target, attributes, recursive=True)


def _restrict(target: str, attributes: int, *, recursive: bool) -> None:
    wanted = _Attributes(attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    try:
        call("mount_setattr", _AT_FDCWD, target.encode(), flags, wanted, ctypes.sizeof(wanted))
    except OSError:
        # Before Linux 5.12; this reaches the topmost mount only.
        mount("none", target, None, _REMOUNT | _BIND | attributes)


def _mount_scratch(root: Root) -> None:
    options = f"mode=700,uid={root.uid},gid={root.gid},size={root.scratch_bytes},nr_inodes=16384"
    mount("tmpfs", _BASE + SCRATCH, "tmpfs", _NOSUID | _NODEV, options)
    mount("tmpfs", _BASE + SHARED_MEMORY, "tmpfs", _NOSUID | _NODEV | _NOEXEC, options)
    os.symlink("/proc/self/fd", f"{_BASE}/dev/fd")


def _mount_proc(own: int, *, writable: bool) -> None:
    try:
        # Read-only, or the child could take back its place in the queue of the OOM killer; a GPU
        # driver names its threads there, and so must be let in.
        attributes = _NOSUID | _NODEV | _NOEXEC | (0 if writable else _RDONLY)
        mount("proc", f"{_BASE}/proc", "proc", attributes)
    except OSError:
        # Inside most containers a user namespace gets no /proc; the child's own part will do.
        _bind(own, f"{_BASE}/proc/self", _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def _write_accounts(root: Root) -> None:
    etc = Path(_BASE, "etc")
    (etc / "passwd").write_text(f"sandbox:x:{root.uid}:{root.gid}::{SCRATCH}:/bin/false\n")
    (etc / "group").write_text(f"sandbox:x:{root.gid}:\n")
