"""The process that has torch loaded and forks confined children from itself on request."""

import ctypes
import errno
import faulthandler
import fcntl
import gc
import importlib
import os
import random
import select
import shutil
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn, cast

from kernelsmith.evaluate.sandbox import channel, privileges, syscalls
from kernelsmith.evaluate.sandbox.confine import REFUSALS, Setting, StartOver, confine
from kernelsmith.evaluate.sandbox.level import NAMESPACES
from kernelsmith.evaluate.sandbox.order import Order

_CLONE_FLAGS = {
    "mount": 0x00020000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "net": 0x40000000,
}
_CLONE_CHILD_CLEARTID, _CLONE_CHILD_SETTID = 0x00200000, 0x01000000
_CONTROL_FD = 3

Entry = Callable[[socket.socket, list[int]], object]


def idle(control: socket.socket, fds: list[int]) -> None:
    """Wait until the judge hangs up: the entry of a child that is only looked at."""
    while control.recv(1):
        pass


class _Server:
    def __init__(self, judge: socket.socket) -> None:
        self.judge = judge
        self.children: dict[int, str] = {}
        """The scratch directory of each living child; '' where it lies in a namespace."""
        self.own = os.pidfd_open(os.getpid())
        self.tid_field = syscalls.thread_id_field()

    def serve(self, judge_pid: int) -> None:
        """Answer until the judge hangs up or dies, then leave nothing behind."""
        judge_process = os.pidfd_open(judge_pid)
        poll = select.poll()
        poll.register(self.judge, select.POLLIN)
        poll.register(judge_process, select.POLLIN)
        try:
            while all(fd != judge_process for fd, _ in poll.poll()):
                message, fds = channel.receive(self.judge)
                channel.send(self.judge, self.answer(message, fds))
                for fd in fds:
                    os.close(fd)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass
        finally:
            for pid in list(self.children):
                os.kill(pid, signal.SIGKILL)
                self.reap(pid, 0)

    def answer(self, message: dict[str, object], fds: list[int]) -> dict[str, object]:
        if message["do"] == "reap":
            return self.reap(cast(int, message["pid"]), os.WNOHANG)
        order = Order.from_message(cast(dict[str, object], message["order"]))
        try:
            entry = _find(order.entry)
        except LookupError as error:
            return {"usage": str(error)}
        try:
            return {"pid": self.spawn(order, entry, fds)}
        except OSError as error:
            return {"error": f"no new process: {error}"}

    def reap(self, pid: int, options: int) -> dict[str, object]:
        """Take the exit status of a child; -N for signal N, none while it lives."""
        found, status = os.waitpid(pid, options)
        if found == 0:
            return {"exit": None}
        scratch = self.children.pop(pid)
        self.end_strays()
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)
        return {"exit": os.waitstatus_to_exitcode(status)}

    def end_strays(self) -> None:
        """Kill what a child without a process namespace left running; it fell to us."""
        listing = Path("/proc/thread-self/children")
        while listing.exists():
            strays = {int(pid) for pid in listing.read_text().split()} - {*self.children}
            if not strays:
                return
            for pid in strays:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)

    def spawn(self, order: Order, entry: Entry, fds: list[int]) -> int:
        refusals: dict[str, str] = {}
        for namespaces in _choices(order):
            scratch = "" if "mount" in namespaces else tempfile.mkdtemp(prefix="kernelsmith-")
            setting = Setting(
                order=order,
                namespaces=namespaces,
                uid=os.getuid(),
                gid=os.getgid(),
                scratch=scratch,
                zygote=self.own,
            )
            try:
                pid = self.clone(setting, refusals, entry, fds)
            except OSError as error:
                if scratch:
                    os.rmdir(scratch)
                # ENOSPC is how a machine says that it allows no user namespaces.
                if not namespaces or error.errno not in (*REFUSALS, errno.ENOSPC):
                    raise
                refusals["namespaces"] = error.strerror or str(error)
                continue
            self.children[pid] = scratch
            return pid
        raise AssertionError("the last choice is a plain fork, which works or raises")

    def clone(
        self, setting: Setting, refusals: dict[str, str], entry: Entry, fds: list[int]
    ) -> int:
        """Fork with new namespaces; os.fork cannot, so this does what it does around the call."""
        flags = signal.SIGCHLD | sum(_CLONE_FLAGS[name] for name in setting.namespaces)
        tid = self.tid_field
        if tid:
            flags |= _CLONE_CHILD_SETTID | _CLONE_CHILD_CLEARTID
        # The last two arguments trade places between x86_64 and aarch64.
        last = (tid, 0) if syscalls.MACHINE == "x86_64" else (0, tid)
        ctypes.pythonapi.PyOS_BeforeFork()
        try:
            pid = syscalls.call("clone", flags, 0, 0, *last)
        except OSError:
            ctypes.pythonapi.PyOS_AfterFork_Parent()
            raise
        if pid == 0:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            _live(setting, refusals, entry, fds)
        ctypes.pythonapi.PyOS_AfterFork_Parent()
        return pid


