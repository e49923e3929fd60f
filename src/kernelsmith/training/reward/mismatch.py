"""Train and rollout mismatch: answers that the trained model would hardly have written.

The server that writes answers and the trainer that learns from them compute the same weights in
different ways. Where their probabilities drift apart, the gradient is of another policy. After
Dr. Kernel (and verl's rollout correction): keep an answer while the geometric mean of the ratios
lies close to 1 and no token is nearly impossible; weigh what is kept by the truncated ratio.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """How much mismatch is put up with."""

    low: float = 0.999
    high: float = 1.001
    """Bounds of the geometric mean of the ratios over all tokens."""
    veto: float = 1e-4
    """A single token below this ratio drops the answer."""
    most_weight: float = 2.0
    """Importance weights are cut here."""

    def __post_init__(self) -> None:
        if not 0 < self.low <= 1 <= self.high or not 0 <= self.veto < 1 or self.most_weight < 1:
            raise UsageError(f"bounds of a ratio lie around 1; got {self}")

    def weight(self, trained: Sequence[float], sampled: Sequence[float]) -> float:
        """What an answer weighs, from its tokens' log-probabilities on both sides; 0: dropped.

        Raises:
            ValueError: The two do not belong to the same tokens.
        """
        if len(trained) != len(sampled):
            raise ValueError(f"{len(trained)} and {len(sampled)} tokens are not the same answer")
        if not trained:
            return 0.0
        logs = [new - old for new, old in zip(trained, sampled, strict=True)]
        ratio = math.exp(min(math.fsum(logs) / len(logs), 50.0))
        if not self.low <= ratio <= self.high or min(logs) < math.log(max(self.veto, 1e-300)):
            return 0.0
        return min(ratio, self.most_weight)


OFF = Correction(low=1e-9, high=1e9, veto=0.0)
"""Keeps everything: for samplers that are the trainer itself."""
