"""The system calls that Python does not offer, each raising ``OSError`` when refused."""

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)
# PyDLL keeps the interpreter lock: a clone() must return in the child with the lock held.
_LIBC_LOCKED = ctypes.PyDLL(None, use_errno=True)

MACHINE = os.uname().machine
_NUMBERS = {
    "clone": {"x86_64": 56, "aarch64": 220},
    "pivot_root": {"x86_64": 155, "aarch64": 41},
    "capset": {"x86_64": 126, "aarch64": 91},
    "seccomp": {"x86_64": 317, "aarch64": 277},
    "close_range": {"x86_64": 436, "aarch64": 436},
    "mount_setattr": {"x86_64": 442, "aarch64": 442},
    "landlock_create_ruleset": {"x86_64": 444, "aarch64": 444},
    "landlock_add_rule": {"x86_64": 445, "aarch64": 445},
    "landlock_restrict_self": {"x86_64": 446, "aarch64": 446},
}

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4

Argument = int | bytes | ctypes.Structure | ctypes.Array[ctypes.c_char] | None


def _widen(argument: Argument) -> object:
    # A bare int would be passed as a 32-bit C int through a variadic function.
    if isinstance(argument, int):
        return ctypes.c_ulong(argument & 0xFFFFFFFFFFFFFFFF)
    if isinstance(argument, ctypes.Structure):
        return ctypes.byref(argument)
    return argument


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def call(name: str, *arguments: Argument) -> int:
    """Make the named system call and return its result."""
    numbers = _NUMBERS[name]
    if MACHINE not in numbers:
        raise NotImplementedError(f"the sandbox knows x86_64 and aarch64, not {MACHINE!r}")
    number = ctypes.c_long(numbers[MACHINE])
    locked = _LIBC_LOCKED.syscall
    locked.restype = ctypes.c_long
    return _checked(int(locked(number, *map(_widen, arguments))), name)


def prctl(option: int, *arguments: int) -> int:
    """Set an attribute of this process."""
    full = [*arguments, 0, 0, 0, 0][:4]
    return _checked(int(LIBC.prctl(ctypes.c_int(option), *map(_widen, full))), f"prctl({option})")


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    """Mount ``source`` on ``target``; ``kind`` is none for binds and changes."""
    result = LIBC.mount(
        source.encode(),
        target.encode(),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        options.encode() or None,
    )
    _checked(int(result), f"mount {target}")


def unmount(target: str, flags: int) -> None:
    """Detach what is mounted on ``target``."""
    _checked(int(LIBC.umount2(target.encode(), ctypes.c_int(flags))), f"umount {target}")


def thread_id_field() -> int:
    """Find where libc keeps this thread's id, or 0 where that cannot be told.

    A raw clone leaves the parent's id there, and ``pthread_setaffinity_np`` and others trust it;
    the kernel stores the right one when told the place.
    """
    pthread_self = LIBC.pthread_self
    pthread_self.restype = ctypes.c_void_p
    start = int(pthread_self() or 0)
    if not start:
        return 0
    words = (ctypes.c_int32 * 256).from_address(start)
    mine = LIBC.gettid()
    found = [index for index, word in enumerate(words) if word == mine]
    return start + 4 * found[0] if len(found) == 1 else 0
