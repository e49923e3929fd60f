"""Who has the device while a pair is measured: sides open beside others, clocks run alone."""

import time
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.spent import Spent

if TYPE_CHECKING:
    from kernelsmith.evaluate.cuda.backend import CudaBackend

WAITING = "waiting"
"""For the device: nobody's time."""
_PROBES = 4
_IDLE_US = 500.0
"""A kernel of no work takes a tenth of that, and a slice of time more where another one runs."""
_PAUSE_S, _PATIENCE_S = 0.2, 90.0


class Turns:
    """One pair's use of the device, beside others where there is room for them."""

    def __init__(self, backend: "CudaBackend", oracle: DeviceOracle, spent: Spent) -> None:
        self._backend, self._oracle, self._spent = backend, oracle, spent
        self._held = ExitStack()
        self._leaves_room = False

    def __enter__(self) -> Self:
        """Begin beside others."""
        with self._spent.on(WAITING):
            self._leaves_room = self._held.enter_context(self._backend.opening(self._oracle))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Leave the device."""
        self._held.close()

    @property
    def leaves_room(self) -> bool:
        """Whether there can be others at all."""
        return self._leaves_room

    def beside(self) -> None:
        """Go on without timing, so that others can."""
        if self._leaves_room:
            with self._spent.on(WAITING):
                self._held.close()
                self._held.enter_context(self._backend.opening(self._oracle))

    def alone(self) -> None:
        """Wait until nobody else is at work.

        Raises:
            EvaluationLost: Somebody always is.
        """
        if not self._leaves_room:
            return
        with self._spent.on(WAITING):
            until = time.monotonic() + _PATIENCE_S
            while True:
                self._held.close()
                self._held.enter_context(self._backend.exclusive())
                if self._is_quiet():
                    return
                if time.monotonic() > until:
                    raise EvaluationLost("the device was never idle; something else runs on it")
                # A kernel that does not end is noticed by the judge that has launched it.
                self._held.close()
                time.sleep(_PAUSE_S)

    def _is_quiet(self) -> bool:
        """Whether what others had launched before they stepped aside has ended."""
        until = time.monotonic() + 1.0
        quick = 0
        while quick < _PROBES and time.monotonic() < until:
            quick = quick + 1 if self._oracle.idle_us() < _IDLE_US else 0
        return quick == _PROBES
