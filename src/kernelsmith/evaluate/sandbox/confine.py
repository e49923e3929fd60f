"""Turning a fresh child of the zygote into a confined one, before any hostile code."""

import errno
import os
import select
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.evaluate.sandbox import landlock, limits, mounts, privileges, seccomp
from kernelsmith.evaluate.sandbox.level import Level
from kernelsmith.evaluate.sandbox.loopback import raise_loopback
from kernelsmith.evaluate.sandbox.order import Order, Profile
from kernelsmith.evaluate.sandbox.syscalls import PR_SET_DUMPABLE, PR_SET_PDEATHSIG, call, prctl

PACKAGE = Path(__file__).resolve().parents[2]
REFUSALS = (errno.EPERM, errno.EACCES, errno.EINVAL, errno.ENOSYS, errno.ENODEV, errno.EOPNOTSUPP)
"""How a kernel says that it will not do this, today or tomorrow."""
_OWN_PROC = (
    "/proc/self",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
)
_DRIVER_PROC = (
    "/proc/devices",
    "/proc/driver",
    "/proc/modules",
    "/proc/sys/vm",
    "/proc/version",
    "/sys/bus/pci",
    "/sys/devices",
    "/sys/module",
)
"""What a GPU driver reads about the machine."""
_DRIVER_SYS = tuple(path for path in _DRIVER_PROC if path.startswith("/sys"))


class StartOver(Exception):
    """A protection failed half-way and left ruins; a fresh child must go without it."""

    def __init__(self, protection: str, why: str) -> None:
        super().__init__(f"{protection}: {why}")
        self.protection = protection
        self.why = why


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What the zygote settled before the child existed."""

    order: Order
    namespaces: tuple[str, ...]
    uid: int
    """The user and group that the zygote runs as."""
    gid: int
    scratch: str
    zygote: int
    """A pidfd of the zygote, to see that it still lives."""


class _Confinement:
    """Takes the steps in the one order that works, noting what is refused."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.missing: dict[str, str] = dict(setting.order.without)
        self.uid = setting.uid
        self.landlock_abi: int | None = None

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        if name in self.missing:
            return False
        try:
            step()
        except OSError as error:
            self.missing[name] = error.strerror or str(error)
            return False
        return True

    def readable(self) -> tuple[str, ...]:
        return (sys.prefix, sys.base_prefix, str(PACKAGE), *self.setting.order.readable)

    def choose_uid(self) -> None:
        """Pick another user, where we are allowed to and it could still read its interpreter."""
        if "uid" in self.missing:
            return
        if "user" in self.setting.namespaces or self.setting.uid != 0:
            self.missing["uid"] = "only root can be another user"
        elif not privileges.others_exist():
            self.missing["uid"] = "this container has no other users"
        elif "mount" not in self.setting.namespaces and (closed := _closed_to_others()):
            self.missing["uid"] = f"the interpreter lies in {closed}, closed to other users"
        else:
            self.uid = privileges.spare_uid(int(os.readlink("/proc/self")))

    def enter_namespaces(self) -> None:
        setting = self.setting
        if "user" in setting.namespaces:
            try:
                privileges.map_user(setting.uid, setting.gid)
            except PermissionError as error:
                raise StartOver("namespaces", error.strerror or str(error)) from error
        if "uts" in setting.namespaces:
            self.attempt("uts", lambda: socket.sethostname("sandbox"))
        self.choose_uid()
        if "mount" not in setting.namespaces:
            os.environ["HOME"] = os.environ["TMPDIR"] = setting.scratch
            tempfile.tempdir = None
            if self.uid != setting.uid:
                os.chown(setting.scratch, self.uid, self.uid)
            os.chdir(setting.scratch)
            return
        driver = _DRIVER_SYS if setting.order.devices else ()
        root = mounts.Root(
            readable=(*self.readable(), *driver),
            devices=setting.order.devices,
            scratch_bytes=setting.order.limits.scratch_bytes,
            uid=self.uid,
            gid=self.uid if self.uid != setting.uid else setting.gid,
        )
        try:
            mounts.enter(root)
        except OSError as error:
            # A lack of memory or a file that vanished says nothing about the machine.
            if error.errno not in REFUSALS:
                raise
            raise StartOver("mount", error.strerror or str(error)) from error

    def talks(self) -> bool:
        """Whether it gets a loopback: only who watches, and only where it is not the machine's."""
        own = {"net", "pid", "mount"} <= {*self.setting.namespaces}
        watches = self.setting.order.profile is Profile.WATCH
        return watches and own and self.attempt("loopback", raise_loopback)

    def profile(self, *, talks: bool, other: bool) -> Profile:
        """What it asked for; it watches only with a loopback, and as nobody of importance.

        All of ``/proc`` is open to who watches, and what is the machine's in there the kernel
        keeps from others than its root by nothing but their number.
        """
        asked = self.setting.order.profile
        if asked is not Profile.WATCH or (talks and (other or self.setting.uid != 0)):
            return asked
        self.missing.setdefault("watching", "needs namespaces and another user than root")
        return Profile.BUILD

    def lower_privileges(self) -> tuple[bool, bool, bool]:
        """Return whether limits, another user and no capabilities are in force."""
        order = self.setting.order
        if order.cores is not None:
            os.sched_setaffinity(0, order.cores)
        own_count = self.uid != self.setting.uid or "user" in self.setting.namespaces
        bound = self.attempt("rlimits", lambda: limits.apply(order.limits, own_count=own_count))
        held = int(_status_field("CapEff"), 16) != 0
        if held:
            self.attempt("bounding set", privileges.drop_bounding_set)
        other = "uid" not in self.missing and self.attempt(
            "uid", lambda: privileges.become(self.uid)
        )
        dropped = self.attempt("capabilities", privileges.drop_capabilities)
        self.attempt("no_new_privs", privileges.no_new_privileges)
        return bound, other, dropped

    def die_with_the_zygote(self) -> None:
        # A change of user cleared both: the judge must see our memory, and we our /proc/self.
        prctl(PR_SET_DUMPABLE, 1)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        poll = select.poll()
        poll.register(self.setting.zygote, select.POLLIN)
        if poll.poll(0):
            os._exit(1)
        # The zygote's is the last of those to keep; what is above it looks into the old root.
        call("close_range", self.setting.zygote, 0xFFFFFFFF, 0)

    def restrict_files(self, profile: Profile) -> None:
        order = self.setting.order
        if "mount" in self.setting.namespaces:
            readable: tuple[str, ...] = ("/",)
            writable: tuple[str, ...] = (mounts.SCRATCH, mounts.SHARED_MEMORY)
        else:
            readable = (*mounts.SYSTEM, *_OWN_PROC, *self.readable())
            writable = (self.setting.scratch,)
        if order.devices:
            # A driver names its threads there, and gives up where it cannot. What a watcher starts
            # has another number than this process; all processes of this /proc are its own.
            writable = (*writable, "/proc" if profile is Profile.WATCH else "/proc/self/task")
            readable = (*readable, *_DRIVER_PROC)
        self.landlock_abi = landlock.restrict(
            readable=readable, writable=writable, devices=(*mounts.DEVICES, *order.devices),
            network=profile is Profile.WATCH,
        )  # fmt: skip


