"""How fast is it? Both sides under one clock, batch by batch, over fresh pairs of processes."""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from types import MappingProxyType

import numpy as np

from kernelsmith.domain.evaluation import Coverage, Kernel, Roofline, Verdict
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.domain.timing import Pair, Ratio, WorkloadTiming
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.spot import SpotCheck
from kernelsmith.evaluate.timing.sampling import batch_size
from kernelsmith.evaluate.timing.statistics import speedup
from kernelsmith.evaluate.values import InputSet, Launches, Setup, State
from kernelsmith.evaluate.watch import Watched

Draw = Callable[[], int]
OpenLane = Callable[[Setup], Lane]
"""Opens a fresh process, loads one side's source in it and gives it the setup's weights."""

_MIN_GAIN_US = 1.0
_LEAST_OWN = 0.125
"""Share of a batch that is no waiting, at least, while its size is chosen."""
_WAKE_US = 100.0
"""Waiting that every sample shows, on an idle machine too: threads of either side waking up."""
_MOST_WATCHES = 96
"""Batches watched more before what they showed is looked at; who needs more gets longer ones."""
_LONGER = 8
_CLOSER_S = 30.0
"""How long a workload is watched more: seconds, for batches may be too short to show much."""
_MOST_WARMUPS = 8
_WARM_FAULTS = 32
"""A side whose batch touches more new pages than this is still growing its memory."""
_JUDGED_FROM_US = 400.0
_COLD_US = 150.0
"""What a first launch may take longer than the next ones."""
_LEEWAY = 0.45
"""Share of a whole batch that a few launches may take beyond their own share."""
_MOST = 0.75
"""Of the parts must be slow: those of who reads ahead are, a busy machine makes some of them so."""
_MORE_PARTS = 6
"""Few launches of a batch that are looked at again before anyone is accused."""
_FEW_BYTES = 32 << 20
"""Weights up to this size change a little before every sample; larger ones once per pair."""


@dataclass(slots=True)
class Measurement:
    """What one workload's timing gave."""

    timing: WorkloadTiming
    noisy: str
    """Why the ratio is less certain than asked for; empty if it is not."""
    output: str
    coverage: Coverage | None = None
    """On a device: where the time of the launches went; elsewhere ``watched`` has it."""
    library_us: float | None = None
    built: bool = False
    kernels: tuple[Kernel, ...] = ()
    roofline: Roofline | None = None
    no_graph: str = ""
    """Why no graph could be captured."""
    throttled: str = ""
    log: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Sides:
    baseline: Lane
    candidate: Lane

    def close(self) -> None:
        self.baseline.close()
        self.candidate.close()


@dataclass(frozen=True, slots=True)
class _Part:
    """A few launches of a batch whose inputs all lie there: their share of it, and microseconds."""

    share: float
    us: float
    baseline_us: float


@dataclass(frozen=True, slots=True, order=True)
class _Sample:
    disturbance: float
    baseline_us: float
    candidate_us: float
    faults: int


