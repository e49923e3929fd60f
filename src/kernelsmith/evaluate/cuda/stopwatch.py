"""How fast is it on a device? Two processes in turn, pair by pair, until the ratio is known."""

import random
import statistics
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from types import MappingProxyType
from typing import TYPE_CHECKING, cast

import numpy as np

from kernelsmith.domain.evaluation import Coverage, Kernel, Roofline, Verdict
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.domain.timing import CallTiming, Pair, Ratio, WorkloadTiming
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.cuda.batches import Batches, Draw
from kernelsmith.evaluate.cuda.evidence import Evidence
from kernelsmith.evaluate.cuda.floor import impossible, roofline
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle, Nature
from kernelsmith.evaluate.cuda.sides import (
    Disturbed,
    Samples,
    Side,
    Uncapturable,
)
from kernelsmith.evaluate.cuda.stand_alone import StandAlone
from kernelsmith.evaluate.cuda.turns import WAITING, Turns
from kernelsmith.evaluate.failure import ProgramFailed, lacks_memory
from kernelsmith.evaluate.measure import Measurement
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.spent import Spent
from kernelsmith.evaluate.timing.sampling import batch_size
from kernelsmith.evaluate.timing.statistics import speedup
from kernelsmith.evaluate.values import Setup
from kernelsmith.evaluate.watch import Watched

if TYPE_CHECKING:
    from kernelsmith.evaluate.cuda.backend import CudaBackend

OpenLane = Callable[[Setup], Lane]
Known = tuple[str, str, bool]
"""A workload, a baseline's source, and whether it was captured."""

_HEADROOM = 4.0
"""The batch is chosen for the baseline; a candidate this many times as fast still fills one."""
_STALE_S, _MOST_STALE = 5.0, 3
"""After so long, what the baseline took alone says little; so often that excuses a pair."""


def _not(lane: DeviceLane) -> bool:
    del lane
    return False


