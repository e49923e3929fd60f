"""What convicts a candidate while it is timed, and what a busy machine may do unpunished."""

import statistics

import pytest

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.cuda.evidence import CLOCK_US, LATE_US, Evidence
from kernelsmith.evaluate.cuda.lane import Replay
from kernelsmith.evaluate.cuda.nvml import Snapshot
from kernelsmith.evaluate.failure import ProgramFailed

IDLE_US = 15.0


def a_replay(event_us=4000.0, gap_us=130.0) -> Replay:
    return Replay(wall_us=event_us + gap_us, event_us=event_us)


def a_snapshot(sm_mhz=1755, reasons=(), celsius=41, pids=None) -> Snapshot:
    return Snapshot(
        sm_mhz=sm_mhz, memory_mhz=3201, celsius=celsius, watts=300.0,
        reasons=frozenset(reasons), pids=None if pids is None else frozenset(pids),
    )  # fmt: skip


def timed(*, late=(), gaps=(), baseline_gap=130.0, batches=10) -> Evidence:
    """Evidence of some batches; those not named are as honest ones are."""
    found = Evidence()
    for index in range(batches):
        idle = late[index] if index < len(late) else IDLE_US
        gap = gaps[index] if index < len(gaps) else baseline_gap
        found.add_clock(a_replay(gap_us=gap), idle)
        found.add_baseline(a_replay(gap_us=baseline_gap))
    return found


def test_an_honest_candidate_leaves_no_case():
    assert timed().verdict() is None


def test_without_a_single_batch_there_is_no_case():
    assert Evidence().verdict() is None


def test_a_device_that_stays_busy_after_the_answer_convicts():
    said = timed(late=[LATE_US + 1] * 4).verdict()
    assert said is not None
    assert said.startswith("works on after its answer: 4 of 10 times")


def test_calls_that_leave_something_running_convict_and_a_slow_first_one_does_not():
    busy, free = LATE_US + 1, 15.0
    with pytest.raises(ProgramFailed, match="works on after its answer: 5 of 8 times"):
        Evidence().judge_leftovers([free, free, free] + [busy] * 5)
    Evidence().judge_leftovers([busy, busy] + [free] * 6)


@pytest.mark.parametrize("late", [[LATE_US + 1] * 2, [LATE_US + 1] * 3, [LATE_US] * 10])
def test_what_happens_now_and_then_or_in_time_does_not(late):
    assert timed(late=late).verdict() is None


def test_events_that_tell_less_than_the_judges_clock_convict():
    said = timed(gaps=[130.0 + 1000.0] * 6).verdict()
    assert said is not None
    assert said.startswith("tampers with the clock: its events say 4000 us a batch")
    assert "130 us are usual" in said


def test_a_gap_counts_only_beyond_what_the_baseline_shows():
    assert timed(gaps=[900.0] * 10, baseline_gap=900.0).verdict() is None


def test_where_requests_take_long_for_the_baseline_they_may_take_longer_still():
    assert timed(gaps=[715.0] * 10, baseline_gap=550.0).verdict() is None
    assert timed(gaps=[900.0] * 10, baseline_gap=550.0).verdict() is not None
    assert timed(gaps=[1400.0] * 10, baseline_gap=1000.0).verdict() is not None


def test_a_long_batch_may_differ_by_a_share_and_a_short_one_by_microseconds():
    long, short = Evidence(), Evidence()
    for _ in range(5):
        for found, event in ((long, 20_000.0), (short, 1_000.0)):
            found.add_clock(a_replay(event_us=event, gap_us=130.0 + 4 * CLOCK_US), IDLE_US)
            found.add_baseline(a_replay(event_us=event))
    assert long.verdict() is None
    assert "tampers" in str(short.verdict())


def test_half_of_the_batches_is_not_most_of_them():
    assert timed(gaps=[5000.0] * 5).verdict() is None
    assert timed(gaps=[5000.0] * 6).verdict() is not None


def test_a_process_that_runs_on_convicts_when_it_is_seen_twice():
    found = timed()
    found.add_helpers([])
    found.add_helpers([4711])
    assert found.verdict() is None
    found.add_helpers([4711])
    assert found.verdict() == "started a process that runs on while it is frozen"


def test_cache_kept_beyond_the_baselines_convicts():
    found = timed()
    found.persisting = 8 << 20
    assert "8,388,608 more bytes of the device's cache" in str(found.verdict())


def is_undisturbed(alone: float, theirs: list[float], own: list[float], warmups: int = 2) -> bool:
    both = list(zip(theirs, own, strict=True))
    return Evidence().undisturbed(alone, statistics.median(theirs[warmups:]), both)


def test_a_baseline_may_be_a_little_slower_beside_the_candidate():
    own = [50.0] * 8
    assert is_undisturbed(100.0, [108.9] * 8, own)
    assert not is_undisturbed(100.0, [109.1] * 8, own)
    assert is_undisturbed(1.0, [2.0] * 8, own), "a microsecond is nobody's doing"


