"""The last word on a winner: which numbers become which ratio."""

import asyncio

import pytest

from kernelsmith.bench.final import Exam, Examiner, beside_of
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import CallTiming, Pair, Ratio, Timing, WorkloadTiming

TASK = Task(name="add", source="x + y  # us: 100", entry="expression")


def pairs(*ratios):
    return tuple(Pair(baseline_us=(each * 10.0,), candidate_us=(10.0,)) for each in ratios)


def timed(*ratios, calls=(), name="w", mode="calls"):
    call = None
    if calls:
        call = CallTiming(pairs=pairs(*calls), speedup=wide(calls), launches=1)
    return WorkloadTiming(
        workload=name, pairs=pairs(*ratios), speedup=wide(ratios), launches=1, call=call, mode=mode
    )


def wide(ratios):
    return Ratio(value=sum(ratios) / len(ratios), low=min(ratios), high=max(ratios))


def test_the_mean_is_over_fresh_pairs_of_plain_calls():
    found = beside_of("eager", Timing(workloads=(timed(4.0, 4.0, calls=(2.0, 3.0), mode="graph"),)))
    assert found.mean.value == pytest.approx(2.5)
    assert (found.device.value, found.call.value, found.tests) == (4.0, 2.5, 2)
    assert found.workloads[0].mode == "graph"


def test_over_workloads_each_test_is_a_geometric_mean():
    both = Timing(workloads=(timed(1.0, 1.0, name="a"), timed(4.0, 4.0, 4.0, name="b")))
    found = beside_of("eager", both)
    assert found.mean.value == pytest.approx(2.0)
    assert found.tests == 2


def test_a_graph_baseline_is_the_devices_own_ratio():
    on_gpu = Timing(workloads=(timed(4.0, 4.0, calls=(2.0, 3.0), mode="graph"),))
    found = beside_of("graph", on_gpu)
    assert (found.device.value, found.call, found.mean.value) == (4.0, None, 4.0)


def test_where_there_are_no_graphs_that_is_said():
    assert (
        beside_of("graph", Timing(workloads=(timed(2.0),))).trouble == "a processor has no graphs"
    )
    without = Timing(workloads=(timed(2.0, calls=(2.0,), mode="events"),))
    assert beside_of("graph", without).trouble == "no graph was captured"


def test_what_is_not_timed_has_no_ratio():
    assert "nothing is timed" in beside_of("eager", None).trouble


def test_tests_are_fresh_pairs_without_a_limit_on_time():
    settings = Exam(backend="cpu", tests=100).settings
    assert (settings.stop.min_pairs, settings.stop.max_pairs) == (100, 100)
    assert settings.stop.budget_s > 86400
    assert Exam(backend="cpu", effort="quick").settings.stop.max_pairs == 1


def test_a_judgement_as_thorough_as_this_one_is_not_made_again():
    examiner = Examiner(Exam(backend="null"))
    candidate = Candidate(backend="null", source="y + x  # us: 50")
    known = asyncio.run(examiner.examine(TASK, candidate, None)).evaluation
    other = Examiner(Exam(backend="null", tests=2))
    assert asyncio.run(examiner.examine(TASK, candidate, known)).evaluation is known
    assert asyncio.run(other.examine(TASK, candidate, known)).evaluation is not known


def test_a_winner_that_fails_at_the_end_has_no_ratio():
    candidate = Candidate(backend="null", source="x - y")
    found = asyncio.run(Examiner(Exam(backend="null")).examine(TASK, candidate, None))
    assert found.evaluation.verdict is Verdict.WRONG
    assert found.beside == ()
