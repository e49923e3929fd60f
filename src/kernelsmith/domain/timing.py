"""Timing: samples of two sides taken side by side, and the ratio that they support."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MODES = ("calls", "graph", "events")
"""How samples are taken: ``calls`` (plain calls under the judge's clock), ``graph`` (replays of a
CUDA graph), ``events`` (plain launches between device events, where capture is not sound)."""


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
class CallTiming:
    """Plain calls on both sides, dispatch included: the ratio that published tables give."""

    pairs: tuple[Pair, ...]
    speedup: Ratio
    launches: int
    """Calls in each sample, each on inputs of its own."""

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError("no samples of plain calls")
        if self.launches < 1:
            raise ValueError("a sample holds at least one call")

    @property
    def median_us(self) -> float:
        """The candidate's median time per call."""
        return statistics.median(us for pair in self.pairs for us in pair.candidate_us)

    @property
    def baseline_us(self) -> float:
        """The baseline's median time per call."""
        return statistics.median(us for pair in self.pairs for us in pair.baseline_us)


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
    mode: str = "calls"
    """How ``pairs`` were taken; one of ``MODES``."""
    call: CallTiming | None = None
    """Plain calls, where ``pairs`` hold device time alone; in mode ``calls`` they are the same."""

    def __post_init__(self) -> None:
        if not self.pairs:
            raise ValueError(f"no samples for workload {self.workload!r}")
        if self.launches < 1 or self.dropped < 0:
            raise ValueError("a sample holds at least one launch, and none is dropped twice")
        if self.mode not in MODES:
            raise ValueError(f"no mode {self.mode!r}; samples are {', '.join(MODES)}")

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
        return _combined([each.speedup for each in self.workloads])

    @property
    def call(self) -> Ratio | None:
        """The same over plain calls; none unless every workload was timed that way, too."""
        calls = [each.call.speedup for each in self.workloads if each.call is not None]
        return _combined(calls) if len(calls) == len(self.workloads) else None

    @property
    def worst(self) -> WorkloadTiming:
        """The workload with the smallest speed-up."""
        return min(self.workloads, key=lambda each: each.speedup.value)


def _combined(ratios: Sequence[Ratio]) -> Ratio:
    center = math.fsum(math.log(each.value) for each in ratios) / len(ratios)
    below = [math.log(each.value / each.low) for each in ratios]
    above = [math.log(each.high / each.value) for each in ratios]
    return Ratio(
        value=math.exp(center),
        low=math.exp(center - math.hypot(*below) / len(ratios)),
        high=math.exp(center + math.hypot(*above) / len(ratios)),
    )
