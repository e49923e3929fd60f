"""The judge's hold on the zygote: starting it, having it fork children, ending it."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self, cast

from kernelsmith.errors import EvaluationLost, SmithError, UsageError
from kernelsmith.evaluate.processor import onednn_limit
from kernelsmith.evaluate.sandbox import channel, packages
from kernelsmith.evaluate.sandbox.child import Child
from kernelsmith.evaluate.sandbox.errors import ChildFailed
from kernelsmith.evaluate.sandbox.level import Level
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Order, Profile
from kernelsmith.evaluate.sandbox.output import Output

__all__ = ["Child", "Zygote"]

_START_S = 120.0
_REPLY_S = 30.0
_PACKAGE_PARENT = Path(__file__).resolve().parents[3]
_IDLE = "kernelsmith.evaluate.sandbox.zygote:idle"
# -I hides PYTHONPATH, and with it a package that runs from its source tree.
_BOOT = """\
import sys
count = int(sys.argv.pop(1))
sys.path += sys.argv[1 : 1 + count]
del sys.argv[1 : 1 + count]
from kernelsmith.evaluate.sandbox.zygote import main
main()
"""
_KEEP_FREED_MEMORY = str(1 << 32)
_UNKNOWN = Level(
    namespaces=(),
    landlock_abi=None,
    seccomp=False,
    other_uid=False,
    capabilities_dropped=False,
    rlimits=False,
    missing={},
)


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Return all that the zygote and its children see of the environment."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": os.environ.get("LANG", "C.UTF-8"),
        "HOME": "/tmp",
        "TMPDIR": "/tmp",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": _KEEP_FREED_MEMORY,
        "MALLOC_TRIM_THRESHOLD_": _KEEP_FREED_MEMORY,
        **onednn_limit(),
        **extra,
    }


class Zygote:
    """A process with its modules loaded that forks confined children; it runs no candidate code.

    Children can be spawned from several threads. When the judge dies in whatever way, the zygote
    and all its children do too.
    """

    def __init__(
        self,
        *,
        preload: Sequence[str],
        environment: Mapping[str, str] | None = None,
        search_path: Sequence[Path] = (),
        without: Collection[str] = (),
    ) -> None:
        """Start it and wait until its modules are loaded.

        Args:
            preload: Modules to import; importing them must leave the process with one thread.
            environment: Variables on top of the few that are passed on.
            search_path: Where else to import from. Children see these places only if they are
                made readable, too.
            without: Protections not to use (namespaces, mount, landlock, seccomp, uid), to show
                what the others do.
        """
        self._packages = packages.folders()
        self._refused = {name: "switched off by the caller" for name in without}
        self._lock = threading.Lock()
        self._stderr = os.memfd_create("zygote-stderr")
        self._socket, theirs = socket.socketpair()
        paths = [str(_PACKAGE_PARENT), *map(str, (*search_path, *self._packages))]
        fd = str(theirs.fileno())
        command = [sys.executable, "-I", "-u", "-c", _BOOT, str(len(paths)), *paths, fd]
        with theirs:
            self._process = subprocess.Popen(
                [*command, str(os.getpid()), *preload],
                env=_environment(environment or {}),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        try:
            self._receive(_START_S)
        except EvaluationLost as error:
            self.close()
            raise EvaluationLost(f"the zygote did not start: {error}") from error

    def __enter__(self) -> Self:
        """Return itself; the zygote ends with the block, and its children with it."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self.close()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def spawn(
        self,
        *,
        entry: str,
        profile: Profile = Profile.RUN,
        limits: Limits | None = None,
        readable: Sequence[Path] = (),
        devices: Sequence[Path] = (),
        cores: Sequence[int] | None = None,
        fds: Sequence[int] = (),
        without: Mapping[str, str] | None = None,
    ) -> Child:
        """Fork a child, confine it, and have it call ``entry(control, fds)``.

        Args:
            entry: ``module:function`` in a preloaded module.
            profile: Which system calls it keeps.
            limits: How much it may use.
            readable: Files and folders that it sees where they are, read-only; they must be
                readable for all, since the child is another user.
            devices: Device files that it may use.
            cores: The only processor cores it runs on.
            fds: Descriptors to hand to the entry; the caller keeps its own.
            without: Protections that this child must not have, with the reason.
        """
        for path in (*readable, *devices):
            if not path.is_absolute() or not path.exists() or path.resolve() == Path("/"):
                raise UsageError(f"a child cannot be shown {str(path)!r}; name what exists in full")
        order = Order(
            entry=entry,
            profile=profile,
            limits=limits or Limits(),
            readable=tuple(map(str, (*readable, *self._packages))),
            devices=tuple(map(str, devices)),
            cores=None if cores is None else tuple(cores),
        )
        try:
            while True:
                child, hello = self._start(
                    replace(order, without={**self._refused, **(without or {})}), fds
                )
                if "level" in hello:
                    child.level = Level.from_message(cast(dict[str, object], hello["level"]))
                    return child
                child.kill()
                self._refused.update(cast(dict[str, str], hello["refused"]))
        except SmithError:
            raise
        except Exception as error:
            raise EvaluationLost(f"no child could be made for {entry!r}: {error!r}") from error

    def measure(self) -> Level:
        """Spawn a child only to see which protections it gets."""
        with self.spawn(entry=_IDLE) as child:
            return child.level

    def close(self) -> None:
        """End it and all its children; again does nothing."""
        self._socket.close()
        try:
            self._process.wait(_REPLY_S)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._stderr >= 0:
            os.close(self._stderr)
            self._stderr = -1

    def _start(self, order: Order, fds: Sequence[int]) -> tuple[Child, dict[str, object]]:
        with ExitStack() as ours, ExitStack() as theirs:
            control, their_control = socket.socketpair()
            ours.callback(control.close)
            theirs.callback(their_control.close)
            output, their_output = os.pipe2(os.O_CLOEXEC)
            ours.callback(os.close, output)
            theirs.callback(os.close, their_output)
            reply = self._request(
                {"do": "spawn", "order": order.to_message()},
                (their_control.fileno(), their_output, *fds),
            )
            child = Child(
                pid=cast(int, reply["pid"]),
                control=control,
                output=Output(output, most=order.limits.output_bytes),
                level=_UNKNOWN,
                reap=self._reap,
            )
            ours.pop_all()
        try:
            return child, child.receive(_REPLY_S)
        except ChildFailed as error:
            raise EvaluationLost(f"no child was made: {error}; {error.output}") from error

    def _reap(self, pid: int) -> int:
        return cast(int, self._request({"do": "reap", "pid": pid})["exit"])

    def _request(self, message: Mapping[str, object], fds: Sequence[int] = ()) -> dict[str, object]:
        with self._lock:
            try:
                channel.send(self._socket, message, fds)
            except OSError as error:
                raise self._lost(error) from error
            reply = self._receive(_REPLY_S)
        if "usage" in reply:
            raise UsageError(str(reply["usage"]))
        if "error" in reply:
            raise EvaluationLost(f"the zygote could not do it: {reply['error']}")
        return reply

    def _receive(self, timeout_s: float) -> dict[str, object]:
        self._socket.settimeout(timeout_s)
        try:
            return channel.receive(self._socket)[0]
        except (OSError, EOFError, channel.NotAMessage) as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> EvaluationLost:
        if self._stderr < 0:
            return EvaluationLost("the zygote was closed")
        size = os.fstat(self._stderr).st_size
        tail = os.pread(self._stderr, 4096, max(0, size - 4096)).decode(errors="replace").strip()
        said = f"; it said: {tail}" if tail else ""
        return EvaluationLost(f"the zygote does not answer: {error}{said}")
