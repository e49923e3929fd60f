"""The card: what a reader must see, and that it fits a terminal of 100 columns."""

from dataclasses import replace

import pytest

from kernelsmith.cli.card import print_card
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import (
    Evaluation,
    Kernel,
    Label,
    LabelName,
    Roofline,
    Verdict,
)
from kernelsmith.domain.timing import CallTiming, Pair, Ratio, Timing, WorkloadTiming

PAIR = Pair(baseline_us=(20.0, 21.0), candidate_us=(10.0, 10.5))
CALL = CallTiming(pairs=(PAIR,), speedup=Ratio(value=1.25, low=1.1, high=1.4), launches=16)
WORKLOAD = WorkloadTiming(
    workload="128 rows", pairs=(PAIR,), speedup=Ratio(value=2.0, low=1.9, high=2.1), launches=8
)
OWN = Kernel(
    name="rms_norm", own=True, launches=1, share=0.91, registers=32, spills=16, shared_bytes=49152,
    grid=(128,), block=(256,), precision="tf32", config="BLOCK=4096, num_warps=8, num_stages=3",
)  # fmt: skip
FILL = Kernel(name="void at::native::vectorized_elementwise_kernel<4, Fill>", own=False, launches=2)
PASSED = Evaluation(
    task="rms_norm",
    candidate="c0ffee",
    device=Device(kind="cuda", name="NVIDIA H200"),
    verdict=Verdict.PASSED,
    timing=Timing(workloads=(WORKLOAD,)),
)


@pytest.fixture
def card(capsys, monkeypatch):
    def show(**changes):
        monkeypatch.setenv("COLUMNS", "100")
        print_card(replace(PASSED, **changes), "a title")
        said = capsys.readouterr().out
        assert all(len(line) <= 100 for line in said.splitlines())
        # one line, without the frame: where it wraps is not what a test is about
        return " ".join(line.strip("│╭╮╰╯─ ") for line in said.splitlines())

    return show


def test_plain_calls_on_the_cpu_need_no_second_ratio(card):
    said = card()
    assert "2.000x the speed of eager" in said
    assert "2 x 8 launches in 1 process pairs" in said
    assert "plain calls" not in said


def test_device_and_call_ratios_stand_one_above_the_other(card):
    said = card(timing=Timing(workloads=(replace(WORKLOAD, mode="graph", call=CALL),)))
    assert "2 x 8 graph replays" in said
    assert "1.250x by plain calls, 95 % interval 1.100 to 1.400" in said
    assert "2 x 16 plain calls" in said


def test_samples_between_events_say_so(card):
    said = card(timing=Timing(workloads=(replace(WORKLOAD, mode="events"),)))
    assert "launches between events" in " ".join(said.split())


def test_a_kernel_is_shown_with_what_holds_it_back(card):
    said = card(kernels=(OWN, FILL))
    for word in ("rms_norm", "91%", "32", "16 B", "48 KiB", "tf32", "library: void at::native::"):
        assert word in said
    assert "rms_norm: BLOCK=4096, num_warps=8, num_stages=3" in said


def test_many_kernels_are_counted_not_listed(card):
    said = card(kernels=(FILL,) * 30)
    assert said.count("library: ") == 8
    assert "and 22 more kernels" in said


def test_the_roofline_is_one_line_of_shares_and_the_floor(card):
    roofline = Roofline(
        workload="128 rows", bytes=4_200_000, flops=10**9, floor_us=3.2, bandwidth_share=0.71,
        compute_share=0.02,
    )  # fmt: skip
    said = card(rooflines=(roofline, replace(roofline, flops=None, compute_share=None)))
    assert "71% of the bandwidth measured here (4.2 MB at least)" in said
    assert said.count("2% of the peak") == 1
    assert said.count("the floor is 3.2 us") == 2


def test_a_throttled_device_shows_its_log(card):
    said = card(
        labels=(Label(name=LabelName.THROTTLED, reason="power cap"),),
        device_log=(("clock", "1305 MHz"), ("throttle", "power cap")),
    )
    assert "throttled: power cap" in said
    assert "clock 1305 MHz, throttle power cap" in said


def test_an_untimed_pass_is_not_mistaken_for_a_timed_one(card):
    said = card(timing=None, labels=(Label(name=LabelName.UNTIMED, reason="interpreter"),))
    assert "PASSED (not timed)" in said
    assert "untimed: interpreter" in said
