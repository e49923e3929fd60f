"""How fast is it? Both sides under one clock, batch by batch, over fresh pairs of processes."""

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelsmith.domain.evaluation import Coverage, Verdict
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.domain.timing import Pair, Ratio, WorkloadTiming
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.checks.randomness import alarm_threshold, worst_z
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.guards.coverage import coverage, library_us, read_maps
from kernelsmith.evaluate.guards.policy import DECISIVE, TRIVIAL, undecided
from kernelsmith.evaluate.guards.sampler import FREQUENCY, open_sampler
from kernelsmith.evaluate.outcome import Examiner, Trial
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tensors import Float64
from kernelsmith.evaluate.timing.sampling import batch_size
from kernelsmith.evaluate.timing.statistics import speedup
from kernelsmith.evaluate.trials import with_scores
from kernelsmith.evaluate.values import InputSet, Launches, Setup, State

Draw = Callable[[], int]
OpenLane = Callable[[Setup], Lane]
"""Opens a fresh process, loads one side's source in it and gives it the setup's weights."""

_MIN_GAIN_US = 1.0
_SLACK = 2.0
"""Precision was judged before timing; timing looks at many more rows, and the worst of ten thousand
honest ones lies further out than the worst of a thousand. What it looks for is missing work."""
_CONVICTING_SAMPLES = 400
"""None of 270 in own code put its share below 2 % for sure; some samples fall on neither side."""
_MOST_WATCHES = 48
_RANDOM_CHECKS = 12
"""Launches of each timed sample of a random task that are compared."""
_WAKE_US = 40.0
"""Waiting that every sample shows, on an idle machine too."""


