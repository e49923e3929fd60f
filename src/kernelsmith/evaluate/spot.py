"""Outputs of timed launches, compared at places chosen only after the launches."""

import random
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backend import Lane, Oracle
from kernelsmith.evaluate.checks.randomness import alarm_threshold, worst_z
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.outcome import Examiner, Trial
from kernelsmith.evaluate.tensors import Float64
from kernelsmith.evaluate.trials import plain_outputs, with_scores
from kernelsmith.evaluate.values import InputSet, Launches

_SLACK = 2.0
"""Precision was judged before timing; timing looks at many more rows, and the worst of ten thousand
honest ones lies further out than the worst of a thousand. What it looks for is missing work."""
_RANDOM_CHECKS = 12
"""Launches of each timed sample of a random task that are compared."""


class SpotCheck:
    """Knows one workload's reference well enough to check any launch of any batch."""

    def __init__(
        self, oracle: Oracle, task: Task, *, checks: int, rng: random.Random,
        elsewhere: Mapping[str, float] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """``elsewhere`` is how far off eager is, by output, in processes like the candidate's."""
        self._oracle, self._task = oracle, task
        self._checks, self._rng = checks, rng
        self._eager = dict(elsewhere)
        self._rows: list[tuple[Float64, Float64]] = []
        self.is_random = False
        self.is_stateful = False
        """Whether the reference changes buffers, so that a launch may depend on earlier ones."""
        self.is_restored = False
        """In that case, whether both sides start every batch from the same buffers."""

    def __call__(
        self, lane: Lane, launches: Launches, sets: Sequence[InputSet], order: Sequence[int],
        *, suspects: Sequence[int] = (), among: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """Compare some launches of the batch just run on ``order`` of ``sets``.

        ``suspects`` are compared whatever chance says; chance picks ``among`` some, or all.

        Raises:
            ProgramFailed: One of them is wrong.
        """
        if self.is_random:
            self._compare_distributions(lane, launches, sets, order)
            return
        if self.is_stateful and not self.is_restored:
            return  # buffers without common names cannot be put back: nobody knows what is right
        open_to = range(len(order)) if among is None else among
        drawn = self._rng.sample(open_to, min(self._checks, len(open_to)))
        chosen = list(dict.fromkeys([*suspects, *drawn]))
        before: list[InputSet] = []
        if self.is_stateful:
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
                raise failed.said(
                    f"right when checked, wrong in launch {index} of {len(order)} of a timed "
                    f"batch: {failed.message}"
                ) from failed

    def _compare_distributions(
        self, lane: Lane, launches: Launches, sets: Sequence[InputSet], order: Sequence[int]
    ) -> None:
        """A random output says little alone: compare distributions over all timed launches."""
        for index in self._rng.sample(range(len(order)), min(_RANDOM_CHECKS, len(order))):
            answers = self._oracle.answers([sets[order[index]]], nudges=0)[0]
            tensors = plain_outputs(lane, launches, index, answers)
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
