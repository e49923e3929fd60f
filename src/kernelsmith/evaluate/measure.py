"""How fast is it? Both sides under one clock, batch by batch, over fresh pairs of processes."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.domain.task import Task, Workload
from kernelsmith.domain.timing import Pair, Ratio, WorkloadTiming
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.guards.coverage import coverage, library_us, read_maps
from kernelsmith.evaluate.guards.sampler import FREQUENCY, open_sampler
from kernelsmith.evaluate.outcome import Examiner, Trial
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import batch_size
from kernelsmith.evaluate.timing.statistics import speedup
from kernelsmith.evaluate.values import InputSet, Launches, Setup

Draw = Callable[[], int]
OpenLane = Callable[[Setup], Lane]
"""Opens a fresh process, loads one side's source in it and gives it the setup's weights."""

_MIN_GAIN_US = 1.0
_WAKE_US = 40.0
"""Waiting that every sample shows, on an idle machine too."""


@dataclass(slots=True)
class Watched:
    """What the sampler saw of the candidate, over all pairs so far."""

    own: float = 0.0
    total: int = 0
    launches: int = 0
    built: bool = False
    """Whether the judge built anything for the candidate."""
    possible: bool = True

    @property
    def coverage(self) -> Coverage | None:
        """Shares of all samples together."""
        if not self.total:
            return None
        own = self.own / self.total
        return Coverage(own=own, library=1 - own, samples=self.total)

    @property
    def library_us(self) -> float | None:
        """Library time per launch."""
        found = self.coverage
        if found is None or not self.launches:
            return None
        return library_us(found, frequency=FREQUENCY, launches=self.launches)


@dataclass(slots=True)
class Measurement:
    """What one workload's timing gave."""

    timing: WorkloadTiming
    noisy: str
    """Why the ratio is less certain than asked for; empty if it is not."""
    watched: Watched = field(default_factory=Watched)
    output: str = ""


@dataclass(slots=True)
class _Sides:
    baseline: Lane
    candidate: Lane

    def close(self) -> None:
        self.baseline.close()
        self.candidate.close()


