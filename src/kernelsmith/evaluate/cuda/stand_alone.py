"""Does each launch do its own work, and no more? Tried on a candidate before it is timed."""

import random
from collections.abc import Callable, Sequence

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.cuda.evidence import Evidence
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle
from kernelsmith.evaluate.cuda.sides import Side
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.spot import SpotCheck
from kernelsmith.evaluate.values import InputSet

_PLAIN = 8
"""Calls, one by one, at the beginning of a pair."""
_WHOLE = 16
"""Launches from which on an eighth of them is tried by itself."""


class StandAlone:
    """Parts of a batch, launched without the rest of it."""

    def __init__(
        self, oracle: DeviceOracle, spot_check: SpotCheck, evidence: Evidence, *,
        rng: random.Random, slots: Sequence[int], rotate: bool, stateful: bool,
        renew: Callable[[ArenaView], list[InputSet]],
        why_not: Callable[[DeviceLane, str], Exception],
    ) -> None:  # fmt: skip
        self._oracle, self._spot_check, self._evidence = oracle, spot_check, evidence
        self._rng, self._slots = rng, list(slots)
        self._rotate, self._stateful = rotate, stateful
        self._renew, self._why_not = renew, why_not

    def leave_nothing(self, lane: DeviceLane) -> None:
        """Before a capture waits for all that was begun: the device is free after each call.

        Raises:
            ProgramFailed: It is not.
        """
        idle = []
        for _ in range(_PLAIN):
            lane.release(lane.run(self._slots[:1]))
            idle.append(self._oracle.idle_us())
        self._evidence.judge_leftovers(idle)

    @property
    def has_parts(self) -> bool:
        """Whether ``part`` has something to try, and captures a graph of its own for that."""
        return len(self._slots) >= _WHOLE and self._rotate

    def part(self, lane: DeviceLane, view: ArenaView) -> tuple[float, float] | None:
        """Time a graph of a few launches while inputs for many lie there."""
        slots = self._slots
        if not self.has_parts:
            return None
        few = self._rng.sample(slots, max(1, len(slots) // 8))
        captured = lane.capture(few)
        if isinstance(captured, str):
            raise self._why_not(lane, captured)
        times = []
        for _ in range(3):
            self._renew(view)
            self._oracle.heat(0.0)
            times.append(lane.replay().event_us)
        return len(few) / len(slots), min(times)

    def graph(self, candidate: Side, view: ArenaView) -> None:
        """Every launch of a graph does its own work, whether or not those before it ran.

        Raises:
            ProgramFailed: One does not.
        """
        launches, lane = len(self._slots), candidate.lane
        if launches < 2 or not self._rotate or candidate.captured is None:
            return
        if lane.nodes % launches:
            raise ProgramFailed(
                Verdict.CHEATED,
                f"launches differ: {launches} calls on inputs of one form became {lane.nodes} "
                "operations on the device",
            )
        if self._stateful or self._spot_check.is_random:
            return
        first = self._rng.randrange(1, launches)
        sets = self._renew(view)
        lane.poison(candidate.captured)
        lane.replay_from(first, launches)
        self._spot_check(
            lane, candidate.captured, sets, self._slots, suspects=[first],
            among=range(first, launches),
        )  # fmt: skip
        self._oracle.release()

    def plainly(self, lane: DeviceLane, view: ArenaView) -> None:
        """The same for plain calls: inputs change between two halves of a batch."""
        slots = self._slots
        if len(slots) < 2 or not self._rotate or self._stateful:
            return
        half = self._rng.randrange(1, len(slots))
        self._renew(view)
        lane.run(slots[:half])
        sets = self._renew(view)
        launches = lane.run(slots[half:])
        self._spot_check(lane, launches, sets, slots[half:], suspects=[len(slots) - half - 1])
        lane.release(launches)
        self._oracle.release()
