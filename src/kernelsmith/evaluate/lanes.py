"""The processes of a judgement: who is opened, with which weights, and who stays for a while."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Weights
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.backend import Backend, Lane, Oracle
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.values import Setup

_LIGHT_BYTES = 64 << 20
"""Weights of a baseline that may wait for the next evaluation: it waits in nobody's room."""


class Lanes:
    """Opens programs for one task, beside its reference.

    Each is a process of its own, fresh for every pair that is timed. At a glance, beside other
    judges, opening them is most of an evaluation: there the process that has passed all checks is
    the first that is timed, and the baseline's waits for the next candidate. Weights are written
    anew into both, and inputs are ones that they have never seen.
    """

    def __init__(self, backend: Backend, oracle: Oracle, task: Task, settings: Settings) -> None:
        self._backend, self._oracle, self._task, self._settings = backend, oracle, task, settings
        self.spared: frozenset[int] = frozenset()
        """Outputs that are parameters or buffers of the reference's module."""
        self._checked: DeviceLane | None = None
        """One that has passed all checks and is still open."""
        self._waiting: DeviceLane | None = None
        """A baseline between two evaluations."""
        self._weighs = 0

    def candidate(self, candidate: Candidate, setup: Setup) -> Lane:
        """Load a candidate in a fresh process and give it the reference's weights."""
        return self._opened("candidate", candidate.source, self._task.candidate_entry, setup)

    def to_time(self, candidate: Candidate, setup: Setup) -> Lane:
        """A process to time: the one that was checked, if it is still there."""
        lane, self._checked = self._checked, None
        if lane is None:
            return self.candidate(candidate, setup)
        return self._with_weights(lane, setup)

    def stays(self, lane: Lane) -> bool:
        """Whether the process that was checked is kept to be timed first.

        Only where it is known what the baseline takes with no candidate there.
        """
        known = bool(getattr(self._oracle, "alone", None))
        if not (self._glances and known and isinstance(lane, DeviceLane)):
            return False
        lane.detach()
        self._checked = lane
        return True

    def end_checked(self) -> None:
        """End the process that was checked, if nobody has timed it."""
        if self._checked is not None:
            self._checked.close()
            self._checked = None

    def opener_of_baseline(self, baseline: Candidate | None) -> Callable[[Setup], Lane]:
        """How to open what a candidate is measured beside: the task's own, or another candidate.

        Raises:
            UsageError: When it is opened, and fails.
        """
        task = self._task
        source, entry = task.source, task.entry
        if task.baseline is not None:
            source, entry = task.baseline, task.candidate_entry
        if baseline is not None:
            source, entry = baseline.source, task.candidate_entry

        def opened(setup: Setup) -> Lane:
            self._weighs = sum(leaf.spec.span_bytes for leaf in setup.state.leaves)
            lane, self._waiting = self._waiting, None
            if lane is not None and lane.source == source:
                with suppress(ProgramFailed):  # it was killed while it waited: another one, then
                    return self._with_weights(lane, setup)
            elif lane is not None:
                lane.close()
            try:
                return self._opened("baseline", source, entry, setup)
            except ProgramFailed as failed:
                raise UsageError(f"the baseline fails: {failed.message}") from failed

        return opened

    @property
    def keeping(self) -> dict[str, Any]:
        """What a stopwatch is told besides, where a baseline may wait for the next evaluation."""
        return {"keep_baseline": self._keep} if self._glances else {}

    def close(self) -> None:
        """End all that are still open."""
        self.end_checked()
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None

    @property
    def _glances(self) -> bool:
        return (
            self._settings.gpu.alone_once
            and self._backend.timed
            and hasattr(self._backend, "staying")
            and len(self._task.workloads) == 1
            and self._task.weights is not Weights.SEED
        )

    def _keep(self, lane: DeviceLane) -> bool:
        """Let a baseline wait, without its memory; not where pairs are to be of fresh processes."""
        if self._settings.stop.max_pairs > 1 or self._weighs > _LIGHT_BYTES:
            return False
        try:
            lane.rest()
        except (ProgramFailed, UsageError, EvaluationLost):
            return False  # it was to be closed anyway
        self._waiting = lane
        return True

    def _with_weights(self, lane: DeviceLane, setup: Setup) -> Lane:
        """Write other weights into one that is open."""
        try:
            self._weigh(lane, setup, first=False)
        except BaseException:
            lane.close()
            raise
        return lane

    def _opened(self, name: str, source: str, entry: str, setup: Setup) -> Lane:
        task = self._task
        lane = self._backend.lane(name, timeout_s=self._settings.timeout_s, oracle=self._oracle)
        lane.spared = self.spared
        try:
            lane.load(source, entry, setup, function=task.is_function)
            if task.weights is not Weights.SEED:
                if mismatch := lane.state_mismatch(setup.state):
                    raise ProgramFailed(
                        Verdict.REFUSED,
                        f"{entry} must take the reference's state-dict keys: it {mismatch}",
                    )
                self._weigh(lane, setup, first=True)
        except BaseException:
            lane.close()
            raise
        return lane

    def _weigh(self, lane: Lane, setup: Setup, *, first: bool) -> None:
        """Give it the reference's weights: into its memory, unless it must see them come."""
        prepare = self._task.weights is Weights.STATIC and lane.prepares
        lane.weights(setup.state, first=first or prepare, prepare=prepare)
