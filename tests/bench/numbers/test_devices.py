"""The same kernels on several devices."""

import math
from dataclasses import replace

import pytest
from bench_records import DEVICE, a_record, ratio, won

from kernelsmith.bench.numbers.devices import across
from kernelsmith.bench.record import Beside
from kernelsmith.domain.device import Device

THERE = Device(kind="null", name="elsewhere")


def kernel(value, *, entry="suite/one", text="k", device=DEVICE, **changes):
    beside = (Beside(baseline="eager", device=ratio(value), tests=6),)
    return a_record(entry=entry, beside=beside, device=device, winner=won(text, "k.py"), **changes)


def test_one_device_or_different_kernels_cannot_be_compared():
    assert across([]) is None
    assert across([kernel(2.0), kernel(3.0, entry="b")]) is None
    assert across([kernel(2.0, text="a"), kernel(3.0, text="b", device=THERE)]) is None


def test_the_widest_spread_comes_first_and_flips_are_counted():
    records = [kernel(2.0, entry="a"), kernel(1.0, entry="a", device=THERE),
               kernel(4.0, entry="b"), kernel(0.5, entry="b", device=THERE)]  # fmt: skip
    found = across(records)
    assert [spread.entry for spread in found.spreads] == ["b", "a"]
    assert found.spreads[0].factor == pytest.approx(8.0)
    assert found.flipped == 1
    (pair,) = found.pairs
    assert pair.kernels == 2
    ratios = {pair.first: 1.0, pair.second: pair.ratio}
    assert ratios[str(DEVICE)] / ratios[str(THERE)] == pytest.approx(4.0)
    assert pair.rank_correlation is None


def test_variance_between_devices_is_part_of_all_variance():
    records = [kernel(v * f, entry=f"e{i}", device=d)
               for i, v in enumerate((1.0, 2.0, 4.0))
               for f, d in ((1.0, DEVICE), (2.0, THERE))]  # fmt: skip
    found = across(records)
    assert found.between == pytest.approx((math.log(2) / 2) ** 2)
    assert found.total == pytest.approx(found.between + 2 / 3 * math.log(2) ** 2)
    assert found.pairs[0].rank_correlation == pytest.approx(1.0)
    assert 0 < found.device_share < 1


def test_seeds_of_one_device_are_averaged_whatever_their_order():
    seeds = [kernel(1.0, seed=0), kernel(4.0, seed=1), kernel(2.0, device=THERE)]
    for records in (seeds, seeds[::-1], [seeds[1], seeds[2], seeds[0]]):
        assert dict(across(records).spreads[0].speedups)[str(DEVICE)] == pytest.approx(2.0)


def test_two_versions_of_a_task_are_two_tasks():
    assert across([kernel(2.0, task="old"), kernel(3.0, task="new", device=THERE)]) is None


def test_the_share_between_devices_is_never_more_than_all():
    devices = [replace(THERE, name=f"elsewhere {i}") for i in range(5)]
    records = [kernel(1.0, entry="a", device=devices[0]), kernel(4.0, entry="a", device=devices[1]),
               *(kernel(2.0, entry="b", device=each) for each in devices)]  # fmt: skip
    found = across(records)
    assert found.between == pytest.approx(found.total), "both kernels have one mean"
    assert found.device_share <= 1.0


def test_whoever_entered_it_the_same_source_is_the_same_kernel():
    found = across([kernel(2.0), kernel(3.0, device=THERE, entrant="replay")])
    assert found.spreads[0].factor == pytest.approx(1.5)