@dataclass(slots=True)
class Watched:
    """What the sampler saw of the candidate, over all pairs so far."""

    own: float = 0.0
    total: int = 0
    launches: int = 0
    batches: int = 0
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
    def in_doubt(self) -> bool:
        """Whether so little own code was seen that it takes more samples to be fair, and sure."""
        found = self.coverage
        return self.possible and (found is None or found.own < TRIVIAL)

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
        self._batch_us = self._settings.sample_us
        self._dropped = 0
        self._busy = False
        self._closer = 0
        self._watched = Watched()
        self._output = ""
        self._eager: dict[str, float] = {}
        """Eager's worst error in any timed batch so far, by output."""
        self._is_random = False
        self._rows: list[tuple[Float64, Float64]] = []
        """In that case, the statistic of timed launches: the reference's and the candidate's."""
        self._stateful = False
        """Whether the reference changes buffers, so that a launch may depend on earlier ones."""
        self._state: State | None = None
        """In that case, what both sides start every batch from."""

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
                self._is_random = self._oracle.has_statistic and self._oracle.is_random(
                    self._fresh(1)[0]
                )
                self._stateful = bool(self._oracle.answers(self._fresh(1), nudges=0)[0].buffers)
                by_key = self._task.weights is not Weights.SEED
                self._state = setup.state if self._stateful and by_key else None
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
        watched = settings.profiled if self._watched.possible else 0
        plan = ["time"] * wanted + ["watch"] * watched
        plan += ["doubt"] * (self._watches() - watched if watched else 0)
        self._rng.shuffle(plan)
        plan = ["warm"] * settings.warmups + plan
        baseline: list[float] = []
        candidate: list[float] = []
        disturbed: list[tuple[float, float, float]] = []
        patience = 2 * wanted
        while plan:
            what = plan.pop(0)
            if what == "doubt" and not self._watched.in_doubt:
                continue
            sets = self._fresh(count)
            if what in ("watch", "doubt"):
                self._watch(sides.candidate, sets)
                plan = self._look_closer(plan)
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

    def _watches(self) -> int:
        """Batches to watch in each pair: as many as it takes to be sure that own code is absent."""
        per_batch = self._batch_us / 1e6 * FREQUENCY
        needed = _CONVICTING_SAMPLES / per_batch / self._settings.stop.min_pairs
        return min(max(self._settings.profiled, math.ceil(needed)), _MOST_WATCHES)

    def _look_closer(self, plan: list[str]) -> list[str]:
        """Watch more where batches were shorter than foreseen and what they show is suspicious.

        Timed samples are added as well and all are mixed: no place in the plan is safe.
        """
        found, left = self._watched.coverage, 2 * _MOST_WATCHES - self._closer
        if left <= 0 or "watch" in plan or found is None:
            return plan
        if not undecided(found, self._task.library, library_us=self._watched.library_us):
            return plan
        missing = (DECISIVE - found.samples) * self._watched.batches / found.samples
        more = min(math.ceil(missing), left)
        self._closer += more
        plan = plan + ["watch"] * more + ["time"] * self._settings.stop.min_samples
        self._rng.shuffle(plan)
        return plan

    def _turn(self, sides: _Sides, sets: Sequence[InputSet]) -> tuple[Launches, Launches]:
        """One sample of each side on the same inputs, back to back, in random order."""
        swap = self._rng.random() < 0.5
        ran: dict[str, Launches] = {}
        for name in ("candidate", "baseline") if swap else ("baseline", "candidate"):
            lane = sides.candidate if name == "candidate" else sides.baseline
            self._fill(lane, sets)
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
        self._fill(lane, sets)
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
        self._watched.batches += 1
        self._spot_check(lane, launches, sets, order)
        lane.release(launches)
        self._oracle.release()

    def _spot_check(
        self, lane: Lane, launches: Launches, sets: Sequence[InputSet], order: Sequence[int]
    ) -> None:
        """Compare outputs of the batch just run, at places chosen only now."""
        if self._is_random:
            self._compare_random(lane, launches, sets, order)
            return
        if self._stateful and self._state is None:
            return  # buffers without common names cannot be put back: nobody knows what is right
        chosen = self._rng.sample(range(len(order)), min(self._settings.spot_checks, len(order)))
        before: list[InputSet] = []
        if self._stateful:
            # A launch starts from buffers that earlier ones of its batch changed: replay those.
            chosen = chosen[:1]
            before = [sets[slot] for slot in order[: chosen[0]]]
        slots = [order[index] for index in chosen]
        answers = self._oracle.answers([sets[slot] for slot in slots], before=before)
        trials = [
            Trial(inputs=sets[slot], answers=with_scores(sets[slot], each))
            for slot, each in zip(slots, answers, strict=True)
        ]
        examiner = Examiner(
            self._task, trials, eager=self._eager, slack=_SLACK, shifted=self._oracle.shifted
        )
        for index, slot, trial in zip(chosen, slots, trials, strict=True):
            try:
                examiner.examine(lane, launches, index=index, slot=slot, trial=trial)
            except ProgramFailed as failed:
                raise ProgramFailed(
                    failed.verdict,
                    f"right when checked, wrong in launch {index} of {len(order)} of a timed "
                    f"batch: {failed.message}",
                ) from failed

    def _compare_random(
        self, lane: Lane, launches: Launches, sets: Sequence[InputSet], order: Sequence[int]
    ) -> None:
        """A random output says little alone: compare distributions over all timed launches."""
        for index in self._rng.sample(range(len(order)), min(_RANDOM_CHECKS, len(order))):
            tensors = [x for x in lane.outputs(launches, index) if not isinstance(x, str)]
            if len(tensors) != len(launches.specs):
                raise ProgramFailed(Verdict.WRONG, "an output is no plain tensor")
            expected = self._oracle.statistics(sets[order[index]], 1)[0]
            found = self._oracle.reduce(launches.tree, tensors)
            if found.shape != expected.shape or not np.isfinite(found).all():
                raise ProgramFailed(Verdict.WRONG, "the statistic of a timed output is no number")
            self._rows.append((expected, found))
        sides = [np.stack(side) for side in zip(*self._rows, strict=True)]
        worst, allowed = worst_z(*sides), alarm_threshold(sides[0].shape[1])
        if worst > allowed:
            raise ProgramFailed(
                Verdict.WRONG,
                "right when checked, wrong while timed: its outputs follow another distribution "
                f"(z = {worst:.1f} over {len(self._rows)} launches, {allowed:.1f} is allowed)",
            )

    def _fill(self, lane: Lane, sets: Sequence[InputSet]) -> None:
        """New inputs; and the first buffers again, where launches change them."""
        lane.refill(sets)
        if self._state is not None:
            lane.weights(self._state, first=False)

    def _calibrate(self, sides: _Sides) -> int:
        """Choose how many launches make one sample, from the faster side's time."""
        settings = self._settings
        count = 2
        for _ in range(2):  # two launches tell little beside the clock's own cost: look again
            count = min(count, 16)
            sets = self._fresh(count)
            fastest = float("inf")
            outputs = 0
            for lane in (sides.baseline, sides.candidate):
                lane.arrange(sets)
                for _ in range(3):
                    idle = lane.run([])
                    launches = lane.run(range(count))
                    gained = max(launches.elapsed_us - idle.elapsed_us, _MIN_GAIN_US)
                    fastest = min(fastest, gained / count)
                    outputs = sum(s.span_bytes for s in launches.specs if not isinstance(s, str))
                    lane.release(launches)
                    lane.refill(sets)
            self._oracle.release()
            count = batch_size(
                fastest, sets[0].nbytes + outputs, target_us=settings.sample_us,
                max_bytes=settings.sample_bytes, max_launches=settings.max_launches,
            )  # fmt: skip
        self._batch_us = fastest * count
        return count

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
