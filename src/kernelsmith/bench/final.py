"""The last word on a winner: judged again on fresh inputs, beside every baseline asked for.

``tests`` (the paper takes 100) is the number of fresh pairs of processes, each with weights and
inputs of its own and with outputs checked while it is timed; the paper's number is their mean.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from kernelsmith.bench.compiled import MODES, Compilers, eager
from kernelsmith.bench.parted import Parted
from kernelsmith.bench.record import Beside, WorkloadRatio, mean_ratio
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.domain.timing import Pair, Timing
from kernelsmith.errors import BackendUnavailable, EvaluationLost, UsageError
from kernelsmith.evaluate.evaluator import Elsewhere, Evaluator, LocalEvaluator
from kernelsmith.evaluate.settings import GpuSettings, Settings, effort
from kernelsmith.run.simulated import SimulatedEvaluator

Other = Callable[[str], Timing | str]
"""Measures beside a compiled reference, by mode; a text says why that could not be done."""
_SAME = "it is this baseline itself"
_ALIKE = "two modes of torch.compile are not measured beside each other"
_ALL_NIGHT_S = 1e6
_PART_S = 600.0
"""What a server grants to the sampling of one request."""
_TROUBLE = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Exam:
    """How winners are judged at the end."""

    backend: str
    effort: str = "thorough"
    tests: int = 0
    """Fresh process pairs; 0: as many as ``effort`` needs for a narrow interval."""
    baselines: tuple[str, ...] = ("eager",)
    timeout_s: float = 30.0

    @property
    def settings(self) -> Settings:
        """What that means for the judge."""
        usual = replace(effort(self.effort, self.backend), timeout_s=self.timeout_s)
        if not self.tests:
            return usual
        stop = replace(
            usual.stop, min_pairs=self.tests, max_pairs=self.tests, budget_s=_ALL_NIGHT_S
        )
        # Many short looks instead of a few long ones: it is the pairs that differ.
        return replace(usual, stop=stop, gpu=GpuSettings(samples=5, calls=3))

    @property
    def part(self) -> Settings:
        """The same for a part of the tests, which ends in time."""
        usual = self.settings
        return replace(usual, stop=replace(usual.stop, budget_s=_PART_S))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found: the evaluation to quote, and the ratios."""

    evaluation: Evaluation
    beside: tuple[Beside, ...] = ()


