"""Batches of launches, timed in turns: fresh inputs for each, and a look at every output.

A batch is one replay of a graph that holds one launch per input slot (or plain launches, where a
capture is not sound). Between batches the trusted process writes other inputs into all slots and
poison over all outputs; after each it looks whether the device is idle, and at every output.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kernelsmith.domain.task import Task, Weights
from kernelsmith.evaluate.cuda.evidence import Evidence
from kernelsmith.evaluate.cuda.lane import DeviceLane, Replay
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle
from kernelsmith.evaluate.cuda.sides import Disturbed, Samples, Side, Suspect, furthest
from kernelsmith.evaluate.priority import prompt
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.spot import SpotCheck
from kernelsmith.evaluate.values import InputSet, Launches, Setup, State

if TYPE_CHECKING:
    from kernelsmith.evaluate.cuda.backend import CudaBackend

Draw = Callable[[], int]

_FEW_BYTES = 32 << 20
_BEYOND_CACHES = 256 << 20
"""A batch of so many bytes finds nothing of use in a cache; a smaller one keeps what is there."""
_AS_BEFORE = 2.0


class Batches:
    """Runs the batches of two sides, and keeps what speaks against one of them."""

    def __init__(
        self, backend: "CudaBackend", oracle: DeviceOracle, task: Task, *, settings: Settings,
        draw: Draw, rng: random.Random, elsewhere: Mapping[str, float],
    ) -> None:  # fmt: skip
        self._backend, self._oracle, self._task = backend, oracle, task
        self._settings, self._gpu, self._draw, self._rng = settings, settings.gpu, draw, rng
        self._spot_check = SpotCheck(oracle, task, checks=1, rng=rng, elsewhere=elsewhere)
        self._evidence = Evidence()
        self._count: int | None = None
        """Launches of a batch, once known."""
        self._state: State | None = None
        self._mutates = False
        self._set_bytes = 0
        self._examined_s = 0.0
        self._accepted = 0.0
        """How far from the baseline's the outputs were that a full comparison found right."""
        self._ours: frozenset[int] = frozenset()
        """Processes that were on the device when the pair began, and its own."""

    def _slots(self) -> list[int]:
        assert self._count is not None
        return list(range(self._count)) if self._gpu.rotate else [0] * self._count

    def _alone(self, baseline: Side, view: ArenaView) -> float:
        """The baseline's time while no candidate's process exists."""
        times = []
        for turn in range(self._gpu.warmups + self._gpu.alone):
            self._renew(view)
            ran = self._run(baseline)[0]
            if turn >= self._gpu.warmups:
                times.append(ran.event_us / len(self._slots()))
        return statistics.median(times)

    def _rounds(
        self, baseline: Side, candidate: Side, view: ArenaView, setup: Setup, into: Samples,
        count: int,
    ) -> None:  # fmt: skip
        if not self._gpu.interleave:
            self._in_a_row(baseline, candidate, view, into, count)
            return
        with prompt([baseline.lane.pid, candidate.lane.pid]):
            self._interleaved(baseline, candidate, view, setup, into, count)
        if not into.candidate:
            raise Disturbed("the device's clocks never held still")

    def _interleaved(
        self, baseline: Side, candidate: Side, view: ArenaView, setup: Setup, into: Samples,
        count: int,
    ) -> None:  # fmt: skip
        wanted, most = len(into.candidate) + count, self._gpu.warmups + 2 * count
        order: list[bool] = []
        for turn in range(most):
            self._renew_weights(baseline.lane, candidate.lane, setup)
            before = self._backend.gpu.snapshot()
            # Chance, then the other way round: each side comes first as often as the other.
            order = order[::-1] if turn % 2 else self._rng.sample((True, False), 2)
            ran = self._turn(baseline, candidate, view, order)
            theirs, own = (ran[side].event_us / len(self._slots()) for side in (False, True))
            into.turns.append((theirs, own))
            if turn < self._gpu.warmups:
                continue
            last = turn == most - 1 and not into.candidate
            after = self._backend.gpu.snapshot()
            if self._evidence.keep(before, after, last=last, ours=self._ours):
                into.baseline.append(theirs)
                into.candidate.append(own)
            if len(into.candidate) == wanted:
                break

    def _in_a_row(
        self, baseline: Side, candidate: Side, view: ArenaView, into: Samples, count: int
    ) -> None:
        for side, times in ((baseline, into.baseline), (candidate, into.candidate)):
            for turn in range(self._gpu.warmups + count):
                self._renew(view)
                ran, launches = self._run(side)
                if side is candidate:
                    self._evidence.add_clock(ran, self._oracle.idle_us())
                if turn >= self._gpu.warmups:
                    times.append(ran.event_us / len(self._slots()))
                self._release(side, launches)

    def _turn(
        self, baseline: Side, candidate: Side, view: ArenaView, order: Sequence[bool]
    ) -> dict[bool, Replay]:
        """One batch of each side on the same inputs, in this order."""
        sets = self._renew(view)
        ran: dict[bool, Replay] = {}
        made: dict[bool, Launches] = {}
        for place, is_candidate in enumerate(order):
            side = candidate if is_candidate else baseline
            if place and (self._mutates or self._state is not None):
                self._oracle.fill(range(len(sets)), sets)
            if self._state is not None:
                side.lane.weights(self._state, first=False)
            self._poison(side)
            ran[is_candidate], made[is_candidate] = self._run(side)
            idle = self._oracle.idle_us()
            if is_candidate:
                self._evidence.add_clock(ran[True], idle)
                self._evidence.add_helpers(side.lane.helpers())
                if self._mutates or self._state is not None:
                    self._examine(side.lane, made[True], sets, None)
            else:
                self._evidence.add_baseline(ran[False])
        if not (self._mutates or self._state is not None):
            suspect = furthest(self._oracle, baseline.lane, candidate.lane, made)
            self._examine(candidate.lane, made[True], sets, suspect)
        self._release(baseline, made[False])
        self._release(candidate, made[True])
        self._oracle.release()
        return ran

    def _run(self, side: Side) -> tuple[Replay, Launches]:
        if self._gpu.heat_us:
            # Whoever runs second would find the inputs in a cache: 20 us of a batch on an H200.
            beyond = self._set_bytes * len(self._slots()) > _BEYOND_CACHES
            self._oracle.heat(self._gpu.heat_us if beyond else 0.0)
        if side.captured is not None:
            return side.lane.replay(), side.captured
        launches = side.lane.run(self._slots())
        return Replay(wall_us=launches.elapsed_us, event_us=launches.event_us), launches

    def _poison(self, side: Side) -> None:
        if side.captured is not None:
            side.lane.poison(side.captured)

    def _release(self, side: Side, launches: Launches) -> None:
        if side.captured is None:
            side.lane.release(launches)

    def _examine(
        self, lane: DeviceLane, launches: Launches, sets: Sequence[InputSet],
        suspect: Suspect | None,
    ) -> None:  # fmt: skip
        tired = self._examined_s > self._gpu.examined_s and self._rng.random() > 0.1
        if tired and suspect is not None and suspect.off <= _AS_BEFORE * self._accepted:
            return
        begun = time.monotonic()
        suspects = [] if suspect is None else [suspect.launch]
        self._spot_check(lane, launches, sets, self._slots(), suspects=suspects)
        if suspect is not None and math.isfinite(suspect.off):
            self._accepted = max(self._accepted, suspect.off)
        self._examined_s += time.monotonic() - begun

    def _renew(self, view: ArenaView) -> list[InputSet]:
        """Put inputs into all slots that nobody has seen."""
        seeds = [self._draw() for _ in view.sets]
        return self._oracle.renew(view, seeds)

    def _renew_weights(self, baseline: DeviceLane, candidate: DeviceLane, setup: Setup) -> None:
        dynamic = self._task.weights is Weights.DYNAMIC and bool(setup.state.keys)
        size = sum(leaf.spec.span_bytes for leaf in setup.state.leaves)
        if not dynamic or size > _FEW_BYTES or self._spot_check.is_stateful:
            return
        state = self._oracle.weights(self._draw(), few=True)
        baseline.weights(state, first=False)
        candidate.weights(state, first=False)

    def _fresh(self, count: int) -> list[InputSet]:
        sets = self._oracle.inputs([self._draw() for _ in range(count)])
        assert sets is not None
        return sets
