"""The least time that a launch can take."""

import pytest

from kernelsmith.evaluate.cuda.floor import (
    Speeds,
    achieved_bytes_s,
    floor_us,
    impossible,
    share_of_floor,
)

H200 = Speeds(
    dram_bytes_s=4e12, l2_bytes_s=10e12, l2_bytes=50_000_000, processors=132,
    flops={"float32": 50e12, "bfloat16": 700e12},
)  # fmt: skip


def test_a_batch_far_beyond_the_cache_goes_by_dram():
    assert floor_us(4_000_000_000, 40_000_000_000, H200) == pytest.approx(1000, rel=0.01)


def test_a_batch_within_the_cache_goes_by_the_cache():
    assert floor_us(10_000_000, 40_000_000, H200) == pytest.approx(1.0)
    assert floor_us(10_000_000, 0, H200) == pytest.approx(1.0)


def test_a_batch_a_little_larger_than_the_cache_may_find_most_of_it_there():
    """Judged by DRAM alone, 2.5 us, an honest kernel at 1.2 us would be called impossible."""
    assert floor_us(10_000_000, 60_000_000, H200) == pytest.approx(1.0)
    assert floor_us(10_000_000, 100_000_000, H200) == pytest.approx(1.25)


def test_the_floor_never_falls_as_the_batch_grows():
    floors = [floor_us(10_000_000, size, H200) for size in range(0, 10**9, 10**7)]
    assert floors == sorted(floors)


def test_products_take_their_time_too_in_the_fastest_precision():
    assert floor_us(0, 0, H200, flops=7 * 10**11) == pytest.approx(1000)


def test_a_time_below_the_floor_is_not_believed():
    assert impossible(8.1, 10.0) is None
    assert impossible(7.9, 10.0) == (
        "too fast to be true: 7.90 us a launch, and the work that the task asks for takes this "
        "device at least 10.00 us"
    )


def test_what_needs_nothing_is_never_impossible():
    assert impossible(0.5, floor_us(0, 0, H200)) is None


def test_bandwidth_and_share_of_the_floor():
    assert achieved_bytes_s(4_000_000, 2.0) == pytest.approx(2e12)
    assert share_of_floor(20.0, 10.0) == 0.5


@pytest.mark.parametrize("function", [achieved_bytes_s, share_of_floor])
def test_a_launch_takes_time(function):
    with pytest.raises(ValueError, match="takes time"):
        function(*((1, 0.0) if function is achieved_bytes_s else (0.0, 1.0)))


def test_speeds_are_positive_and_work_is_not_negative():
    with pytest.raises(ValueError, match="at some speed"):
        Speeds(dram_bytes_s=0, l2_bytes_s=1, l2_bytes=1)
    with pytest.raises(ValueError, match="not negative"):
        floor_us(-1, 0, H200)
