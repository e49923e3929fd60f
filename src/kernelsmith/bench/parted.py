"""Many tests at an evaluator: asked for in parts, side by side, and put together again.

An evaluator holds a device for one request for minutes at most, and has several devices. Tests are
independent of each other, so a hundred of them are ten requests of ten.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation, Label, LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import CallTiming, Timing, WorkloadTiming
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.evaluate.timing.statistics import speedup

PART = 10
"""Tests of one request: some minutes of a processor, half a minute of a GPU."""


class Parted:
    """An evaluator that takes as many tests as are wanted."""

    def __init__(self, tests: int, stop: StopRule, evaluator: Callable[[int], Evaluator]) -> None:
        """Nothing is asked yet.

        Args:
            tests: Fresh pairs of processes in all.
            stop: What the whole must reach not to be called noisy.
            evaluator: Gives one that takes so many.
        """
        self._tests, self._stop = tests, stop
        self._evaluator = {size: evaluator(size) for size in _sizes(tests)}

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Ask for one part; where it passes, for the others at once. What fails is the answer."""
        sizes = _sizes(self._tests)

        async def part(size: int) -> Evaluation:
            return await self._evaluator[size].evaluate(task, candidate, baseline=baseline)

        found = [await part(sizes[0])]
        if found[0].timing is not None:
            found += await asyncio.gather(*(part(size) for size in sizes[1:]))
        failed = next((each for each in found if each.verdict is not Verdict.PASSED), None)
        return failed or put_together(found, self._stop)


def _sizes(tests: int) -> list[int]:
    whole, rest = divmod(tests, PART)
    return [PART] * whole + ([rest] if rest else [])


def put_together(parts: Sequence[Evaluation], stop: StopRule) -> Evaluation:
    """One evaluation of parts that all passed: their pairs together, and the ratio of these."""
    first = parts[0]
    if first.timing is None:
        return first
    timings = [each.timing for each in parts if each.timing is not None]
    generator = np.random.default_rng(int(first.candidate, 16))
    workloads = tuple(
        _workload([timing.workloads[index] for timing in timings], generator)
        for index in range(len(first.timing.workloads))
    )
    labels = [label for label in first.labels if label.name is not LabelName.NOISY]
    for each in workloads:
        if stop.noisy(each.speedup, each.pairs):
            said = f"{each.workload}: the interval is {each.speedup.width:.1%} wide"
            labels.append(Label(name=LabelName.NOISY, reason=said))
            break
    timing = Timing(workloads=workloads, baseline=first.timing.baseline)
    return replace(first, timing=timing, labels=tuple(labels))


def _workload(parts: Sequence[WorkloadTiming], generator: np.random.Generator) -> WorkloadTiming:
    first = parts[0]
    # Where one part could not be captured, its times are of another kind.
    alike = [each for each in parts if each.mode == first.mode]
    pairs = tuple(pair for each in alike for pair in each.pairs)
    call = first.call
    if call is not None:
        calls = tuple(p for each in alike if each.call is not None for p in each.call.pairs)
        ratio = speedup(calls, generator=generator)
        call = CallTiming(pairs=calls, speedup=ratio, launches=call.launches)
    return replace(
        first, pairs=pairs, speedup=speedup(pairs, generator=generator), call=call,
        dropped=sum(each.dropped for each in alike),
    )  # fmt: skip
