"""Values that cannot be built wrong."""

import dataclasses
from pathlib import Path

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import VERSION, dumps, loads
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import (
    Accuracy,
    Coverage,
    Evaluation,
    Kernel,
    Label,
    LabelName,
    Roofline,
    Verdict,
)
from kernelsmith.domain.task import Library, Task, Tolerance, Weights, Workload
from kernelsmith.domain.timing import CallTiming, Pair, Ratio, Timing, WorkloadTiming

DEVICE = Device(kind="null", name="simulated clock", versions=(("torch", "2.13.0"),))


def a_workload_timing(**changes):
    usual = dict(
        workload="default",
        pairs=(Pair(baseline_us=(20.0, 21.0), candidate_us=(10.0, 10.5)),),
        speedup=Ratio(value=2.0, low=1.9, high=2.1),
        launches=8,
    )
    return WorkloadTiming(**{**usual, **changes})


def a_call_timing(**changes):
    usual = dict(
        pairs=(Pair(baseline_us=(30.0,), candidate_us=(20.0,)),),
        speedup=Ratio(value=1.5, low=1.4, high=1.6),
        launches=4,
    )
    return CallTiming(**{**usual, **changes})


def a_kernel(**changes):
    usual = dict(name="rms_norm", own=True, launches=1, share=0.9, registers=32, spills=0)
    return Kernel(**{**usual, **changes})


def a_roofline(**changes):
    usual = dict(workload="default", bytes=4096, floor_us=1.5, bandwidth_share=0.7)
    return Roofline(**{**usual, **changes})


def an_evaluation(**changes):
    """A passing evaluation; tests name only the fields they are about."""
    usual = dict(
        task="rms_norm",
        candidate="c0ffee",
        device=DEVICE,
        verdict=Verdict.PASSED,
        timing=Timing(workloads=(a_workload_timing(),)),
    )
    return Evaluation(**{**usual, **changes})


FAILURES = [verdict for verdict in Verdict if verdict is not Verdict.PASSED]


@pytest.mark.parametrize("verdict", FAILURES)
def test_a_failed_candidate_has_no_timing(verdict):
    with pytest.raises(ValueError, match="timing goes with PASSED"):
        an_evaluation(verdict=verdict, message="why")


@pytest.mark.parametrize("verdict", FAILURES)
def test_a_failure_says_why(verdict):
    with pytest.raises(ValueError, match="needs a message"):
        an_evaluation(verdict=verdict, timing=None, message=" \n")


def test_a_pass_has_a_timing():
    with pytest.raises(ValueError, match="timing goes with PASSED"):
        an_evaluation(timing=None)


UNTIMED = (Label(name=LabelName.UNTIMED, reason="the interpreter"),)


def test_a_pass_without_a_clock_says_so():
    assert an_evaluation(timing=None, labels=UNTIMED).has(LabelName.UNTIMED)
    with pytest.raises(ValueError, match="not with untimed"):
        an_evaluation(labels=UNTIMED)


def test_untimed_excuses_no_failure_from_its_message():
    with pytest.raises(ValueError, match="needs a message"):
        an_evaluation(verdict=Verdict.WRONG, timing=None, labels=UNTIMED)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": ""},
        {"launches": 0},
        {"share": 1.1},
        {"registers": -1},
        {"spills": -4},
        {"grid": (1, -1)},
    ],
    ids=str,
)
def test_an_impossible_kernel_cannot_be_built(changes):
    with pytest.raises(ValueError, match=r"kernel has a name|share of|not negative"):
        a_kernel(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"bytes": -1},
        {"flops": -1},
        {"floor_us": 0.0},
        {"bandwidth_share": -0.1},
        {"compute_share": float("nan")},
    ],
    ids=str,
)
def test_an_impossible_roofline_cannot_be_built(changes):
    with pytest.raises(ValueError, match=r"not negative|above 0 us"):
        a_roofline(**changes)


def test_a_verdict_is_not_a_yes_or_no():
    with pytest.raises(TypeError, match="compare it"):
        bool(Verdict.PASSED)


def test_robust_and_fragile_exclude_each_other():
    both = (Label(name=LabelName.ROBUST), Label(name=LabelName.FRAGILE, reason="strided"))
    with pytest.raises(ValueError, match="exclude each other"):
        an_evaluation(labels=both)


def test_one_slow_sample_does_not_move_a_pairs_ratio():
    pair = Pair(baseline_us=(20.0, 20.0, 20.0), candidate_us=(10.0, 10.0, 900.0))
    assert pair.ratio == 2.0


def test_a_ratio_lies_inside_its_interval():
    with pytest.raises(ValueError, match="inside its interval"):
        Ratio(value=2.0, low=2.1, high=2.2)


def test_a_speed_up_within_its_noise_is_none():
    assert not Ratio(value=1.02, low=0.99, high=1.05).is_faster
    assert Ratio(value=1.02, low=1.01, high=1.05).is_faster


def test_several_workloads_combine_by_geometric_mean_and_name_the_worst():
    slow = a_workload_timing(workload="slow", speedup=Ratio(value=0.5, low=0.49, high=0.51))
    timing = Timing(workloads=(a_workload_timing(), slow))
    assert timing.speedup.value == pytest.approx(1.0)
    assert timing.worst.workload == "slow"
    # two independent intervals of 5 % and 2 % make one narrower than either alone would
    assert timing.speedup.low > 0.95


