"""Timing: samples of two sides taken side by side, and the ratio that they support."""

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A speed-up with its 95 % interval; there is no ratio without one."""

    value: float
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.value <= self.high < math.inf:
            raise ValueError(f"a ratio lies inside its interval and above 0; got {self}")

    @property
    def width(self) -> float:
        """The interval's width relative to the value: 0.02 means about plus or minus 1 %."""
        return (self.high - self.low) / self.value

    @property
    def is_faster(self) -> bool:
        """Whether the whole interval lies above 1; a speed-up inside its noise is none."""
        return self.low > 1.0

    def __str__(self) -> str:
        return f"{self.value:.3f}x [{self.low:.3f}, {self.high:.3f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Interleaved samples of one fresh pair of processes, in microseconds per launch."""

    baseline_us: tuple[float, ...]
    candidate_us: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.baseline_us or len(self.baseline_us) != len(self.candidate_us):
            raise ValueError("a pair holds as many baseline samples as candidate samples, and some")
        if min(*self.baseline_us, *self.candidate_us) <= 0:
            raise ValueError("a sample takes more than 0 us")

    @property
    def ratio(self) -> float:
        """Median over the pair's samples of baseline over candidate, each taken back to back."""
        both = zip(self.baseline_us, self.candidate_us, strict=True)
        return statistics.median(baseline / candidate for baseline, candidate in both)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadTiming:
    """One workload's samples over fresh process pairs, and the speed-up they support."""

    workload: str
    pairs: tuple[Pair, ...]
    speedup: Ratio
    launches: int
    """Launches in each sample, each on inputs of its own."""
    dropped: int = 0
    """Samples thrown away because something else used the cores."""

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError(f"no samples for workload {self.workload!r}")
        if self.launches < 1 or self.dropped < 0:
            raise ValueError("a sample holds at least one launch, and none is dropped twice")

    @property
    def median_us(self) -> float:
        """The candidate's median time per launch."""
        return statistics.median(us for pair in self.pairs for us in pair.candidate_us)

    @property
    def baseline_us(self) -> float:
        """The baseline's median time per launch."""
        return statistics.median(us for pair in self.pairs for us in pair.baseline_us)

    @property
    def samples(self) -> int:
        """Samples kept per side."""
        return sum(len(pair.candidate_us) for pair in self.pairs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What the clock said, workload by workload; exists only for a candidate that passed."""

    workloads: tuple[WorkloadTiming, ...]
    baseline: str = "eager"
    """What the candidate was measured beside."""

    def __post_init__(self) -> None:
        if not self.workloads:
            raise ValueError("a timing covers at least one workload")

    @property
    def speedup(self) -> Ratio:
        """Geometric mean over workloads; the intervals combine as independent errors."""
        logs = [math.log(each.speedup.value) for each in self.workloads]
        center = math.fsum(logs) / len(logs)
        below = [math.log(w.speedup.value / w.speedup.low) for w in self.workloads]
        above = [math.log(w.speedup.high / w.speedup.value) for w in self.workloads]
        return Ratio(
            value=math.exp(center),
            low=math.exp(center - math.hypot(*below) / len(logs)),
            high=math.exp(center + math.hypot(*above) / len(logs)),
        )

    @property
    def worst(self) -> WorkloadTiming:
        """The workload with the smallest speed-up."""
        return min(self.workloads, key=lambda each: each.speedup.value)
