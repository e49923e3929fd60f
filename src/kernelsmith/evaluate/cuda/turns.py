"""Who has the device while a pair is measured: sides open beside others, clocks run alone."""

import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelsmith.evaluate.backend import Lane
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.sandbox.child import Way
from kernelsmith.evaluate.spent import Spent

if TYPE_CHECKING:
    from kernelsmith.evaluate.cuda.backend import CudaBackend

WAITING = "waiting"
"""For the device: nobody's time."""
_PROBES = 4
_IDLE_US = 500.0
"""A kernel of no work takes a tenth of that, and a slice of time more where another one runs."""
_PAUSE_S, _LONGEST_S = 0.2, 8.0
_PATIENCE_S = 40.0
"""Of pauses: more than a program may take over a request."""


class Turns:
    """One pair's use of the device, beside others where there is room for them."""

    def __init__(self, backend: "CudaBackend", oracle: DeviceOracle, spent: Spent) -> None:
        self._backend, self._oracle, self._spent = backend, oracle, spent
        self._held, self._kept_to = ExitStack(), ExitStack()
        self._leaves_room = False

    def __enter__(self) -> Self:
        """Begin beside others, each side within its part of the memory."""
        self._leaves_room = self._opened()
        if self._leaves_room:
            self._kept_to.enter_context(self._oracle.timing_in_rooms())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the device."""
        with self._kept_to:
            self._held.close()

    @property
    def leaves_room(self) -> bool:
        """Whether there can be others at all."""
        return self._leaves_room

    def beside(self) -> None:
        """Go on without timing, so that others can."""
        if self._leaves_room:
            self._held.close()
            self._opened()

    def end(self, lane: Lane) -> None:
        """End a side of the pair. That takes a tenth of a second, in which others can time."""
        try:
            self.beside()
        finally:
            lane.close()

    def alone(self) -> float:
        """Wait until nobody else is at work; returns the seconds that took.

        Others may have launched something before they stepped aside. A kernel that does not end is
        noticed by the judge that has launched it, whose clock stands still while this one has the
        device: so it pauses, longer each time. What is busy after all that stays so, and is judged:
        it is a candidate's left-over, or a stranger's work.
        """
        begun = time.monotonic()
        if self._leaves_room:
            with self._spent.on(WAITING):
                pause, paused = _PAUSE_S, 0.0
                patience = 0.0 if self._backend.restless else _PATIENCE_S
                while not (quiet := self._had_quiet()) and paused < patience:
                    self._held.close()
                    time.sleep(pause)
                    pause, paused = min(2 * pause, _LONGEST_S), paused + pause
                self._backend.restless = not quiet
        return time.monotonic() - begun

    def _opened(self) -> bool:
        with self._spent.on(WAITING):
            leaves_room = self._held.enter_context(self._backend.opening(self._oracle))
        if self._oracle.way is not None:
            self._oracle.way = _Counted(self._oracle.way, self._spent)
        return leaves_room

    def _had_quiet(self) -> bool:
        self._held.close()
        self._held.enter_context(self._backend.exclusive())
        return self._is_quiet()

    def _is_quiet(self) -> bool:
        """Whether what others had launched before they stepped aside has ended."""
        until = time.monotonic() + 1.0
        quick = 0
        while quick < _PROBES and time.monotonic() < until:
            quick = quick + 1 if self._oracle.idle_us() < _IDLE_US else 0
        return quick == _PROBES


class _Counted:
    """A share of the device whose holder is not charged for the time of those it steps aside for.

    Pairs are measured until their time is spent, and with many judges others have most of it.
    """

    def __init__(self, way: Way, spent: Spent) -> None:
        self._way, self._spent = way, spent

    @property
    def is_wanted(self) -> bool:
        return self._way.is_wanted

    def step_aside(self) -> None:
        with self._spent.on(WAITING):
            self._way.step_aside()

    def leave(self) -> None:
        self._way.leave()

    def come_back(self) -> None:
        with self._spent.on(WAITING):
            self._way.come_back()