class DeviceStopwatch(Batches):
    """Times one candidate beside one baseline on one workload."""

    def __init__(
        self, backend: Backend, oracle: Oracle, task: Task, workload: Workload, *,
        open_baseline: OpenLane, open_candidate: OpenLane, settings: Settings, draw: Draw,
        rng: random.Random, watched: Watched, keep_baseline: Callable[[DeviceLane], bool] = _not,
        elsewhere: Mapping[str, float] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """``keep_baseline`` takes a baseline's process over after a pair, or says that it won't."""
        assert isinstance(oracle, DeviceOracle)
        super().__init__(
            cast("CudaBackend", backend), oracle, task, settings=settings, draw=draw, rng=rng,
            elsewhere=elsewhere,
        )  # fmt: skip
        self._workload = workload
        self._open_baseline, self._open_candidate = open_baseline, open_candidate
        self._watched, self._keep_baseline = watched, keep_baseline
        self._graph = settings.gpu.graph
        self._why_no_graph = ""
        self._output = ""
        self._kernels: list[tuple[Kernel, float]] = []
        self._spent = Spent()
        self._was_late = False
        """Whether a pair was measured again since the candidate's answers came late."""
        self._beside_itself = 0.0
        """What the baseline takes beside another process of its own, where that had to be asked."""

    def measure(self) -> Measurement:
        """Sample until the interval is narrow enough or the budget is spent.

        Raises:
            ProgramFailed: The candidate failed, was wrong while it was timed, or cheated.
        """
        stop, generator = self._settings.stop, np.random.default_rng(self._draw())
        pairs: list[Pair] = []
        calls: list[Pair] = []
        ratio: Ratio | None = None
        disturbed = stale = 0
        while ratio is None or not stop.enough(ratio, pairs, self._spent.total_s(without=WAITING)):
            try:
                timed, called = self._pair()
            except Uncapturable as why:
                self._graph, self._why_no_graph = False, str(why)
                continue
            except Disturbed as why:
                if why.late:
                    continue
                stale += why.stale
                disturbed += not why.stale or stale > _MOST_STALE
                if disturbed == 2:
                    with self._spent.on("twins"):
                        self._beside_itself = self._twins()
                if disturbed > 2:
                    raise ProgramFailed(
                        Verdict.CHEATED, f"slows the other side down: {why}"
                    ) from why
                continue
            pairs.append(timed)
            calls += [called] if called is not None else []
            ratio = speedup(pairs, generator=generator, outliers=self._gpu.outliers)
        assert self._count is not None
        call = None
        if calls:
            by_call = speedup(calls, generator=generator, outliers=self._gpu.outliers)
            call = CallTiming(pairs=tuple(calls), speedup=by_call, launches=self._count)
        timing = WorkloadTiming(
            workload=self._workload.name, pairs=tuple(pairs), speedup=ratio,
            launches=self._count, dropped=self._evidence.dropped, call=call,
            mode="graph" if self._graph else "events",
        )  # fmt: skip
        roofline = self._hold_against_the_floor(timing)
        noisy = ""
        if stop.noisy(ratio, pairs):
            noisy = f"{self._workload.name}: the interval is {ratio.width:.1%} wide"
        own = sum(us for kernel, us in self._kernels if kernel.own)
        library = sum(us for kernel, us in self._kernels if not kernel.own)
        coverage = None
        if own + library > 0:
            share = own / (own + library)
            coverage = Coverage(own=share, library=1 - share, samples=max(1, len(self._kernels)))
        return Measurement(
            timing, noisy, self._output, coverage=coverage, library_us=library,
            built=any(kernel.own for kernel, _ in self._kernels),
            kernels=tuple(kernel for kernel, _ in self._kernels), roofline=roofline,
            no_graph=self._why_no_graph,
            log=(*self._evidence.log(), ("seconds", str(self._spent))),
            throttled=self._evidence.throttled,
        )  # fmt: skip

    def _pair(self) -> tuple[Pair, Pair | None]:
        with Turns(self._backend, self._oracle, self._spent) as turns:
            with self._spent.on("reference"):
                setup = self._oracle.workload(self._workload, self._draw())
                self._look_at_the_reference(setup)
            with self._spent.on("baseline"):
                baseline = Side(cast(DeviceLane, self._open_baseline(setup)))
            kept = False
            try:
                if turns.leaves_room:
                    with self._spent.on("first call"):
                        baseline.call_once(self._oracle.arrange(self._fresh(1)))
                found = self._beside(baseline, setup, turns)
                kept = turns.leaves_room and self._keep_baseline(baseline.lane)
                return found
            finally:
                if not kept:
                    baseline.lane.close()
                self._oracle.release()

    def _beside(self, baseline: Side, setup: Setup, turns: Turns) -> tuple[Pair, Pair | None]:
        known = self._workload.name, baseline.lane.source, self._graph
        remembered = self._remembered(known, turns)
        if remembered is None:
            turns.alone()
            with self._spent.on("alone"):
                self._count = self._count or self._launches_of(baseline.lane)
                view = self._arrange(baseline)
                alone = self._oracle.alone[known] = self._alone(baseline, view)
            turns.beside()
        else:
            with self._spent.on("arranging"):
                alone, self._count = remembered, self._launches_of(baseline.lane)
                view = self._arrange(baseline)
        with self._spent.on("candidate"):
            candidate = Side(cast(DeviceLane, self._open_candidate(setup)))
        stand_alone = StandAlone(
            self._oracle, self._spot_check, self._evidence, rng=self._rng, slots=self._slots(),
            rotate=self._gpu.rotate, stateful=self._state is not None, renew=self._renew,
            why_not=self._why_not,
        )  # fmt: skip
        try:
            timed, called = Samples(), Samples()
            captured = False
            if turns.leaves_room:
                with self._spent.on("first call"):
                    candidate.call_once(view)
                captured = self._graph and not stand_alone.has_parts
            if captured:
                with self._spent.on("capture"):
                    candidate.lane.attach(view)
                    self._capture(candidate)
                    stand_alone.graph(candidate, view)
            stale = turns.alone() > _STALE_S or remembered is not None
            there = self._backend.gpu.pids() or frozenset()  # if the driver counts as we do
            there -= frozenset(candidate.lane.helpers())
            self._ours = there if baseline.lane.pid in there else frozenset()
            with self._spent.on("samples"):
                for turn in range(self._gpu.rounds):
                    if turn:
                        candidate.lane.detach()
                        view, captured = self._arrange(baseline), False
                    if not captured:
                        candidate.lane.attach(view)
                    if not turn:
                        stand_alone.leave_nothing(candidate.lane)
                    if self._graph:
                        part = stand_alone.part(candidate.lane, view)
                        if not captured:
                            self._capture(candidate)
                            stand_alone.graph(candidate, view)
                        self._rounds(baseline, candidate, view, setup, timed, self._gpu.samples)
                        self._evidence.judge_reading_ahead(
                            part, min(timed.candidate) * len(view.sets)
                        )
                    else:
                        self._rounds(baseline, candidate, view, setup, timed, self._gpu.samples)
                if self._graph and self._gpu.calls:
                    plain = Side(baseline.lane), Side(candidate.lane)
                    stand_alone.plainly(candidate.lane, view)
                    self._rounds(*plain, view, setup, called, self._gpu.calls)
            extra = candidate.lane.persisting - baseline.lane.persisting
            self._evidence.persisting = max(self._evidence.persisting, extra)
            self._convict(beside=turns.leaves_room)
            together = statistics.median(timed.baseline)
            alone = max(alone, self._beside_itself)
            if not self._evidence.undisturbed(alone, together, timed.turns):
                self._oracle.alone.pop(known, None)
                said = f"the baseline took {alone:.2f} us alone and {together:.2f} us"
                raise Disturbed(f"{said} while the candidate's process was there", stale=stale)
            if self._settings.kernels and not self._kernels:
                with self._spent.on("kernels"):
                    self._kernels = self._look_at_kernels(candidate.lane, view, setup)
            return timed.pair, called.pair if called.candidate else None
        finally:
            self._output = candidate.lane.output or self._output
            turns.end(candidate.lane)

    def _twins(self) -> float:
        """The baseline's time beside a second process of the same: what taking turns costs.

        A candidate is accused of slowing the other side down only beyond that: launches that read
        gigabytes find the device's address tables cold after each turn of another process.
        """
        evidence, self._evidence = self._evidence, Evidence()
        with Turns(self._backend, self._oracle, self._spent) as turns, ExitStack() as later:
            later.callback(setattr, self, "_evidence", evidence)
            turns.alone()
            setup = self._oracle.workload(self._workload, self._draw())
            later.callback(self._oracle.release)
            sides = []
            for _ in range(2):
                sides.append(Side(cast(DeviceLane, self._open_baseline(setup))))
                later.callback(sides[-1].lane.close)
            first, second = sides
            view, self._ours = self._arrange(first), frozenset()
            second.lane.attach(view)
            if self._graph:
                self._capture(second)
            samples = Samples()
            self._rounds(first, second, view, setup, samples, self._gpu.samples)
            return statistics.median(samples.baseline + samples.candidate)

    def _look_at_the_reference(self, setup: Setup) -> None:
        check, natures = self._spot_check, self._oracle.natures
        if self._workload.name not in natures:
            probe = self._fresh(1)
            answers = self._oracle.answers(probe, nudges=0)[0]
            natures[self._workload.name] = Nature(
                is_random=self._oracle.has_statistic and self._oracle.is_random(probe[0]),
                is_stateful=bool(answers.buffers), mutates=bool(answers.mutated),
                set_bytes=probe[0].nbytes + answers.nbytes,
            )  # fmt: skip
        nature = natures[self._workload.name]
        check.is_random, check.is_stateful = nature.is_random, nature.is_stateful
        self._mutates, self._set_bytes = nature.mutates, nature.set_bytes
        check.is_restored = self._task.weights is not Weights.SEED
        self._state = setup.state if check.is_stateful and check.is_restored else None

    def _remembered(self, known: Known, turns: Turns) -> float | None:
        """What the baseline took alone when an earlier pair asked, where that will do.

        Each time the device is had alone, all others wait for it. A pair that does not fit to what
        is remembered accuses nobody: it is measured again, with a baseline that was asked anew.
        """
        if not (self._gpu.alone_once and turns.leaves_room):
            return None
        return self._oracle.alone.get(known)

    def _launches_of(self, lane: DeviceLane) -> int:
        """How many launches make a batch beside this baseline."""
        known = self._workload.name, lane.source
        if known not in self._oracle.batches:
            self._oracle.batches[known] = self._calibrate(lane)
        return self._oracle.batches[known]

    def _calibrate(self, lane: DeviceLane) -> int:
        """Choose how many launches make a batch, from the baseline's time and its memory."""
        sets = self._fresh(2)
        lane.arrange(sets)
        times = []
        for _ in range(4):
            launches = lane.run([0, 1])
            times.append(launches.event_us / 2)
            lane.release(launches)
        lane.detach()
        return batch_size(
            max(min(times), 0.5), self._set_bytes, target_us=_HEADROOM * self._gpu.sample_us,
            max_bytes=self._gpu.sample_bytes, max_launches=self._gpu.max_launches,
        )  # fmt: skip

    def _arrange(self, baseline: Side) -> ArenaView:
        """Lay out the inputs anew, and capture the baseline on them."""
        assert self._count is not None
        baseline.lane.detach()
        count = self._count if self._gpu.rotate else 1
        view = self._oracle.arrange(count * self._fresh(1))  # contents come with each batch
        baseline.lane.attach(view)
        if self._graph:
            self._capture(baseline)
        return view

    def _capture(self, side: Side) -> None:
        captured = side.lane.capture(self._slots())
        if isinstance(captured, str):
            raise self._why_not(side.lane, captured)
        side.captured = captured

    def _why_not(self, lane: DeviceLane, said: str) -> Exception:
        line = said.strip().splitlines()[-1][:300]
        if lacks_memory(said) and self._backend.leaves_room:
            return ProgramFailed(Verdict.CRASHED, f"{lane.name}: {line}")  # judged again alone
        if lane.name == "candidate" and "unjoined" in said:
            return ProgramFailed(
                Verdict.WRONG,
                f"returns before its work is ordered: a stream is never joined ({line})",
            )
        return Uncapturable(f"{lane.name}: {line}")

    def _look_at_kernels(
        self, lane: DeviceLane, view: ArenaView, setup: Setup
    ) -> list[tuple[Kernel, float]]:
        """What it launches, from its graph; last, since a graph in parts is not what it wrote.

        Where that fails, a profiler looks at plain calls of a fresh process.
        """
        slots = self._slots()
        try:
            return lane.kernels(slots, len(slots))
        except ProgramFailed:
            fresh = cast(DeviceLane, self._open_candidate(setup))
            try:
                fresh.attach(view)
                return fresh.kernels(slots, len(slots))
            finally:
                fresh.close()

    def _convict(self, *, beside: bool) -> None:
        """Say what speaks against the candidate, if anything does.

        Where many judges share a machine's cores, one process's answers come late for as long as it
        lives (an honest kernel's by 0.4 ms in all batches of a pair, and in no batch of another):
        whom nothing but the clock accuses is timed once more there, in processes of its own.
        """
        verdict = self._evidence.verdict()
        if verdict is None:
            return
        if beside and not self._was_late and verdict == self._evidence.by_the_clock():
            self._was_late = True
            self._evidence.forget_the_clock()
            raise Disturbed(verdict, late=True)
        raise ProgramFailed(Verdict.CHEATED, verdict)

    def _hold_against_the_floor(self, timing: WorkloadTiming) -> Roofline | None:
        with ExitStack() as turn:
            if not (self._oracle.knows_needs(self._workload) and self._backend.knows_speeds):
                turn.enter_context(Turns(self._backend, self._oracle, self._spent)).alone()
            needed, operations = self._oracle.needs(self._workload, self._draw)
            speeds = self._backend.speeds(self._oracle)
        if not needed:  # nothing is compulsory, or the reference could not be asked
            return None
        batch = self._set_bytes * (self._count or 1)
        found = roofline(timing, needed, operations, batch, speeds)
        if said := impossible(timing.median_us, found.floor_us):
            raise ProgramFailed(Verdict.CHEATED, said)
        return found
