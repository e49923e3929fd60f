"""The clock on a machine that is busy with other things."""

from dataclasses import replace

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.backends.null import NullBackend, NullLane
from kernelsmith.evaluate.harness import judge
from kernelsmith.evaluate.measure import _Part, _Sample, _slow_parts
from kernelsmith.evaluate.settings import effort

LONG_US = 1e6


class CrowdedLane(NullLane):
    """Asked for nothing, it comes back late: others had the core, or nobody knows who."""

    known = True
    late = frozenset(range(100))
    asked = 0

    def run(self, slots):
        ran = super().run(slots)
        if len(slots):
            return ran
        type(self).asked += 1
        waited = LONG_US if self.known else 0.0
        if type(self).asked % 10 not in self.late:
            return ran
        return replace(ran, elapsed_us=ran.elapsed_us + LONG_US, waited_us=waited)


class Crowded(NullBackend):
    def __init__(self, kind):
        super().__init__()
        self._kind = kind

    def lane(self, name, *, timeout_s, oracle=None):
        del name, timeout_s, oracle
        return self._kind()


def judged(kind):
    task = Task(name="sum", source="x + y")
    candidate = Candidate(backend="null", source="x + y")
    return judge(task, candidate, backend=Crowded(kind), settings=effort("quick", backend="null"))


def test_others_that_kept_the_core_are_not_taken_off_the_samples():
    found = judged(CrowdedLane)
    assert found.timing.speedup.value == pytest.approx(1.0, rel=0.05)


def test_a_few_late_looks_at_nothing_change_no_ratio():
    class Seldom(CrowdedLane):
        known, late = False, frozenset({3, 7})

    assert judged(Seldom).timing.speedup.value == pytest.approx(1.0, rel=0.05)


def test_others_that_keep_the_core_do_not_make_batches_shorter():
    class Kept(NullLane):
        """Seven eighths of the time that it works, others have the core."""

        def run(self, slots):
            ran = super().run(slots)
            if not len(slots):
                return ran
            return replace(ran, elapsed_us=8 * ran.elapsed_us, waited_us=7 * ran.elapsed_us)

    quiet, busy = (judged(kind).timing.workloads[0].launches for kind in (NullLane, Kept))
    assert quiet / 2 < busy < 2 * quiet


def test_where_nothing_takes_longer_than_everything_there_is_no_ratio():
    class Unknown(CrowdedLane):
        known = False

    with pytest.raises(EvaluationLost, match="too busy to time"):
        judged(Unknown)


def a_sample(us):
    return _Sample(disturbance=0.0, baseline_us=us, candidate_us=us, faults=0)


def a_part(us, baseline_us=120.0):
    return _Part(share=0.1, us=us, baseline_us=baseline_us)


@pytest.mark.parametrize(
    ("parts", "accused"),
    [
        ([900.0, 950.0], True),
        ([120.0, 130.0], False),
        ([900.0, 950.0, *[120.0] * 6], False),  # it was the machine's doing
        ([900.0] * 8, True),
        ([900.0] * 5 + [120.0] * 3, False),
        ([900.0], False),
    ],
)
def test_few_launches_that_take_as_long_as_all_accuse_if_most_of_them_do(parts, accused):
    timed = [a_sample(10.0)] * 3
    assert bool(_slow_parts([a_part(us) for us in parts], timed, 100)) is accused


def test_nobody_is_accused_of_a_cold_start_that_the_baseline_has_as_well():
    timed = [a_sample(10.0)] * 3
    assert _slow_parts([a_part(900.0, baseline_us=600.0)] * 8, timed, 100) == []


def test_batches_too_short_for_the_clock_accuse_nobody():
    assert _slow_parts([a_part(300.0)] * 8, [a_sample(10.0)], 30) == []
    assert _slow_parts([a_part(300.0)] * 8, [], 30) == []
