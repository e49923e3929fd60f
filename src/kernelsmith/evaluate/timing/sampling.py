"""How much to measure: launches in a sample, and when there are samples enough."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.domain.timing import Pair, Ratio

MAX_LAUNCHES = 2048
"""Distinct inputs in one batch beyond which the spread no longer falls (1,500 gave 0.31 %)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRule:
    """When a ratio is known well enough, or further sampling is not worth its time."""

    target_width: float = 0.03
    """Relative width of the interval that is narrow enough: 0.03 is about plus or minus 1.5 %."""
    min_pairs: int = 3
    """Fewer cannot show how much fresh processes differ."""
    max_pairs: int = 8
    min_samples: int = 5
    """Samples that each pair must hold; fewer leave the outlier rule without footing."""
    budget_s: float = 60.0
    """Seconds of sampling after which the interval is taken as it is."""

    def __post_init__(self) -> None:
        if not 0 < self.target_width < math.inf or self.budget_s <= 0:
            raise ValueError(f"a target width and a budget lie above 0; got {self}")
        if not 1 <= self.min_pairs <= self.max_pairs or self.min_samples < 1:
            raise ValueError(f"1 <= min_pairs <= max_pairs, and some samples; got {self}")

    def enough(self, ratio: Ratio, pairs: Sequence[Pair], spent_s: float) -> bool:
        """Whether to stop: the interval is narrow and well founded, or a limit is reached."""
        if spent_s >= self.budget_s or len(pairs) >= self.max_pairs:
            return True
        founded = len(pairs) >= self.min_pairs and all(
            len(pair.candidate_us) >= self.min_samples for pair in pairs
        )
        return founded and not self.noisy(ratio, pairs)

    def noisy(self, ratio: Ratio, pairs: Sequence[Pair]) -> bool:
        """Whether the result misses what was asked for and must say so when it is quoted."""
        return ratio.width > self.target_width or len(pairs) < self.min_pairs


def batch_size(
    per_launch_us: float,
    set_bytes: int,
    *,
    target_us: float = 4000.0,
    max_bytes: int = 2 << 30,
    max_launches: int = MAX_LAUNCHES,
) -> int:
    """Return how many launches, each on inputs of its own, make one sample.

    Enough to last ``target_us``, so that the clock's own cost and resolution vanish, within
    the memory that the sets (``set_bytes`` each: inputs and outputs, both sides) may take.
    A set that alone exceeds ``max_bytes`` still gets one launch.
    """
    if not 0 < per_launch_us < math.inf or set_bytes < 0:
        raise ValueError(f"a launch takes time and no negative memory; got {per_launch_us} us")
    wanted = math.ceil(min(target_us / per_launch_us, max_launches))
    fitting = max_bytes // set_bytes if set_bytes else max_launches
    return max(1, min(wanted, fitting, max_launches))
