"""Which processes of a judgement are fresh, and which stay: at a glance, beside other judges."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.insert(0, str(Path(__file__).parent / "cuda"))

from stand_ins import TASK, Reference

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Weights
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lanes import Lanes
from kernelsmith.evaluate.settings import effort
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.evaluate.values import State

CANDIDATE = Candidate(backend="triton", source="# a source")
THRICE = StopRule(target_width=0.1, min_pairs=3, max_pairs=3)


class Program(DeviceLane):
    """Notes what is done with it."""

    prepares = False

    def __init__(self, name):
        self.name, self.done, self.fails = name, [], False

    def load(self, source, entry, setup, *, function):
        self.source = source
        self.done.append("loaded")

    def state_mismatch(self, state):
        return None

    def detach(self):
        self.done.append("detached")

    def rest(self):
        if self.fails:
            raise ProgramFailed(Verdict.CRASHED, "it died")
        self.done.append("rests")

    def weights(self, state, *, first, prepare=False):
        if self.fails:
            raise ProgramFailed(Verdict.CRASHED, "it died")
        self.done.append("its first weights" if first else "other weights")

    def close(self):
        self.done.append("closed")


class Device:
    """Opens programs; may be shared with other judges."""

    timed = True

    def __init__(self):
        self.opened = []

    def staying(self, oracle):
        raise AssertionError("nobody judges here")

    def lane(self, name, *, timeout_s, oracle):
        self.opened.append(Program(name))
        return self.opened[-1]


def some_lanes(*, level="glance", alone=True, task=TASK, device=None, **changes):
    oracle = Reference()
    if alone:
        oracle.alone = {("default", "a source", True): 100.0}
    settings = replace(effort(level, backend="triton"), **changes)
    return Lanes(device or Device(), oracle, task, settings)


def a_setup(**changes):
    return replace(Reference().workload(TASK.workloads[0], 1), **changes)


OTHERWISE = [
    {"level": "usual"},
    {"level": "thorough"},
    {"task": replace(TASK, weights=Weights.SEED)},
    {"task": replace(TASK, workloads=(*TASK.workloads, replace(TASK.workloads[0], name="b")))},
    {"device": SimpleNamespace(timed=True, lane=lambda name, **_: Program(name))},
]


def test_who_was_checked_is_timed_first_and_the_next_pair_has_a_process_of_its_own():
    lanes = some_lanes()
    checked = lanes.candidate(CANDIDATE, a_setup())
    assert lanes.stays(checked)
    assert lanes.to_time(CANDIDATE, a_setup()) is checked
    assert checked.done == ["loaded", "its first weights", "detached", "other weights"]
    assert lanes.to_time(CANDIDATE, a_setup()) is not checked
    lanes.close()
    assert "closed" not in checked.done  # whoever times it closes it


def test_who_was_checked_and_is_never_timed_is_closed_once():
    lanes = some_lanes()
    checked = lanes.candidate(CANDIDATE, a_setup())
    assert lanes.stays(checked)
    lanes.end_checked()
    lanes.close()
    assert checked.done[2:] == ["detached", "closed"]


def test_who_does_not_take_other_weights_is_closed():
    lanes = some_lanes()
    checked = lanes.candidate(CANDIDATE, a_setup())
    assert lanes.stays(checked)
    checked.fails = True
    with pytest.raises(ProgramFailed):
        lanes.to_time(CANDIDATE, a_setup())
    assert checked.done[-1] == "closed"


@pytest.mark.parametrize("changes", [{"alone": False}, *OTHERWISE])
def test_elsewhere_what_is_timed_was_never_checked(changes):
    lanes = some_lanes(**changes)
    checked = lanes.candidate(CANDIDATE, a_setup())
    assert not lanes.stays(checked)
    assert lanes.to_time(CANDIDATE, a_setup()) is not checked


def test_a_baseline_waits_for_the_next_candidate_and_takes_other_weights():
    lanes = some_lanes()
    baseline = lanes.opener_of_baseline(None)(a_setup())
    assert lanes.keeping["keep_baseline"](baseline)
    assert lanes.opener_of_baseline(None)(a_setup()) is baseline
    assert baseline.done == ["loaded", "its first weights", "rests", "other weights"]
    assert lanes.keeping["keep_baseline"](baseline)
    lanes.close()
    lanes.close()
    assert baseline.done.count("closed") == 1


def test_another_baseline_does_not_find_the_one_that_waits():
    lanes = some_lanes()
    eager = lanes.opener_of_baseline(None)(a_setup())
    assert lanes.keeping["keep_baseline"](eager)
    other = lanes.opener_of_baseline(CANDIDATE)(a_setup())
    assert other.source == CANDIDATE.source
    assert eager.done[-1] == "closed"


def test_a_baseline_of_many_weights_does_not_wait():
    leaf = SimpleNamespace(spec=SimpleNamespace(span_bytes=65 << 20))
    lanes = some_lanes()
    baseline = lanes.opener_of_baseline(None)(a_setup(state=State(keys=("w",), leaves=(leaf,))))
    assert not lanes.keeping["keep_baseline"](baseline)


def test_a_baseline_that_dies_while_it_waits_is_closed_and_another_one_is_opened():
    lanes = some_lanes()
    baseline = lanes.opener_of_baseline(None)(a_setup())
    assert lanes.keeping["keep_baseline"](baseline)
    baseline.fails = True
    other = lanes.opener_of_baseline(None)(a_setup())
    assert other is not baseline
    assert baseline.done[-1] == "closed"
    other.fails = True
    assert not lanes.keeping["keep_baseline"](other)


def test_a_baseline_that_does_not_open_is_the_tasks_fault():
    def broken(name, **_):
        raise ProgramFailed(Verdict.CRASHED, "no such module")

    device = Device()
    device.lane = broken
    with pytest.raises(UsageError, match="the baseline fails: no such module"):
        some_lanes(device=device).opener_of_baseline(None)(a_setup())


def test_where_pairs_are_to_be_fresh_no_baseline_waits():
    lanes = some_lanes(stop=THRICE)
    baseline = lanes.opener_of_baseline(None)(a_setup())
    assert not lanes.keeping["keep_baseline"](baseline)


@pytest.mark.parametrize("changes", OTHERWISE)
def test_elsewhere_no_stopwatch_is_told_of_waiting(changes):
    assert some_lanes(**changes).keeping == {}