class Stopwatch:
    """Times one candidate beside one baseline on one workload."""

    def __init__(
        self, backend: Backend, oracle: Oracle, task: Task, workload: Workload, *,
        open_baseline: OpenLane, open_candidate: OpenLane, settings: Settings, draw: Draw,
        rng: random.Random, watched: Watched,
        elsewhere: Mapping[str, float] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self._backend, self._oracle, self._task, self._workload = backend, oracle, task, workload
        self._open_baseline, self._open_candidate = open_baseline, open_candidate
        self._settings, self._draw, self._rng = settings, draw, rng
        self._watched = watched
        self._spot_check = SpotCheck(
            oracle, task, checks=settings.spot_checks, rng=rng, elsewhere=elsewhere
        )
        self._launches = 0
        self._most_launches = 0
        self._lead = 0
        self._spent_s = 0.0
        """Without waiting for others who time on this device."""
        self._dropped = 0
        self._busy = False
        self._closer_until: float | None = None
        self._output = ""
        self._state: State | None = None
        """What both sides start every batch from, where launches change their buffers."""

    def measure(self) -> Measurement:
        """Sample until the interval is narrow enough or the budget is spent.

        Raises:
            ProgramFailed: The candidate failed, was wrong while it was timed, or read ahead.
        """
        stop = self._settings.stop
        pairs: list[Pair] = []
        generator = np.random.default_rng(self._draw())
        ratio: Ratio | None = None
        while ratio is None or not stop.enough(ratio, pairs, self._spent_s):
            # Each pair draws its own weights and processes: pairs differ more than samples do.
            pairs.append(self._pair())
            ratio = speedup(pairs, generator=generator)
        timing = WorkloadTiming(
            workload=self._workload.name, pairs=tuple(pairs), speedup=ratio,
            launches=self._launches, dropped=self._dropped,
        )  # fmt: skip
        noisy = ""
        if stop.noisy(ratio, pairs):
            noisy = f"{self._workload.name}: the interval is {ratio.width:.1%} wide"
        if self._busy:
            noisy = f"{noisy or self._workload.name}; other processes used the cores meanwhile"
        return Measurement(timing, noisy, self._output)

    def _pair(self) -> Pair:
        with self._backend.shared():
            setup = self._oracle.workload(self._workload, self._draw())
            sides = _Sides(self._open_baseline(setup), self._open_candidate(setup))
        begun = time.monotonic()
        try:
            with self._backend.exclusive():
                begun = time.monotonic()
                self._look_at_the_reference(setup)
                return self._sample(sides, setup)
        finally:
            self._spent_s += time.monotonic() - begun
            self._output = sides.candidate.output or self._output
            self._watched.built = self._watched.built or bool(sides.candidate.own_code)
            sides.close()
            self._oracle.release()

    def _look_at_the_reference(self, setup: Setup) -> None:
        check, probe = self._spot_check, self._fresh(1)
        check.is_random = self._oracle.has_statistic and self._oracle.is_random(probe[0])
        check.is_stateful = bool(self._oracle.answers(probe, nudges=0)[0].buffers)
        check.is_restored = self._task.weights is not Weights.SEED
        self._state = setup.state if check.is_stateful and check.is_restored else None

    def _sample(self, sides: _Sides, setup: Setup) -> Pair:
        if not self._launches:
            self._launches = self._calibrate(sides)
        count = self._launches
        idle_us = self._arrange(sides, count)
        plan = self._plan(count)
        wanted = self._settings.stop.min_samples
        quiet: list[_Sample] = []
        disturbed: list[_Sample] = []
        parts: list[_Part] = []
        patience, warmed = 2 * wanted, 0
        doubted = False
        while plan or not doubted:
            if not plan:
                # A busy machine makes few launches slow, too: look again before accusing anyone.
                doubted = True
                plan = self._more_parts(parts, quiet or disturbed, count)
                continue
            what = plan.pop(0)
            self._renew(sides, setup)
            sets = self._fresh(count + self._lead)
            if what == "watch":
                self._watch(sides.candidate, sets)
                plan = self._look_closer(plan)
                if count != self._launches:
                    count, parts = self._launches, []
                    idle_us = self._arrange(sides, count)
            elif what == "part":
                parts.append(self._part(sides, sets, idle_us))
            else:
                sample = self._turn(sides, sets, idle_us)
                if what == "warm":
                    warmed += 1
                    if sample.faults > _WARM_FAULTS and warmed < _MOST_WARMUPS:
                        plan = ["warm", *plan] if plan[0] != "warm" else plan
                    continue
                if sample.disturbance <= self._settings.contention:
                    quiet.append(sample)
                    continue
                self._dropped += 1
                disturbed.append(sample)
                patience -= 1
                plan += ["time"] if patience > 0 else []
        if len(quiet) < wanted:
            # Never quiet: take the least disturbed, and say so.
            self._busy = True
            measured = sorted(each for each in disturbed if each.disturbance < inf)
            quiet += measured[: wanted - len(quiet)]
        if not quiet:
            raise EvaluationLost(
                f"this machine is too busy to time {self._workload.name!r}: no batch took longer "
                f"than the {idle_us:.0f} us in which nothing was asked for; judge it again when "
                "there is less beside it"
            )
        if slow := _slow_parts(parts, quiet, count):
            raise ProgramFailed(
                Verdict.CHEATED,
                f"reads ahead: up to an eighth of a batch's launches took {min(slow):.0f} us or "
                f"more, the whole batch {_whole_us(quiet, count):.0f} us",
            )
        return Pair(
            baseline_us=tuple(each.baseline_us for each in quiet),
            candidate_us=tuple(each.candidate_us for each in quiet),
        )

    def _plan(self, count: int) -> list[str]:
        """Timed, watched and partial batches in one random order: no program can tell which."""
        settings = self._settings
        plan = ["time"] * settings.stop.min_samples
        plan += ["watch"] * (settings.profiled if self._watched.possible else 0)
        plan += self._parts(count)
        self._rng.shuffle(plan)
        return ["warm"] * settings.warmups + plan

    def _parts(self, count: int) -> list[str]:
        return ["part"] * (self._settings.parts if count >= 8 else 0)

    def _look_closer(self, plan: list[str]) -> list[str]:
        """Watch more where what was seen is suspicious and too little to convict or acquit.

        Timed samples are added as well and all are mixed: no place in the plan is safe. Where
        batches show next to nothing they become longer, all of them.
        """
        more = self._watched.missing_batches(self._task.library) if "watch" not in plan else 0
        if not more:
            return plan
        if self._closer_until is None:
            self._closer_until = time.monotonic() + _CLOSER_S
        if time.monotonic() > self._closer_until:
            return plan
        longer = min(_LONGER * self._launches, self._most_launches)
        if more > _MOST_WATCHES and longer > self._launches:
            more = max(1, more * self._launches // longer)
            self._launches = longer
            plan += self._parts(longer)
        plan += ["watch"] * min(more, _MOST_WATCHES) + ["time"] * self._settings.stop.min_samples
        self._rng.shuffle(plan)
        return plan

    def _turn(self, sides: _Sides, sets: Sequence[InputSet], idle_us: float) -> _Sample:
        """One sample of each side on the same inputs, back to back, in random order."""
        ran: dict[bool, Launches] = {}
        first, order = self._order(sets)
        for is_candidate in self._rng.sample((True, False), 2):
            lane = sides.candidate if is_candidate else sides.baseline
            self._lead_in(lane, sets, first, order)
            ran[is_candidate] = lane.run(order)
            if is_candidate:
                self._spot_check(lane, ran[True], sets, order)
            lane.release(ran[is_candidate])
        self._oracle.release()
        net_us = {side: each.elapsed_us - idle_us for side, each in ran.items()}
        return _Sample(
            # What takes no longer than nothing at all was not measured, whatever kept the cores.
            disturbance=max(map(_disturbance, ran.values())) if min(net_us.values()) > 0 else inf,
            baseline_us=net_us[False] / len(order),
            candidate_us=net_us[True] / len(order),
            faults=max(each.faults for each in ran.values()),
        )

    def _order(self, sets: Sequence[InputSet]) -> tuple[list[int], list[int]]:
        """Slots to run first, outside the clock, and those of the batch.

        A core that slept is slow at first (122 us a launch became 600 after a pause of 50 ms, on
        one machine); a few launches right before the batch wake it, whichever side it is.
        """
        order = list(range(len(sets)))
        self._rng.shuffle(order)
        return order[: self._lead], order[self._lead :]

    def _watch(self, lane: Lane, sets: Sequence[InputSet]) -> None:
        first, order = self._order(sets)
        self._lead_in(lane, sets, first, order)
        launches = self._watched.watch(lane, order)
        if launches is not None:
            self._spot_check(lane, launches, sets, order)
            lane.release(launches)
        self._oracle.release()

    def _part(self, sides: _Sides, sets: Sequence[InputSet], idle_us: float) -> _Part:
        """Time a few launches of each side while inputs for many lie there."""
        first, whole = self._order(sets)
        share = self._rng.randint(1, max(1, len(whole) // 8)) / len(whole)
        order = whole[: round(share * len(whole))]
        took: dict[bool, float] = {}
        for is_candidate in self._rng.sample((True, False), 2):
            lane = sides.candidate if is_candidate else sides.baseline
            self._lead_in(lane, sets, first, whole)
            launches = lane.run(order)
            if is_candidate:
                self._spot_check(lane, launches, sets, order)
            lane.release(launches)
            took[is_candidate] = launches.elapsed_us - launches.waited_us - idle_us
        self._oracle.release()
        return _Part(share=share, us=took[True], baseline_us=took[False])

    def _more_parts(
        self, parts: Sequence[_Part], timed: Sequence[_Sample], count: int
    ) -> list[str]:
        """Where few launches seem slow: more of them, mixed with timed ones as at first."""
        if not _slow_parts(parts, timed, count):
            return []
        plan = ["part"] * _MORE_PARTS + ["time"] * self._settings.stop.min_samples
        self._rng.shuffle(plan)
        return plan

    def _renew(self, sides: _Sides, setup: Setup) -> None:
        """Change a few weights on both sides, so that nothing derived from them may be kept."""
        dynamic = self._task.weights is Weights.DYNAMIC and bool(setup.state.keys)
        size = sum(leaf.spec.span_bytes for leaf in setup.state.leaves)
        if not dynamic or size > _FEW_BYTES or self._spot_check.is_stateful:
            return
        state = self._oracle.weights(self._draw(), few=True)
        sides.baseline.weights(state, first=False)
        sides.candidate.weights(state, first=False)

    def _lead_in(
        self, lane: Lane, sets: Sequence[InputSet], first: Sequence[int], order: Sequence[int]
    ) -> None:
        """Wake the cores, then put the batch's inputs there, which nobody has seen until now.

        Where launches change buffers, these are the first ones again.
        """
        if first:
            lane.refill(sets, first)
            lane.run(first)
        lane.refill(sets, order)
        if self._state is not None:
            lane.weights(self._state, first=False)

    def _calibrate(self, sides: _Sides) -> int:
        """Choose how many launches make one sample, from the faster side's time."""
        settings = self._settings
        count = 2
        for _ in range(2):  # two launches tell little beside the clock's own cost: look again
            sets = self._fresh(min(count, 16))
            fastest, outputs = float("inf"), 0
            for lane in (sides.baseline, sides.candidate):
                lane.arrange(sets)
                for _ in range(3):
                    idle = lane.run([])
                    launches = lane.run(range(len(sets)))
                    # Others that keep the cores would make batches of one launch, in which nobody
                    # sees whose code ran.
                    took_us = max(_own_us(launches), _LEAST_OWN * launches.elapsed_us)
                    gained = max(took_us - _own_us(idle), _MIN_GAIN_US)
                    fastest = min(fastest, gained / len(sets))
                    outputs = sum(s.span_bytes for s in launches.specs if not isinstance(s, str))
                    lane.release(launches)
                    lane.refill(sets)
            self._oracle.release()
            fitting = partial(
                batch_size, set_bytes=sets[0].nbytes + outputs, max_bytes=settings.sample_bytes,
                max_launches=settings.max_launches,
            )  # fmt: skip
            count = fitting(fastest, target_us=settings.sample_us)
            self._most_launches = fitting(fastest, target_us=inf)
        return count

    def _arrange(self, sides: _Sides, count: int) -> float:
        """Lay out both sides' slots and take the clock's own cost, on the trusted side."""
        self._lead = 0 if self._spot_check.is_stateful else max(1, count // 4)
        sets = self._fresh(count + self._lead)
        sides.baseline.arrange(sets)
        sides.candidate.arrange(sets)
        self._oracle.release()
        idle = [sides.baseline.run([]) for _ in range(7)]
        # Others that kept the core are no part of it: taken off every sample, they would leave
        # hardly anything of a short one.
        return statistics.median(map(_own_us, idle))

    def _fresh(self, count: int) -> list[InputSet]:
        sets = self._oracle.inputs([self._draw() for _ in range(count)])
        assert sets is not None
        return sets


def _slow_parts(parts: Sequence[_Part], timed: Sequence[_Sample], count: int) -> list[float]:
    """Microseconds of the parts that took too long, where nearly all of them did; else none.

    An eighth of the launches takes about an eighth of the time, unless all were computed. Whoever
    computes every input that lies there in its first launch shares out what each launch costs,
    which no caller outside of a benchmark would ever see. What a cold start costs on this machine,
    the baseline's parts show, which nobody accuses. Batches so short that it counts most are not
    judged.
    """
    whole_us = _whole_us(timed, count)
    if whole_us < _JUDGED_FROM_US:
        return []
    whole = statistics.median(each.baseline_us for each in timed) * count
    cold_us = statistics.median([each.baseline_us - each.share * whole for each in parts] or [0.0])
    allowed_us = max(cold_us, _COLD_US)
    slow = [each.us for each in parts if each.us - allowed_us > (each.share + _LEEWAY) * whole_us]
    return slow if len(slow) >= 2 and len(slow) > _MOST * len(parts) else []


def _whole_us(timed: Sequence[_Sample], count: int) -> float:
    """What a whole batch takes, in the middle: parts are as likely to be disturbed as it is."""
    return statistics.median(each.candidate_us for each in timed) * count if timed else 0.0


def _disturbance(launches: Launches) -> float:
    """Share of a sample that others kept the cores; waking up is free."""
    return max(launches.waited_us - _WAKE_US, 0.0) / launches.elapsed_us


def _own_us(launches: Launches) -> float:
    """What a batch took without others that kept the cores."""
    return launches.elapsed_us * max(1 - _disturbance(launches), 0.0)