class Stopwatch:
    """Times one candidate beside one baseline on one workload."""

    def __init__(
        self, backend: Backend, oracle: Oracle, task: Task, workload: Workload, *,
        open_baseline: OpenLane, open_candidate: OpenLane, settings: Settings, draw: Draw,
        rng: random.Random,
    ) -> None:  # fmt: skip
        self._backend, self._oracle, self._task, self._workload = backend, oracle, task, workload
        self._open_baseline, self._open_candidate = open_baseline, open_candidate
        self._settings, self._draw, self._rng = settings, draw, rng
        self._launches: int | None = None
        self._dropped = 0
        self._busy = False
        self._watched = Watched()
        self._output = ""

    def measure(self) -> Measurement:
        """Sample until the interval is narrow enough or the budget is spent.

        Raises:
            ProgramFailed: The candidate failed, or was wrong while it was timed.
        """
        stop = self._settings.stop
        pairs: list[Pair] = []
        generator = np.random.default_rng(self._draw())
        begun = time.monotonic()
        ratio: Ratio | None = None
        while ratio is None or not stop.enough(ratio, pairs, time.monotonic() - begun):
            # Each pair draws its own weights and processes: pairs differ more than samples do.
            pairs.append(self._pair())
            ratio = speedup(pairs, generator=generator)
        assert self._launches is not None
        timing = WorkloadTiming(
            workload=self._workload.name, pairs=tuple(pairs), speedup=ratio,
            launches=self._launches, dropped=self._dropped,
        )  # fmt: skip
        noisy = ""
        if stop.noisy(ratio, pairs):
            noisy = f"{self._workload.name}: the interval is {ratio.width:.1%} wide"
        if self._busy:
            noisy = f"{noisy or self._workload.name}; other processes used the cores meanwhile"
        return Measurement(timing, noisy, self._watched, self._output)

    def _pair(self) -> Pair:
        with self._backend.shared():
            setup = self._oracle.workload(self._workload, self._draw())
            sides = _Sides(self._open_baseline(setup), self._open_candidate(setup))
        try:
            with self._backend.exclusive():
                return self._sample(sides)
        finally:
            self._output = sides.candidate.output or self._output
            self._watched.built = self._watched.built or bool(sides.candidate.own_code)
            sides.close()
            self._oracle.release()

    def _sample(self, sides: _Sides) -> Pair:
        settings = self._settings
        if self._launches is None:
            self._launches = self._calibrate(sides)
        count = self._launches
        idle_us = self._arrange(sides, count)
        # Watched and timed batches in one random order: a program cannot tell which is which.
        wanted = settings.stop.min_samples
        plan = ["time"] * wanted + ["watch"] * (settings.profiled if self._watched.possible else 0)
        self._rng.shuffle(plan)
        plan = ["warm"] * settings.warmups + plan
        baseline: list[float] = []
        candidate: list[float] = []
        disturbed: list[tuple[float, float, float]] = []
        patience = 2 * wanted
        while plan:
            what = plan.pop(0)
            sets = self._fresh(count)
            if what == "watch":
                self._watch(sides.candidate, sets)
                continue
            first, second = self._turn(sides, sets)
            if what == "warm":
                continue
            sample = (
                max(_disturbance(first), _disturbance(second)),
                max(first.elapsed_us - idle_us, 0.01) / count,
                max(second.elapsed_us - idle_us, 0.01) / count,
            )
            if sample[0] <= settings.contention:
                baseline.append(sample[1])
                candidate.append(sample[2])
                continue
            self._dropped += 1
            disturbed.append(sample)
            patience -= 1
            if patience > 0:
                plan.append("time")
        if missing := wanted - len(baseline):
            # Never quiet: take the least disturbed, and say so.
            self._busy = True
            for _, first_us, second_us in sorted(disturbed)[:missing]:
                baseline.append(first_us)
                candidate.append(second_us)
        return Pair(baseline_us=tuple(baseline), candidate_us=tuple(candidate))

    def _turn(self, sides: _Sides, sets: Sequence[InputSet]) -> tuple[Launches, Launches]:
        """One sample of each side on the same inputs, back to back, in random order."""
        swap = self._rng.random() < 0.5
        ran: dict[str, Launches] = {}
        for name in ("candidate", "baseline") if swap else ("baseline", "candidate"):
            lane = sides.candidate if name == "candidate" else sides.baseline
            lane.refill(sets)
            order = list(range(len(sets)))
            self._rng.shuffle(order)
            launches = lane.run(order)
            ran[name] = launches
            if name == "candidate":
                self._spot_check(lane, launches, sets, order)
            lane.release(launches)
        self._oracle.release()
        return ran["baseline"], ran["candidate"]

    def _watch(self, lane: Lane, sets: Sequence[InputSet]) -> None:
        """One batch with a sampler on it; the program cannot see that it is there."""
        sampler = open_sampler(lane.pid) if lane.pid is not None else None
        if sampler is None:
            self._watched.possible = False
            return
        lane.refill(sets)
        order = list(range(len(sets)))
        self._rng.shuffle(order)
        with sampler:
            sampler.start()
            launches = lane.run(order)
            addresses = sampler.stop()
        assert lane.pid is not None
        found = coverage(addresses, read_maps(lane.pid), lane.own_code, enough=1)
        if found is not None:
            self._watched.own += found.own * found.samples
            self._watched.total += found.samples
        self._watched.launches += len(order)
        self._spot_check(lane, launches, sets, order)
        lane.release(launches)
        self._oracle.release()

    def _spot_check(
        self, lane: Lane, launches: Launches, sets: Sequence[InputSet], order: Sequence[int]
    ) -> None:
        """Compare outputs of the batch just run, at places chosen only now."""
        if self._oracle.has_statistic:
            return  # a random task's single outputs say nothing; its distribution was checked
        chosen = self._rng.sample(range(len(order)), min(self._settings.spot_checks, len(order)))
        slots = [order[index] for index in chosen]
        answers = self._oracle.answers([sets[slot] for slot in slots])
        if answers[0].buffers:
            chosen, slots, answers = chosen[:1], slots[:1], answers[:1]
            if chosen[0] != 0:
                return  # later launches of a batch start from buffers that earlier ones changed
        trials = [
            Trial(inputs=sets[slot], answers=each)
            for slot, each in zip(slots, answers, strict=True)
        ]
        examiner = Examiner(self._task, trials)
        for index, slot, trial in zip(chosen, slots, trials, strict=True):
            try:
                examiner.examine(lane, launches, index=index, slot=slot, trial=trial)
            except ProgramFailed as failed:
                raise ProgramFailed(
                    failed.verdict,
                    f"right when checked, wrong in launch {index} of {len(order)} of a timed "
                    f"batch: {failed.message}",
                ) from failed

    def _calibrate(self, sides: _Sides) -> int:
        """Choose how many launches make one sample, from the faster side's time."""
        settings = self._settings
        sets = self._fresh(2)
        fastest = float("inf")
        outputs = 0
        for lane in (sides.baseline, sides.candidate):
            lane.arrange(sets)
            for _ in range(3):
                idle = lane.run([])
                launches = lane.run([0, 1])
                per_launch = max(launches.elapsed_us - idle.elapsed_us, _MIN_GAIN_US) / 2
                fastest = min(fastest, per_launch)
                outputs = sum(s.span_bytes for s in launches.specs if not isinstance(s, str))
                lane.release(launches)
                lane.refill(sets)
        self._oracle.release()
        return batch_size(
            fastest, sets[0].nbytes + outputs, target_us=settings.sample_us,
            max_bytes=settings.sample_bytes, max_launches=settings.max_launches,
        )  # fmt: skip

    def _arrange(self, sides: _Sides, count: int) -> float:
        """Lay out both sides' slots and take the clock's own cost, on the trusted side."""
        sets = self._fresh(count)
        sides.baseline.arrange(sets)
        sides.candidate.arrange(sets)
        self._oracle.release()
        idle = sorted(sides.baseline.run([]).elapsed_us for _ in range(7))
        return idle[3]

    def _fresh(self, count: int) -> list[InputSet]:
        sets = self._oracle.inputs([self._draw() for _ in range(count)])
        assert sets is not None
        return sets


def _disturbance(launches: Launches) -> float:
    """Share of a sample that its threads spent waiting for a core; waking up is free."""
    return max(launches.waited_us - _WAKE_US, 0.0) / launches.elapsed_us
