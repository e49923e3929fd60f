"""The order in which a pair is measured: who is there, and who else may be."""

import itertools
import random
import threading
from dataclasses import replace

import pytest
from stand_ins import TASK, Program, Reference, a_device

from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cuda import batches, stopwatch
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.watch import Watched


@pytest.fixture
def measured(monkeypatch, tmp_path):
    """Time a candidate that takes half as long as the baseline."""
    monkeypatch.setattr(batches.SpotCheck, "__call__", lambda *_, **__: None)
    monkeypatch.setattr(batches, "furthest", lambda *_: None)

    def run(*, alone=False, level="glance", us=100.0, known=None, keep=None, late=(), **changes):
        backend, watch = a_device(tmp_path)
        oracle, numbers = known or Reference(), itertools.count()
        late = iter(late)
        settings = replace(effort(level, backend="triton"), **changes)
        with backend.staying(oracle, alone=alone):
            clock = stopwatch.DeviceStopwatch(
                backend, oracle, TASK, TASK.workloads[0],
                open_baseline=lambda _: Program("baseline", us, watch),
                open_candidate=lambda _: Program(
                    "candidate", us / 2, watch, late_us=next(late, 0.0)
                ),
                settings=settings, draw=lambda: next(numbers), rng=random.Random(1),
                watched=Watched(), **({} if keep is None else {"keep_baseline": keep}),
            )  # fmt: skip
            return clock.measure(), watch

    return run


def test_whatever_is_timed_is_timed_alone(measured):
    found, watch = measured()
    assert found.timing.speedup.value == pytest.approx(2.0)
    assert watch.where("baseline is timed") == watch.where("candidate is timed") == {"alone"}
    assert watch.where("candidate is looked at") == {"alone"}


def test_both_sides_are_opened_and_called_once_beside_others(measured):
    _, watch = measured()
    assert watch.where("baseline opens") == watch.where("candidate opens") == {"beside"}
    for side in ("baseline", "candidate"):
        calls = [how for name, how in watch.seen if name == f"{side} runs"]
        assert calls[0] == "beside"
        assert set(calls[1:]) == {"alone"}


def test_a_batch_of_few_launches_is_captured_beside_others(measured):
    _, watch = measured(us=5000.0)
    assert watch.where("candidate is captured") == {"beside"}
    assert watch.where("candidate is timed") == {"alone"}
    _, watch = measured()  # of many launches, some are timed by themselves first
    assert watch.where("candidate is captured") == {"alone"}


def test_at_a_glance_the_baseline_is_timed_without_a_candidate_once_a_task(measured):
    oracle = Reference()
    _, watch = measured(known=oracle)
    assert watch.first("baseline is timed") < watch.first("candidate opens")
    found, watch = measured(known=oracle)
    assert found.timing.speedup.value == pytest.approx(2.0)
    assert watch.first("baseline is timed") > watch.first("candidate opens")
    _, watch = measured(known=oracle, level="usual")
    assert watch.first("baseline is timed") < watch.first("candidate opens")


def test_a_pair_that_does_not_fit_to_what_is_remembered_is_measured_again_in_full(measured):
    oracle = Reference()
    measured(known=oracle)
    oracle.alone = dict.fromkeys(oracle.alone, 70.0)
    found, watch = measured(known=oracle)
    assert found.timing.speedup.value == pytest.approx(2.0)
    assert list(oracle.alone.values()) == [100.0]
    assert sum(name == "candidate opens" for name, _ in watch.seen) == 2


def test_one_whose_answers_come_late_beside_others_is_timed_in_another_process(measured):
    found, watch = measured(late=[600.0])
    assert found.timing.speedup.value == pytest.approx(2.0)
    assert sum(name == "candidate opens" for name, _ in watch.seen) == 2
    assert len(found.timing.pairs) == 1
    with pytest.raises(ProgramFailed, match="tampers with the clock"):
        measured(late=[600.0, 600.0])
    with pytest.raises(ProgramFailed, match="tampers with the clock"):
        measured(late=[600.0], alone=True)  # nobody else was there to keep it waiting


