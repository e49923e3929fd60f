"""The judge's hold on one sandboxed child."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.sandbox import channel, memory, observe
from kernelsmith.evaluate.sandbox.errors import BadAddress, ChildBroken, ChildDied, ChildTimedOut
from kernelsmith.evaluate.sandbox.level import Level
from kernelsmith.evaluate.sandbox.output import Output

_FREEZE_S = 1.0
_LAST_BREATH_S = 1.0
_DEATH_S = 10.0
_POST_S = 10.0
_CHUNK = 1 << 16

_LOOK_S = 0.02
_BUSY_S = 20.0
"""A driver's call in the middle of a request ends before the child can be stopped."""

Reap = Callable[[int], int]
"""Asks the zygote how a dead child ended: its exit code, or -N for signal N."""


class Way(Protocol):
    """Something shared that a judge holds while it waits for a child."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody else wants it for a while."""
        ...

    def step_aside(self) -> None:
        """Let them; returns when it is there again."""
        ...

    def leave(self) -> None:
        """Let go of it."""
        ...

    def come_back(self) -> None:
        """Wait for it, behind those who wanted it."""
        ...


class Child:
    """One confined process, its control socket, its output and its memory.

    Every failure that is raised here as a ``ChildFailed`` (but for ``BadAddress``) leaves the
    child dead and reaped. Not for use from two threads at once.
    """

    def __init__(
        self, *, pid: int, control: socket.socket, output: Output, level: Level, reap: Reap
    ) -> None:
        """Take over the socket and the pipe; for ``Zygote.spawn`` only."""
        self.pid = pid
        self.level = level
        self._pidfd = os.pidfd_open(pid)
        self._control = control
        self._control.setblocking(False)
        self._output = output
        self._reap = reap
        self.way: Way | None = None
        """What is given up for a while, with the child frozen, where others want it meanwhile."""
        self._inbox = bytearray()
        self._exit: int | None = None
        self._by_judge = False
        self._gone = False

    def __enter__(self) -> Self:
        """Return itself; the child dies at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Kill the child."""
        self.kill()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return not self._gone and not observe.has_ended(self._pidfd)

    @property
    def output(self) -> str:
        """The last 16 KiB of what it wrote to stdout and stderr so far."""
        if not self._gone:
            self._output.drain()
        return self._output.text

    @property
    def output_count(self) -> int:
        """How many bytes of output the judge has taken in."""
        return self._output.count

    def call(
        self, message: Mapping[str, object], *, timeout_s: float, fds: Sequence[int] = ()
    ) -> dict[str, object]:
        """Send a message and wait for the answer; raises as ``receive`` does."""
        deadline = time.monotonic() + timeout_s
        self.post(message, fds, timeout_s=timeout_s)
        return self.receive(deadline - time.monotonic())

    def post(
        self, message: Mapping[str, object], fds: Sequence[int] = (), *, timeout_s: float = _POST_S
    ) -> None:
        """Send a message; a child that does not take it in time is killed."""
        self._must_live()
        data = memoryview(channel.encode(message))
        rights = channel.ancillary(fds)

        def push() -> bool:
            nonlocal data, rights
            try:
                data = data[self._control.sendmsg([data], rights) :]
            except BlockingIOError:
                return False
            except (BrokenPipeError, ConnectionResetError):
                raise self._ended() from None
            rights = []
            return not data

        self._repeat(push, select.POLLOUT, timeout_s)

    def receive(self, timeout_s: float) -> dict[str, object]:
        """Wait for one message.

        Raises:
            ChildTimedOut: None came in time.
            ChildDied: The child ended, hung up or wrote too much.
            ChildBroken: What came is no message.
            EvaluationLost: The zygote died, and the child with it.
        """
        self._must_live()
        message = self._take()

        def pull() -> bool:
            nonlocal message
            while message is None:
                try:
                    # Plain recv: descriptors that the child sends along are dropped by the kernel.
                    data = self._control.recv(_CHUNK)
                except BlockingIOError:
                    return False
                except ConnectionResetError:
                    data = b""
                if not data:
                    raise self._ended()
                self._inbox += data
                message = self._take()
            return True

        self._repeat(pull, select.POLLIN, timeout_s)
        assert message is not None
        return message

    def read(self, address: int, nbytes: int) -> bytearray:
        """Copy bytes out of its memory; ``BadAddress`` where it has none."""
        buffer = bytearray(nbytes)
        self.read_into(address, memoryview(buffer))
        return buffer

    def read_into(self, address: int, buffer: memoryview) -> None:
        """Fill a writable, contiguous buffer from its memory."""
        self._access(memory.read_into, address, buffer)

    def write(self, address: int, data: bytes | bytearray | memoryview) -> None:
        """Store bytes into its memory; a writable buffer spares a copy."""
        self._access(memory.write, address, memoryview(data))

    def freeze(self, *, within_s: float = _FREEZE_S) -> None:
        """Stop every thread, and return when all have stopped; for children that run one process.

        Nothing but ``thaw`` or ``kill`` wakes it: the sandbox denies the calls that could.
        """
        self._signal(signal.SIGSTOP)
        deadline = time.monotonic() + within_s
        while not observe.is_stopped(self.pid):
            if observe.has_ended(self._pidfd):
                raise self._ended()
            if time.monotonic() > deadline:
                raise EvaluationLost(f"process {self.pid} did not stop within {within_s:g} s")
            time.sleep(20e-6)

    @property
    def frozen(self) -> bool:
        """Whether every thread is stopped right now."""
        return not self._gone and observe.is_stopped(self.pid)

    def freeze_busy(self) -> None:
        """The same in the middle of a request, where a driver's call may have to end first."""
        self.freeze(within_s=_BUSY_S)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def threads(self) -> tuple[int, ...]:
        """List its threads, by their ids in the judge's namespace."""
        return () if self._gone else observe.threads(self.pid)

    def maps(self) -> str:
        """Return its memory map as the kernel prints it."""
        self._must_live()
        return observe.maps(self.pid)

    def kill(self) -> None:
        """End it now, frozen or not, and leave no zombie; again does nothing."""
        if self._gone:
            return
        self._by_judge = not observe.has_ended(self._pidfd)
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
        if not observe.has_ended(self._pidfd, _DEATH_S):
            raise EvaluationLost(f"process {self.pid} outlived SIGKILL by {_DEATH_S:g} s")
        self._output.drain()
        # A zygote that is gone took its children along; there is no one left to ask, or to mind.
        with contextlib.suppress(EvaluationLost):
            self._exit = self._reap(self.pid)
        self._gone = True
        self._control.close()
        self._output.close()
        os.close(self._pidfd)

    def _must_live(self) -> None:
        if self._gone:
            raise self._ended()

    def _signal(self, number: signal.Signals) -> None:
        self._must_live()
        try:
            signal.pidfd_send_signal(self._pidfd, number)
        except ProcessLookupError:
            raise self._ended() from None

    def _access(
        self, move: Callable[[int, int, memoryview], None], address: int, buffer: memoryview
    ) -> None:
        self._must_live()
        try:
            move(self.pid, address, buffer)
        except (memory.Unmapped, OSError) as error:
            if observe.has_ended(self._pidfd):
                raise self._ended() from None
            if isinstance(error, memory.Unmapped):
                raise BadAddress(f"the child has {error}", output=self.output) from None
            raise EvaluationLost(f"the judge cannot reach its child's memory: {error}") from error

    def _repeat(self, attempt: Callable[[], bool], event: int, timeout_s: float) -> None:
        """Try whenever the socket is ready, until it works, with the output flowing meanwhile."""
        deadline = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(self._control, event)
        poll.register(self._output.fd, select.POLLIN)
        # The socket tells as well, unless some process holds the child's end of it by accident.
        poll.register(self._pidfd, select.POLLIN)
        ended = False
        while not attempt():
            if ended:
                raise self._ended()
            deadline += self._made_way()
            left = deadline - time.monotonic()
            if left <= 0:
                self.kill()
                raise ChildTimedOut(f"no answer within {timeout_s:.3g} s", output=self.output)
            for fd, _ in poll.poll(1000 * (left if self.way is None else min(left, _LOOK_S))):
                ended = ended or fd == self._pidfd
                if fd == self._output.fd and not self._output.drain():
                    poll.unregister(self._output.fd)
                    self._check_output()

    def _made_way(self) -> float:
        """Stand still while others have what is shared; returns the seconds that took."""
        if self.way is None or not self.way.is_wanted:
            return 0.0
        begun = time.monotonic()
        self.freeze_busy()
        self.way.step_aside()
        self.thaw()
        return time.monotonic() - begun

    def _check_output(self) -> None:
        if self._output.exceeded:
            self.kill()
            raise self._ended(f"it wrote more than {self._output.most} bytes of output")

    def _take(self) -> dict[str, object] | None:
        """Cut the first whole message off what has come."""
        start = channel.HEADER.size
        if len(self._inbox) < start:
            return None
        try:
            end = start + channel.payload_length(self._inbox[:start])
            if len(self._inbox) < end:
                return None
            message = channel.decode(self._inbox[start:end])
        except channel.NotAMessage as error:
            self.kill()
            raise ChildBroken(
                f"the child sent what is no message: {error}", output=self.output
            ) from error
        del self._inbox[:end]
        return message

    def _ended(self, why: str = "it hung up on the judge") -> ChildDied | EvaluationLost:
        """Say how it ended, after giving it a moment to end by itself."""
        if not self._gone:
            observe.has_ended(self._pidfd, _LAST_BREATH_S)
            self.kill()
        if self._exit is None:
            return EvaluationLost("the zygote died, and its children with it")
        name = signal.Signals(-self._exit).name if self._exit < 0 else None
        how = f"died of {name}" if name else f"ended with exit code {self._exit}"
        return ChildDied(
            f"the child was killed: {why}" if self._by_judge else f"the child {how}",
            output=self.output,
            exit_code=None if name else self._exit,
            signal_name=name,
            by_judge=self._by_judge,
        )