def _choices(order: Order) -> list[tuple[str, ...]]:
    """List the sets of namespaces to ask for, best first, a plain fork last."""
    if "namespaces" in order.without:
        return [()]
    wanted = tuple(name for name in NAMESPACES if name not in order.without)
    with_user = ("user", *wanted)
    if os.getuid() == 0 and privileges.others_exist():
        return [wanted, with_user, ()]
    return [with_user, ()]


def _find(entry: str) -> Entry:
    module, _, name = entry.partition(":")
    if module not in sys.modules:
        raise LookupError(f"entry {entry!r} is in no module that the zygote has loaded")
    function = getattr(sys.modules[module], name, None)
    if not callable(function):
        raise LookupError(f"module {module!r} has no function {name!r}")
    return cast(Entry, function)


def _live(setting: Setting, refusals: dict[str, str], entry: Entry, fds: list[int]) -> NoReturn:
    """Be the child, from its first moment to its last."""
    code = 1
    try:
        control, passed, zygote = _arrange(fds, zygote=setting.zygote)
        random.seed()
        os.setsid()
        # The directories of the new root are for another user to pass, whatever the judge's mask.
        os.umask(0o022)
        try:
            level = confine(replace(setting, zygote=zygote))
        except StartOver as refusal:
            channel.send(control, {"refused": {refusal.protection: refusal.why}})
        else:
            missing = {**refusals, **level.missing} if not setting.namespaces else level.missing
            channel.send(control, {"level": {**level.to_message(), "missing": dict(missing)}})
            entry(control, passed)
            code = 0
    except SystemExit as request:
        code = request.code if isinstance(request.code, int) else int(request.code is not None)
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
        os._exit(code & 0xFF)


def _arrange(fds: list[int], *, zygote: int) -> tuple[socket.socket, list[int], int]:
    """Leave open: no input, one pipe for output, the control socket, what was passed, the zygote.

    Whatever else the zygote had open is closed, whoever opened it.
    """
    control, output, *others = [fcntl.fcntl(fd, fcntl.F_DUPFD, 128) for fd in (*fds, zygote)]
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    kept = list(range(_CONTROL_FD, _CONTROL_FD + 1 + len(others)))
    for fd, place in zip((control, *others), kept, strict=True):
        os.dup2(fd, place, inheritable=False)
    syscalls.call("close_range", kept[-1] + 1, 0xFFFFFFFF, 0)
    faulthandler.enable(file=2)
    return socket.socket(fileno=_CONTROL_FD), kept[1:-1], kept[-1]


def main() -> None:
    """Serve one judge: the socket's number, the judge's pid, then the modules to load."""
    judge = socket.socket(fileno=int(sys.argv[1]))
    judge_pid = int(sys.argv[2])
    _load(sys.argv[3:])
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise SystemExit(f"the zygote has {threads} threads after loading {sys.argv[3:]}, not one")
    syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    gc.collect()
    gc.freeze()
    channel.send(judge, {"ready": os.getpid()})
    _Server(judge).serve(judge_pid)


def _load(modules: Sequence[str]) -> None:
    for module in modules:
        importlib.import_module(module)