def test_a_device_that_is_slower_for_both_sides_accuses_nobody():
    theirs = [5906.7, 6607.7, *[6609.1] * 6]
    own = [5921.9, 6615.2, *[6626.4] * 6]  # as an H200 did with gigabytes a launch
    assert is_undisturbed(5914.8, theirs, own)


def test_slowing_the_other_side_alone_is_seen_in_any_turn():
    theirs = [100.0] * 3 + [130.0] * 5
    assert not is_undisturbed(100.0, theirs, [50.0] * 8)
    mixed = [50.0] * 3 + [65.0] * 4 + [50.0]
    assert not is_undisturbed(100.0, theirs, mixed), "one turn of five"
    assert not is_undisturbed(100.0, [130.0] * 8, [65.0] * 8), "who knows its calm turns?"


def test_calm_warm_ups_do_not_hide_what_slows_half_of_the_samples():
    theirs = [100.0] * 5 + [130.0] * 3
    assert not is_undisturbed(100.0, theirs, [50.0] * 8)


def test_a_part_of_the_launches_takes_a_part_of_the_time():
    Evidence().judge_reading_ahead((0.125, 500.0), 4000.0)
    Evidence().judge_reading_ahead(None, 4000.0)


def test_a_part_that_takes_as_long_as_all_of_them_reads_ahead():
    with pytest.raises(ProgramFailed, match="reads ahead: 12% of a batch's launches") as raised:
        Evidence().judge_reading_ahead((0.125, 3900.0), 4000.0)
    assert raised.value.verdict is Verdict.CHEATED


def test_batches_too_short_to_tell_are_not_judged_for_it():
    Evidence().judge_reading_ahead((0.125, 190.0), 190.0)


def kept(found: Evidence, *snapshots: Snapshot) -> list[bool]:
    return [found.keep(a_snapshot(), each, last=False) for each in snapshots]


def test_samples_of_a_steady_device_are_kept():
    found = Evidence()
    assert all(kept(found, *[a_snapshot(mhz) for mhz in (1755, 1750, 1760, 1755)]))
    assert found.dropped == 0


def test_a_clock_that_moves_costs_the_sample():
    found = Evidence()
    assert kept(found, *[a_snapshot()] * 4, a_snapshot(1500)) == [True] * 4 + [False]
    assert found.dropped == 1
    assert found.throttled == ""


def test_throttling_that_begins_costs_the_sample_and_is_named():
    found = Evidence()
    assert kept(found, a_snapshot(reasons=["sw_power_cap"])) == [False]
    assert (found.dropped, found.throttled) == (1, "sw_power_cap")


def test_throttling_that_lasts_is_named_and_costs_nothing():
    found, held = Evidence(), a_snapshot(reasons=["sw_power_cap"])
    assert all(found.keep(held, held, last=False) for _ in range(4))
    assert (found.dropped, found.throttled) == (0, "sw_power_cap")


def test_a_choice_of_clocks_is_not_throttling():
    found = Evidence()
    assert kept(found, a_snapshot(reasons=["gpu_idle", "applications_clocks_setting"])) == [True]


def test_the_last_sample_counts_whatever_the_device_does():
    found = Evidence()
    assert found.keep(a_snapshot(), a_snapshot(reasons=["hw_slowdown"]), last=True)
    assert found.dropped == 0


def test_a_driver_that_says_nothing_of_clocks_costs_nothing():
    found = Evidence()
    assert kept(found, a_snapshot(sm_mhz=None, reasons=["sw_power_cap"])) == [True]


def test_the_log_shows_ranges_and_reasons():
    found = Evidence()
    kept(found, a_snapshot(1755, celsius=44), a_snapshot(1700, ["sw_power_cap"], celsius=51))
    said = dict(found.log())
    assert said["sm clock"] == "1700 to 1755 MHz"
    assert said["temperature"] == "41 to 51 C"
    assert said["throttled"] == "sw_power_cap"


def test_an_empty_log_says_that_nothing_was_wrong():
    said = dict(Evidence().log())
    assert said["throttled"] == "no"
    assert said["other processes"] == "0"
    assert "sm clock" not in said


OURS = frozenset({100, 101, 102})


@pytest.mark.parametrize(
    ("pids", "kept"),
    [
        ({100, 101, 102}, True),
        ({100}, True),
        ({100, 101, 666}, False),
        (None, True),
    ],
)
def test_a_batch_beside_a_stranger_on_the_device_does_not_count(pids, kept):
    found = Evidence()
    assert found.keep(a_snapshot(pids=OURS), a_snapshot(pids=pids), last=False, ours=OURS) is kept


def test_strangers_are_counted_and_logged():
    found = Evidence()
    for crowd in ({100, 7, 8}, {100, 7}):
        found.keep(a_snapshot(pids=OURS), a_snapshot(pids=crowd), last=False, ours=OURS)
    assert (found.dropped, found.strangers) == (2, 2)
    assert dict(found.log())["other processes"] == "2"


@pytest.mark.parametrize("ours", [frozenset(), OURS])
def test_nobody_is_a_stranger_where_the_driver_numbers_processes_otherwise(ours):
    found = Evidence()
    assert found.keep(a_snapshot(pids={7}), a_snapshot(pids={7, 8}), last=False, ours=ours)
    assert found.strangers == 0
