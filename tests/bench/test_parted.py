"""Many tests in parts: put together they say what all of them say."""

import asyncio
from dataclasses import replace

import pytest

from kernelsmith.bench.parted import Parted, put_together
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Label, LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import CallTiming, Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.run.simulated import SimulatedEvaluator

TASK = Task(name="add", source="x + y  # us: 100", entry="expression")
GOOD = Candidate(backend="null", source="y + x  # us: 50")
STOP = StopRule(target_width=0.02, min_pairs=6, max_pairs=25)


def pairs(*ratios):
    return tuple(Pair(baseline_us=(each * 10.0,) * 3, candidate_us=(10.0,) * 3) for each in ratios)


def an_evaluation(*ratios, mode="calls", calls=(), labels=()):
    wide = Ratio(value=2.0, low=1.0, high=4.0)
    call = CallTiming(pairs=pairs(*calls), speedup=wide, launches=1) if calls else None
    timed = WorkloadTiming(
        workload="w",
        pairs=pairs(*ratios),
        speedup=wide,
        launches=1,
        mode=mode,
        call=call,
        dropped=1,
    )
    found = SimulatedEvaluator().judge(TASK, GOOD)
    return replace(found, timing=Timing(workloads=(timed,)), labels=labels)


def test_the_ratio_is_of_all_pairs_and_narrower_than_that_of_a_part():
    parts = [an_evaluation(*(1.99, 2.0, 2.01) * 3) for _ in range(3)]
    whole = put_together(parts, STOP).timing.workloads[0]
    assert (len(whole.pairs), whole.dropped) == (27, 3)
    assert whole.speedup.value == pytest.approx(2.0, rel=1e-3)
    assert whole.speedup.width < put_together(parts[:1], STOP).timing.speedup.width
    assert put_together(parts, STOP) == put_together(parts, STOP)


def test_plain_calls_are_put_together_too():
    parts = [an_evaluation(2.0, 2.0, mode="graph", calls=(3.0, 3.0)) for _ in range(4)]
    whole = put_together(parts, STOP).timing.workloads[0]
    assert len(whole.call.pairs) == 8
    assert whole.call.speedup.value == pytest.approx(3.0)


def test_times_of_another_kind_are_left_out():
    parts = [an_evaluation(2.0, mode="graph"), an_evaluation(9.0, mode="events")]
    whole = put_together(parts, STOP).timing.workloads[0]
    assert (len(whole.pairs), whole.speedup.value) == (1, pytest.approx(2.0))


def test_only_the_whole_can_be_noisy():
    noisy = (Label(name=LabelName.NOISY, reason="a part"), Label(name=LabelName.ROBUST))
    quiet = put_together([an_evaluation(*[2.0] * 5, labels=noisy) for _ in range(2)], STOP)
    assert [each.name for each in quiet.labels] == [LabelName.ROBUST]
    loud = put_together([an_evaluation(1.0, 3.0, 1.0, 3.0, labels=noisy) for _ in range(2)], STOP)
    assert [each.name for each in loud.labels] == [LabelName.ROBUST, LabelName.NOISY]
    assert "wide" in loud.labels[1].reason


class Counting:
    """Passes simulated evaluations on and counts them."""

    def __init__(self):
        self.asked = []

    def of(self, size):
        counting = self

        class One(SimulatedEvaluator):
            async def evaluate(self, task, candidate, *, baseline=None):
                counting.asked.append(size)
                return self.judge(task, candidate, baseline=baseline)

        return One()


def test_parts_add_up_to_what_was_asked_for():
    counting = Counting()
    found = asyncio.run(Parted(25, STOP, counting.of).evaluate(TASK, GOOD))
    assert sorted(counting.asked) == [5, 10, 10]
    assert len(found.timing.workloads[0].pairs) == 3


def test_what_fails_in_its_first_part_is_asked_for_once():
    counting = Counting()
    bad = Candidate(backend="null", source="x - y")
    found = asyncio.run(Parted(100, STOP, counting.of).evaluate(TASK, bad))
    assert found.verdict is Verdict.WRONG
    assert counting.asked == [10]