def test_samples_are_taken_in_a_known_way():
    with pytest.raises(ValueError, match="no mode 'guess'; samples are calls, graph, events"):
        a_workload_timing(mode="guess")


def test_plain_calls_hold_samples():
    with pytest.raises(ValueError, match="no samples of plain calls"):
        a_call_timing(pairs=())
    with pytest.raises(ValueError, match="at least one call"):
        a_call_timing(launches=0)


def test_the_call_ratio_combines_as_the_device_ratio_does():
    one = a_workload_timing(mode="graph", call=a_call_timing())
    other = a_workload_timing(
        mode="graph", call=a_call_timing(speedup=Ratio(value=6.0, low=5.9, high=6.1))
    )
    call = Timing(workloads=(one, other)).call
    assert call is not None
    assert call.value == pytest.approx(3.0)
    assert Timing(workloads=(one,)).call.low == pytest.approx(1.4)


def test_there_is_no_call_ratio_unless_every_workload_has_one():
    one = a_workload_timing(mode="graph", call=a_call_timing())
    assert Timing(workloads=(one, a_workload_timing())).call is None


def test_a_candidate_is_known_by_its_content_not_its_parent():
    one = Candidate(backend="cpu", source="x")
    other = dataclasses.replace(one, parent=one.id)
    assert one.id == other.id
    assert one.id != Candidate(backend="triton", source="x").id


def test_an_empty_candidate_cannot_be_built():
    with pytest.raises(ValueError, match="empty"):
        Candidate(backend="cpu", source=" ")


def test_a_task_times_at_least_one_workload():
    with pytest.raises(ValueError, match="all are held out"):
        Task(name="t", source="s", workloads=(Workload(held_out=True),))


def test_workloads_have_names_of_their_own():
    with pytest.raises(ValueError, match="names of their own"):
        Task(name="t", source="s", workloads=(Workload(), Workload()))


def test_an_unknown_dtype_is_named_with_the_known_ones():
    with pytest.raises(ValueError, match="no dtype 'float8'"):
        Workload(dtype="float8")


def test_a_tolerance_is_not_negative():
    with pytest.raises(ValueError, match="not negative"):
        Tolerance(atol=-1.0)


TASK = Task(
    name="t",
    source="class Model: ...",
    workloads=(
        Workload(name="a", arguments=(("n", 3), ("shape", (1, 2)), ("p", 0.5)), dtype="float16"),
        Workload(name="b", held_out=True),
    ),
    weights=Weights.STATIC,
    library=Library.NONE,
    structure=("sorted",),
)


@pytest.mark.parametrize(
    "value",
    [
        TASK,
        Candidate(backend="cpu", source="ünï\n", parent="abc"),
        DEVICE,
        an_evaluation(
            labels=(Label(name=LabelName.TRIVIAL, reason="3 %"),),
            accuracy=(Accuracy(workload="a", error=1e-7, budget=1e-6, eager_error=1e-7, trials=5),),
            coverage=Coverage(own=0.75, library=0.25, samples=40),
            spent=(("build", 0.5),),
        ),
        an_evaluation(verdict=Verdict.WRONG, timing=None, message="out at (0,)"),
        an_evaluation(timing=None, labels=UNTIMED),
        an_evaluation(
            timing=Timing(workloads=(a_workload_timing(mode="graph", call=a_call_timing()),)),
            kernels=(a_kernel(grid=(128, 1), config="BLOCK=64"), a_kernel(share=None)),
            rooflines=(a_roofline(flops=10**15, compute_share=0.1), a_roofline()),
            device_log=(("clock", "1980 MHz"),),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_codec_loses_nothing(value):
    assert loads(dumps(value)) == value


def test_a_line_from_before_there_were_gpus_takes_the_defaults():
    line = Path(__file__).with_name("evaluation_1.json").read_text()
    found = loads(line)
    assert isinstance(found, Evaluation)
    assert (found.kernels, found.rooflines, found.device_log) == ((), (), ())
    assert found.timing.workloads[0].mode == "calls"
    assert found.timing.call is None
    assert found.timing.speedup.value == pytest.approx(3.999, abs=1e-3)
    assert loads(dumps(found)) == found


def test_a_missing_field_without_a_default_is_refused():
    with pytest.raises(ValueError, match="a Device needs the field kind, name"):
        loads('{"schema": "device/1"}')


def test_another_version_is_refused():
    text = dumps(DEVICE).replace(f"device/{VERSION}", "device/99")
    with pytest.raises(ValueError, match="version 99"):
        loads(text)


def test_an_unknown_field_is_refused():
    text = dumps(DEVICE).replace('"kind"', '"colour": "red", "kind"', 1)
    with pytest.raises(ValueError, match="no field colour"):
        loads(text)


def test_json_cannot_describe_an_impossible_evaluation():
    text = dumps(an_evaluation()).replace('"passed"', '"wrong"')
    with pytest.raises(ValueError, match="timing goes with PASSED"):
        loads(text)
