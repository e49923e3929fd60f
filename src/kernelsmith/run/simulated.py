"""An evaluator for null candidates that gives the same verdict every time, in microseconds.

The judge draws its seeds where nobody can guess them, so two runs of it never agree to the last
digit. A run with the null backend must: it is how search, journal and resume are tested and timed.
"""

import functools
import hashlib
import random

import numpy as np

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.null import Expression, NoValue

JUDGE = "simulated/1"
DEVICE = Device(kind="null", name="simulated clock")
_SAMPLES = 5
_NOISE = 0.002


class SimulatedEvaluator:
    """Evaluates expressions on a few vectors and makes up their times, from ``# us:`` comments."""

    def __init__(self) -> None:
        self._references: dict[str, tuple[Expression, dict[str, np.ndarray], np.ndarray]] = {}

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Judge at once."""
        return self.judge(task, candidate, baseline=baseline)

    def judge(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """The same without a loop."""
        if candidate.backend != "null":
            raise UsageError(f"the simulated judge knows null candidates, not {candidate.backend}")
        reference, inputs, right = self._reference(task)
        beside = reference if baseline is None else _expression(baseline.source)
        timing: Timing | None = None
        verdict, message = Verdict.PASSED, ""
        try:
            expression = _expression(candidate.source)
            if unknown := sorted(set(expression.inputs) - set(inputs)):
                raise SyntaxError(f"no input {', '.join(unknown)}")
            if _is_close(expression(inputs), right):
                draw = random.Random(_seed(task, candidate, baseline))
                named = "eager" if baseline is None else f"candidate {baseline.id}"
                workloads = [each for each in task.workloads if not each.held_out]
                timing = Timing(
                    workloads=tuple(
                        _timed(each, beside.cost_us, expression.cost_us, draw) for each in workloads
                    ),
                    baseline=named,
                )
            else:
                verdict, message = Verdict.WRONG, "the outputs differ"
        except SyntaxError as error:
            verdict, message = Verdict.BUILD_FAILED, f"line 1: {error.msg}"
        except NoValue as error:
            verdict, message = Verdict.CRASHED, str(error)
        return Evaluation(
            task=task.name,
            candidate=candidate.id,
            device=DEVICE,
            verdict=verdict,
            timing=timing,
            message=message,
            judge=JUDGE,
        )

    def _reference(self, task: Task) -> tuple[Expression, dict[str, np.ndarray], np.ndarray]:
        if task.source not in self._references:
            try:
                expression = _expression(task.source)
            except SyntaxError as error:
                raise UsageError(
                    f"task {task.name!r} is no null expression: {error.msg}"
                ) from error
            rng = np.random.default_rng(0)
            inputs = {name: rng.normal(size=32) for name in expression.inputs}
            try:
                self._references[task.source] = expression, inputs, expression(inputs)
            except NoValue as error:
                raise UsageError(f"task {task.name!r} has no value: {error}") from error
        return self._references[task.source]


@functools.lru_cache(maxsize=1024)
def _expression(source: str) -> Expression:
    return Expression(source)


def _is_close(found: np.ndarray, right: np.ndarray) -> bool:
    if found.shape != right.shape:
        return False
    return bool((np.abs(found - right) <= 1e-5 + 1e-4 * np.abs(right)).all())


def _seed(task: Task, candidate: Candidate, baseline: Candidate | None) -> bytes:
    beside = "" if baseline is None else baseline.id
    return hashlib.sha256(f"{task.name} {candidate.id} {beside}".encode()).digest()


def _timed(
    workload: Workload, baseline_us: float, candidate_us: float, draw: random.Random
) -> WorkloadTiming:
    pair = Pair(
        baseline_us=tuple(_sample(baseline_us, draw) for _ in range(_SAMPLES)),
        candidate_us=tuple(_sample(candidate_us, draw) for _ in range(_SAMPLES)),
    )
    ratio = pair.ratio
    return WorkloadTiming(
        workload=workload.name,
        pairs=(pair,),
        speedup=Ratio(value=ratio, low=ratio * (1 - _NOISE), high=ratio * (1 + _NOISE)),
        launches=1,
    )


def _sample(us: float, draw: random.Random) -> float:
    return round(max(us, 0.001) * (1 + _NOISE * draw.random()), 6)