def confine(setting: Setting) -> Level:
    """Confine this process for good and say what is in force.

    Raises:
        StartOver: The child must be given up and made again without one protection.
    """
    work = _Confinement(setting)
    work.attempt("oom order", limits.be_first_to_go)
    work.enter_namespaces()
    talks = work.talks()
    bound, other, dropped = work.lower_privileges()
    profile = work.profile(talks=talks, other=other)
    work.die_with_the_zygote()
    work.attempt("landlock", lambda: work.restrict_files(profile))
    driven = bool(setting.order.devices)
    filtered = work.attempt("seccomp", lambda: seccomp.install(profile, driver=driven))
    if "user" in setting.namespaces:
        work.missing.pop("uid", None)
    return Level(
        namespaces=setting.namespaces,
        landlock_abi=work.landlock_abi,
        seccomp=filtered,
        other_uid=other,
        capabilities_dropped=dropped,
        rlimits=bound,
        missing=work.missing,
    )


def _status_field(name: str) -> str:
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return value.strip()
    raise OSError(f"/proc/self/status has no {name}")


def _closed_to_others() -> str | None:
    """Name a directory on the way to the interpreter that only its owner may pass."""
    for place in (Path(sys.prefix), Path(sys.base_prefix), PACKAGE):
        for directory in (place, *place.parents):
            if not directory.stat().st_mode & 0o001:
                return str(directory)
    return None
