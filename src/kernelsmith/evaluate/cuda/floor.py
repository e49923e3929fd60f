"""The least time that a launch can take, by what it must move, held against what was measured."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.evaluation import Roofline
from kernelsmith.domain.timing import WorkloadTiming

TOLERATED = 0.8
"""A time below this share of the floor is not believed. The rest is for what the floor overstates:
bandwidth is measured by copying, and reading alone may be faster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """What one device was measured to reach."""

    dram_bytes_s: float
    l2_bytes_s: float
    l2_bytes: int
    processors: int = 0
    flops: Mapping[str, float] = field(default_factory=dict)
    """Floating-point operations a second of a large product, by precision."""

    def __post_init__(self) -> None:
        numbers = (self.dram_bytes_s, self.l2_bytes_s, self.l2_bytes, *self.flops.values())
        if not all(number > 0 for number in numbers):
            raise ValueError(f"a device moves and computes at some speed; got {self}")


def floor_us(compulsory: int, footprint: int, speeds: Speeds, *, flops: int = 0) -> float:
    """The least time in microseconds in which a launch can do its work.

    Every byte passes through the second-level cache. Of a batch that is larger than the cache, at
    most a cache full can be there already when the batch begins, or still be there when it ends;
    the rest passes through DRAM as well, at the same time.

    Args:
        compulsory: Bytes that every right answer reads or writes, per launch.
        footprint: Bytes that one timed batch touches in all: inputs and outputs of every launch.
        speeds: What the device was measured to reach.
        flops: Floating-point operations that no algorithm avoids; leave out where another may need
            fewer. They are held against the fastest product in any precision.
    """
    if compulsory < 0 or footprint < 0 or flops < 0:
        raise ValueError(f"work is not negative; got {compulsory}, {footprint} and {flops}")
    cached = min(1.0, speeds.l2_bytes / footprint) if footprint else 1.0
    through_dram = compulsory * (1 - cached) / speeds.dram_bytes_s
    through_cache = compulsory / max(speeds.l2_bytes_s, speeds.dram_bytes_s)
    computing = flops / max(speeds.flops.values()) if speeds.flops else 0.0
    return 1e6 * max(through_dram, through_cache, computing)


def impossible(median_us: float, floor_us: float) -> str | None:
    """Say that a time cannot be true, or return ``None`` where it may be."""
    if median_us >= TOLERATED * floor_us:
        return None
    return (
        f"too fast to be true: {median_us:.2f} us a launch, and the work that the task asks "
        f"for takes this device at least {floor_us:.2f} us"
    )


def achieved_bytes_s(compulsory: int, median_us: float) -> float:
    """The bandwidth that a launch reached, counting only bytes that it had to move."""
    if median_us <= 0:
        raise ValueError(f"a launch takes time; got {median_us} us")
    return compulsory / (median_us * 1e-6)


def roofline(
    timing: WorkloadTiming, compulsory: int, flops: int | None, footprint: int, speeds: Speeds
) -> Roofline:
    """How a measured launch stands to what its device can reach."""
    reached = achieved_bytes_s(compulsory, timing.median_us)
    ceiling = speeds.dram_bytes_s if footprint > speeds.l2_bytes else speeds.l2_bytes_s
    computed = None
    if flops and speeds.flops:
        computed = flops / (1e-6 * timing.median_us) / max(speeds.flops.values())
    return Roofline(
        workload=timing.workload, bytes=compulsory, flops=flops,
        floor_us=floor_us(compulsory, footprint, speeds), bandwidth_share=reached / ceiling,
        compute_share=computed,
    )  # fmt: skip


def share_of_floor(median_us: float, floor_us: float) -> float:
    """How close a launch came to the floor: 1 is there, 0.5 takes twice as long."""
    if median_us <= 0:
        raise ValueError(f"a launch takes time; got {median_us} us")
    return floor_us / median_us
