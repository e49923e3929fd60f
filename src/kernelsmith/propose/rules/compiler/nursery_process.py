"""The nursery itself: loads torch's compiler, then forks a process for everyone who asks.

Not imported by anyone: ``nursery`` starts it as a module. It has one thread, or nothing that it
forks could be trusted to run.
"""

import gc
import importlib
import json
import os
import selectors
import signal
import socket
import sys
import traceback
from contextlib import suppress

_IDLE_S = 60.0
"""It leaves when nobody has asked for so long."""
_ASKING_S = 10.0
"""What sending a question may take."""

_LOADED = (
    "kernelsmith.propose.rules.compiler.loading",
    "kernelsmith.propose.rules.compiler.child",
)
_LATER = (
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.pad_mm",
    "sympy.physics.units",
)
"""What the compiler itself loads when it first works."""


class Server:
    """Accepts questions, and tells each asker how its process ended."""

    def __init__(self, listening: socket.socket, owner: int) -> None:
        self._listening, self._owner = listening, owner
        self._running: dict[int, socket.socket] = {}
        self._woken, wakes = os.pipe()
        for end in (self._woken, wakes):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        self._wakes = wakes
        self._selector = selectors.DefaultSelector()
        for each in (listening, owner, self._woken):
            self._selector.register(each, selectors.EVENT_READ)

    def serve(self) -> None:
        """Go on until the owner has gone, or nobody asks."""
        while ready := self._selector.select(None if self._running else _IDLE_S):
            for key, _ in ready:
                if key.fileobj == self._owner:
                    return
                if key.fileobj is self._listening:
                    self._accept()
                elif key.fileobj == self._woken:
                    with suppress(BlockingIOError):
                        os.read(self._woken, 4096)
                elif isinstance(key.fileobj, socket.socket):
                    self._hung_up(key.fileobj)
            self._reap()

    def close(self) -> None:
        """End what still runs."""
        for pid in self._running:
            _kill(pid)

    def _accept(self) -> None:
        line, _ = self._listening.accept()
        line.settimeout(_ASKING_S)
        try:
            text = b""
            while not text.endswith(b"\n"):
                more = line.recv(1 << 16)
                if not more:
                    raise ConnectionError
                text += more
            asked = json.loads(text)
        except (OSError, ValueError):
            line.close()
            return
        pid = os.fork()
        if pid == 0:
            self._become(asked, line)
        line.setblocking(False)
        self._running[pid] = line
        self._selector.register(line, selectors.EVENT_READ)

    def _become(self, asked: dict[str, object], line: socket.socket) -> None:
        """The forked process: never returns."""
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            self._selector.close()
            for each in (line, self._listening, *self._running.values()):
                each.close()
            for end in (self._woken, self._wakes, self._owner):
                os.close(end)
            run(asked)
            status = 0
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def _hung_up(self, line: socket.socket) -> None:
        """Nobody waits for that process any more; its end is noticed like any other."""
        for pid, other in self._running.items():
            if other is line:
                _kill(pid)
        self._selector.unregister(line)

    def _reap(self) -> None:
        for pid in list(self._running):
            found, status = os.waitpid(pid, os.WNOHANG)
            if not found:
                continue
            _kill(pid)  # what it has started ends with it
            line = self._running.pop(pid)
            with suppress(KeyError, ValueError):
                self._selector.unregister(line)
            with suppress(OSError):
                line.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            line.close()


def run(asked: dict[str, object]) -> None:
    """Take the place that was asked for, and run the module's ``main`` there."""
    from kernelsmith.propose.rules.compiler.nursery import ASKED, REPLIED, SAID

    environment, arguments = asked["environment"], asked["arguments"]
    assert isinstance(environment, dict)
    assert isinstance(arguments, list)
    os.chdir(str(asked["folder"]))
    os.environ.clear()
    os.environ.update(environment)
    known = [each for each in environment.get("PYTHONPATH", "").split(os.pathsep) if each]
    sys.path[0] = os.getcwd()  # as ``python -m`` has it
    sys.path[1:1] = [each for each in known if each not in sys.path]
    given = ASKED if os.path.exists(ASKED) else os.devnull
    for number, name, how in (
        (0, given, os.O_RDONLY),
        (1, REPLIED, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        opened = os.open(name, how, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    module = str(asked["module"])
    sys.argv = [module, *map(str, arguments)]
    importlib.import_module(module).main()


def load(kind: str) -> None:
    """What every question needs, without running any operator of torch."""
    for name in _LOADED:
        importlib.import_module(name)
    for name in _LATER:
        with suppress(ImportError):  # another version of torch
            importlib.import_module(name)
    if kind == "gpu":
        with suppress(ImportError):
            importlib.import_module("triton.runtime.cache").triton_key()  # hashes 400 MB
        _prepare_for_none()
    else:
        _look_at_the_processor()
    gc.collect()
    gc.freeze()  # so that pages stay shared with what is forked


def _prepare_for_none() -> None:
    """Where torch was not built for a GPU, it is asked about one that is not here, if at all."""
    import torch

    if torch.version.cuda is None and torch.version.hip is None:
        imagined = importlib.import_module("kernelsmith.propose.rules.compiler.imagined")
        with suppress(RuntimeError, OSError):  # no C++ compiler; whoever needs it is told
            imagined.guard_nothing()


def _look_at_the_processor() -> None:
    """Have torch's compiler find out what vectors there are: it builds and loads programs."""
    import torch._inductor.config as inductor

    with suppress(Exception), inductor.patch({"cpp.vec_isa_ok": True}):  # as ``child`` has it
        importlib.import_module("torch._inductor.cpu_vec_isa").valid_vec_isa_list()


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def main() -> None:
    """Serve the socket of that number; standard input ends with the owner."""
    # Ctrl-C is for whoever asked.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(socket.socket(fileno=int(sys.argv[1])), os.dup(0))
    load(sys.argv[2])
    try:
        server.serve()
    finally:
        server.close()


if __name__ == "__main__":
    main()
    os._exit(0)  # torch's helpers need not wind down