class Examiner:
    """Judges winners; its processes stay open from one to the next."""

    def __init__(
        self, exam: Exam, place: Elsewhere | None = None, *,
        here: type[LocalEvaluator] = LocalEvaluator,
    ) -> None:  # fmt: skip
        """Prepare to judge, here or elsewhere; what was judged before is never taken for it."""
        self.exam = exam
        self._here = here
        self._evaluator: Evaluator | None = None
        if place is not None and exam.tests:
            self._evaluator = Parted(
                exam.tests, exam.settings.stop,
                lambda size: place.evaluator(replace(exam, tests=size).part, fresh=True),
            )  # fmt: skip
        elif place is not None:
            self._evaluator = place.evaluator(exam.settings, fresh=True)
        elif exam.backend == "null":
            self._evaluator = SimulatedEvaluator()
        self._is_here = place is None
        self._plain: LocalEvaluator | None = None
        self._compilers: Compilers | None = None

    async def examine(self, task: Task, candidate: Candidate, known: Evaluation | None) -> Finding:
        """Judge a winner.

        Args:
            task: What it is for.
            candidate: The winner.
            known: What a last judgement as thorough as this one has said; taken, but for tests.

        Raises:
            UsageError: The task cannot be judged.
            EvaluationLost: Our machinery failed.
        """
        found = known
        if found is None or self.exam.tests:
            found = await self._judging().evaluate(task, candidate)
        return self._finding(found, lambda mode: self._beside(task, candidate, mode))

    async def fixed(self, task: Task, kind: str) -> Finding:
        """Judge an entrant that needs no search.

        Raises:
            UsageError: The task cannot be judged, or the entrant not there.
            EvaluationLost: Our machinery failed.
        """
        free = replace(task, library=Library.ANY)
        if kind == "eager":
            candidate = Candidate(backend=self.exam.backend, source=eager(task))
            found = await self._judging().evaluate(free, candidate)
            return self._finding(found, lambda mode: self._beside(free, candidate, mode))
        found = self._opened().judge(task, kind)
        return self._finding(found, lambda mode: _SAME if mode == kind else _ALIKE)

    def close(self) -> None:
        """End every process."""
        for each in (self._plain, self._compilers):
            if each is not None:
                each.close()
        self._plain = self._compilers = None

    def _finding(self, found: Evaluation, other: Other) -> Finding:
        if found.verdict is not Verdict.PASSED:
            return Finding(evaluation=found)
        beside = []
        for name in self.exam.baselines:
            if name in MODES:
                said = other(name)
                beside.append(
                    Beside(baseline=name, trouble=said)
                    if isinstance(said, str)
                    else beside_of(name, said)
                )
            else:
                beside.append(beside_of(name, found.timing))
        return Finding(evaluation=found, beside=tuple(beside))

    def _beside(self, task: Task, candidate: Candidate, mode: str) -> Timing | str:
        try:
            found = self._opened().judge_beside(task, candidate, mode)
        except (UsageError, BackendUnavailable, EvaluationLost) as error:
            return f"not measured: {error}"[:_TROUBLE]
        if found.timing is None:
            return f"{found.verdict.value} beside it: {found.message}"[:_TROUBLE]
        return found.timing

    def _judging(self) -> Evaluator:
        if self._evaluator is not None:
            return self._evaluator
        if self._plain is None:
            self._plain = self._here(self.exam.backend, self.exam.settings)
        return self._plain

    def _opened(self) -> Compilers:
        if not self._is_here:
            raise UsageError("torch.compile is judged on this machine only, not by an evaluator")
        if self._compilers is None:
            self._compilers = Compilers(self.exam.backend, self.exam.settings)
        return self._compilers


def beside_of(baseline: str, timing: Timing | None) -> Beside:
    """What a timing says about one baseline; graphs are what a device's own ratio stands for."""
    if timing is None:
        return Beside(baseline=baseline, trouble="nothing is timed on this machine")
    if baseline == "graph" and any(each.mode != "graph" for each in timing.workloads):
        where = "no graph was captured" if timing.call is not None else "a processor has no graphs"
        return Beside(baseline=baseline, trouble=where)
    in_graphs = baseline == "graph"
    tests = _tests(timing, in_graphs=in_graphs)
    return Beside(
        baseline=baseline,
        device=timing.speedup,
        call=None if in_graphs else timing.call,
        mean=mean_ratio(tests),
        tests=len(tests),
        workloads=tuple(
            WorkloadRatio(
                workload=each.workload, speedup=each.speedup, mode=each.mode,
                call=each.call.speedup if each.call is not None and not in_graphs else None,
                us=_rounded(each.median_us), baseline_us=_rounded(each.baseline_us),
            )
            for each in timing.workloads
        ),
    )  # fmt: skip


def _rounded(us: float) -> float:
    """To a tenth of a nanosecond; what is shorter stays what it is, since no launch takes 0."""
    return round(us, 4) or us


def _tests(timing: Timing, *, in_graphs: bool) -> tuple[float, ...]:
    """One ratio for each fresh pair of processes, of plain calls; the mean over workloads."""
    each: list[Sequence[Pair]] = [
        timed.call.pairs if timed.call is not None and not in_graphs else timed.pairs
        for timed in timing.workloads
    ]
    return tuple(
        statistics.geometric_mean([pairs[index].ratio for pairs in each])
        for index in range(min(map(len, each)))
    )
