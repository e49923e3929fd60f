"""What a candidate's process says is read as a claim: numbers in range, or it crashed."""

import os
import subprocess
import sys
from collections import OrderedDict

import pytest
from stand_ins import TASK, Reference, a_device

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.builder import BuildFailed
from kernelsmith.evaluate.cuda.lane import (
    DeviceLane,
    NoBuilder,
    _as_new,
    _children,
    _kernel,
    _number,
    _whole,
)
from kernelsmith.evaluate.cuda.turns import Turns
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.lane import NONSENSE
from kernelsmith.evaluate.spent import Spent
from kernelsmith.evaluate.values import Launches
from kernelsmith.kernels import BuildRequest


def a_claim(**changes: object) -> dict[str, object]:
    """One kernel as an honest process describes it."""
    usual = {
        "name": "softmax_kernel", "own": True, "launches": 1.0, "share": 1.0, "us": 3.9,
        "registers": 40, "spills": 0, "shared_bytes": 1024, "grid": [1024, 1, 1],
        "block": [128, 1, 1], "precision": "float32", "config": "num_warps=4; num_stages=3",
    }  # fmt: skip
    return {**usual, **changes}


@pytest.mark.parametrize("value", [0, 3, 2.5, 1e9])
def test_a_time_is_a_number(value):
    assert _number(value) == value


@pytest.mark.parametrize(
    "value", [None, "3", -1, -1e-9, float("nan"), float("inf"), 1e12, [1], {"us": 1}]
)
def test_a_time_that_is_none_is_a_crash(value):
    with pytest.raises(ProgramFailed, match="answered nonsense") as raised:
        _number(value)
    assert raised.value.verdict is Verdict.CRASHED


@pytest.mark.parametrize("value", [None, 1.5, "7", -1, [0]])
def test_an_address_is_a_whole_number(value):
    assert _whole(0x7F00_0000_0000) == 0x7F00_0000_0000
    with pytest.raises(ProgramFailed, match="answered nonsense"):
        _whole(value)


def test_words_of_any_length_become_a_short_message():
    with pytest.raises(ProgramFailed) as raised:
        _number("x" * 1_000_000)
    assert len(raised.value.message) < 300


def test_a_kernel_is_taken_as_it_was_said():
    kernel, us = _kernel(a_claim())
    assert (kernel.name, kernel.own, kernel.launches, us) == ("softmax_kernel", True, 1, 3.9)
    assert (kernel.registers, kernel.grid) == (40, (1024, 1, 1))


def test_what_a_copy_does_not_have_is_not_there():
    claim = a_claim(name="memcpy", own=False, registers=None, spills=None, shared_bytes=None)
    kernel, _ = _kernel(claim)
    assert (kernel.registers, kernel.spills, kernel.shared_bytes) == (None, None, None)


def test_shares_times_and_names_are_kept_within_reason():
    kernel, us = _kernel(a_claim(name="k" * 9999, share=17.0, us=-4.0, launches=0.2))
    assert (len(kernel.name), kernel.share, us, kernel.launches) == (200, 1.0, 0.0, 1)


@pytest.mark.parametrize(
    "changes",
    [{"name": ""}, {"share": "much"}, {"grid": 5}, {"registers": -1}, {"us": None},
     {"launches": "NaN"}],
)  # fmt: skip
def test_a_kernel_that_cannot_be_is_an_error_that_the_lane_expects(changes):
    with pytest.raises(NONSENSE):
        _kernel(a_claim(**changes))


@pytest.mark.parametrize("us", [float("nan"), float("inf")])
def test_a_kernels_time_is_a_number_too(us):
    with pytest.raises((*NONSENSE, ProgramFailed)):
        _kernel(a_claim(us=us))


def test_a_kernel_with_a_field_missing_is_one_too():
    claim = a_claim()
    del claim["block"]
    with pytest.raises(NONSENSE):
        _kernel(claim)


def test_memory_new_to_the_judge_marks_a_batch_whose_time_does_not_count():
    launches = Launches(
        elapsed_us=10.0, waited_us=0.0, event_us=8.0, tree={"t": 0}, specs=(), addresses=((1,),)
    )
    found = _as_new(launches)
    assert found.faults > launches.faults
    assert (found.event_us, found.addresses) == (8.0, ((1,),))


def test_processes_that_it_started_are_seen_from_outside():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as helper:
        assert helper.pid in list(_children(os.getpid()))
        helper.communicate(b"\n")
    assert helper.pid not in list(_children(os.getpid()))


def test_a_process_that_is_gone_is_lost_and_not_innocent():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with pytest.raises(EvaluationLost, match="the process is gone"):
        list(_children(gone.pid))


def test_cpp_is_for_another_backend():
    with pytest.raises(BuildFailed, match=r"no C\+\+ \(fast\); write a Triton kernel"):
        NoBuilder().build(BuildRequest(kind="cpp", source="", name="fast"))


class Remembering(DeviceLane):
    """A program whose process says where its module lies, and no more."""

    def __init__(self, oracle):
        self._oracle, self._view, self._state = oracle, object(), {}
        self._segments = {0x1000: (256, "outputs"), 0x2000: (128, "weights before")}

    def _ask(self, message, fds=()):
        assert message == {"do": "rest"}
        return {"segments": [[0x2000, 128, "weights"]]}

    def _note_state(self, described):
        assert described is None


class Told(DeviceLane):
    """A program that notes what it is told of its memory."""

    def __init__(self, oracle):
        self._oracle, self._template, self._settled = oracle, None, OrderedDict()
        self._view, self.shares = None, []

    def _load(self, source, entry, setup, *, function, more):
        self.shares.append(more["memory"])

    def _ask(self, message, fds=()):
        self.shares.append(message["memory"])
        return {"arena": 0, "size": 0}


@pytest.mark.parametrize("beside", [True, False])
def test_a_side_that_is_timed_hears_how_much_memory_it_may_take(tmp_path, beside):
    backend, _ = a_device(tmp_path)
    oracle = Reference(rooms=2)
    sides = Told(oracle), Told(oracle)
    with backend.staying(oracle, alone=not beside), Turns(backend, oracle, Spent()):
        for each in sides:
            each.load("a source", "Model", oracle.workload(TASK.workloads[0], 1), function=False)
            each.attach(oracle.arrange([]))
    most = pytest.approx(1 / 4 + 1 / 32)
    assert sides[0].shares == sides[1].shares == ([most, most] if beside else [None, 1.0])


class Mapping:
    """Notes what is mapped of a program's memory."""

    is_open = True

    def __init__(self):
        self.mapped = ["outputs", "weights before"]

    def map(self, handle):
        self.mapped.append(handle)
        return 128

    def unmap(self, handles):
        self.mapped = [each for each in self.mapped if each not in handles]


def test_a_program_that_rests_is_known_by_its_module_alone():
    oracle = Mapping()
    lane = Remembering(oracle)
    lane.rest()
    assert oracle.mapped == ["weights"]
    assert lane._segment_of(0x2010) == (0x2000, "weights")
    assert lane._segment_of(0x1010) is None
    lane.detach()  # there is no arena to let go of