def test_whoever_keeps_a_baseline_has_it_when_its_pair_is_done(measured):
    kept = []
    _, watch = measured(keep=lambda lane: not kept.append(lane))
    assert [each.name for each in kept] == ["baseline"]
    assert watch.where("baseline ends") == set()
    assert watch.seen[-1] == ("candidate ends", "beside")
    _, watch = measured(keep=lambda lane: False)
    assert watch.where("baseline ends") == {"beside"}
    _, watch = measured(alone=True, keep=kept.append)
    assert len(kept) == 1  # where there are no others, nobody is asked


def test_entrants_of_our_own_are_not_asked_for_their_kernels(measured):
    _, watch = measured(kernels=False)
    assert watch.where("candidate is looked at") == set()


def test_the_baseline_is_timed_before_there_is_a_candidate(measured):
    _, watch = measured()
    assert watch.first("baseline is timed") < watch.first("candidate opens")
    assert watch.seen[-2:] == [("candidate ends", "beside"), ("baseline ends", "beside")]


def test_without_room_for_others_everything_happens_alone(measured):
    found, watch = measured(alone=True)
    assert found.timing.speedup.value == pytest.approx(2.0)
    assert {how for _, how in watch.seen} == {"alone"}
    assert "candidate runs" in dict(watch.seen)


def test_a_champion_gets_new_processes_for_every_pair(measured):
    found, watch = measured(level="thorough")
    opened = sum(name == "candidate opens" for name, _ in watch.seen)
    assert opened == len(found.timing.pairs) >= 4


def test_three_judges_share_one_device_and_all_come_to_an_end(measured):
    found = []
    judges = [threading.Thread(target=lambda: found.append(measured())) for _ in range(3)]
    for each in judges:
        each.start()
    for each in judges:
        each.join(60)
    assert len(found) == 3
    for each, watch in found:
        assert each.timing.speedup.value == pytest.approx(2.0)
        assert watch.where("candidate is timed") == {"alone"}


def test_a_twin_that_does_not_open_leaves_no_process_behind(tmp_path):
    backend, watch = a_device(tmp_path)
    numbers, opened = itertools.count(), []

    def open_baseline(_):
        if opened:
            raise UsageError("the baseline fails: CUDA out of memory")
        opened.append(Program("baseline", 100.0, watch))
        return opened[0]

    oracle = Reference()
    with backend.staying(oracle):
        clock = stopwatch.DeviceStopwatch(
            backend, oracle, TASK, TASK.workloads[0], open_baseline=open_baseline,
            open_candidate=open_baseline, settings=effort("glance", backend="triton"),
            draw=lambda: next(numbers), rng=random.Random(1), watched=Watched(),
        )  # fmt: skip
        with pytest.raises(UsageError):
            clock._twins()
    assert [name for name, _ in watch.seen] == ["baseline opens", "baseline ends"]


def test_twins_say_what_taking_turns_costs_and_end(monkeypatch, tmp_path):
    monkeypatch.setattr(batches.SpotCheck, "__call__", lambda *_, **__: None)
    monkeypatch.setattr(batches, "furthest", lambda *_: None)
    backend, watch = a_device(tmp_path)
    oracle, numbers = Reference(), itertools.count()
    with backend.staying(oracle):
        clock = stopwatch.DeviceStopwatch(
            backend, oracle, TASK, TASK.workloads[0],
            open_baseline=lambda _: Program("baseline", 100.0, watch),
            open_candidate=lambda _: Program("candidate", 50.0, watch),
            settings=effort("glance", backend="triton"), draw=lambda: next(numbers),
            rng=random.Random(1), watched=Watched(),
        )  # fmt: skip
        clock._count, evidence = 4, clock._evidence
        assert clock._twins() == pytest.approx(100.0)
        assert clock._evidence is evidence  # what twins do is held against nobody
    assert watch.seen[-2:] == [("baseline ends", "alone")] * 2
    assert watch.where("baseline is timed") == {"alone"}
