"""Which model to ask next: Thompson sampling over the gains that were measured.

Each arm holds its last ``WINDOW`` gains. A gain g counts as g / (g + s) of a success, where s is
the median of all gains above 0 in the windows, so that the unit of the score does not matter; the
arm's chance is drawn from Beta(1 + successes, 1 + failures), to the power of 1 / (weight / cost).
Without evidence that power makes the shares exactly those of the weights; with evidence, gains
decide.
Cost is what a proposal of the arm costs on average over what the cheapest costs, to the power of
``cost_weight``; it counts once all arms have been charged for, and none is free.

Draws depend on the seed of the brief and on what was learned, on nothing else.
"""

import math
import random
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.trajectory import Outcome, Step

WINDOW = 200
"""Gains get rarer as a run goes on; what a model did long ago says little."""


@dataclass(slots=True)
class _Arm:
    weight: float
    gains: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    costs: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))


class Bandit:
    """Chooses among models by name, and learns what came of it.

    Args:
        weights: Of each model, above 0.
        cost_weight: 0 ignores cost; 1 halves the share of what costs twice as much.
        adaptive: Where not, the weights alone decide.
    """

    def __init__(
        self, weights: Mapping[str, float], *, cost_weight: float = 0.5, adaptive: bool = True
    ) -> None:
        if not weights or min(weights.values()) <= 0:
            raise ValueError(f"a bandit needs arms with weights above 0; got {dict(weights)}")
        self._arms = {name: _Arm(weight) for name, weight in sorted(weights.items())}
        self._cost_weight, self._adaptive = cost_weight, adaptive

    def choose(self, seed: int) -> str:
        """Name the model for the brief with this seed."""
        rng = random.Random(f"bandit/{seed}")
        scale, cheap = self._scale(), self._relative_costs()
        drawn = {}
        for name, arm in self._arms.items():
            won = sum(gain / (gain + scale) for gain in arm.gains) if self._adaptive else 0.0
            lost = len(arm.gains) - won if self._adaptive else 0.0
            chance = max(rng.betavariate(1 + won, 1 + lost), 1e-300)
            drawn[name] = math.log(chance) / (arm.weight / cheap[name])
        return max(drawn, key=lambda name: drawn[name])

    def learn(self, step: Step) -> None:
        """Note the gain of a step; steps of models that are not here are passed over."""
        arm = self._arms.get(step.proposal.proposer)
        if arm is None:
            return
        arm.gains.append(gain_of(step))
        if step.proposal.usage.usd is not None:
            arm.costs.append(step.proposal.usage.usd)

    def _scale(self) -> float:
        above = [gain for arm in self._arms.values() for gain in arm.gains if gain > 0]
        return statistics.median(above) if above else 1.0

    def _relative_costs(self) -> dict[str, float]:
        means = {name: statistics.fmean(arm.costs or [0]) for name, arm in self._arms.items()}
        least = min(means.values())
        if not self._adaptive or least <= 0:
            return dict.fromkeys(means, 1.0)
        return {name: (mean / least) ** self._cost_weight for name, mean in means.items()}


def gain_of(step: Step) -> float:
    """Score above the parent's; 0 for all that did not pass, or did not get above it.

    Without a parent it is the score above what the archive held in that place.
    """
    score, parent = step.placement.score, step.brief.parent
    if score is None or not step.passed or step.placement.outcome is Outcome.DUPLICATE:
        return 0.0
    gain = step.placement.gained if parent is None else score - parent.score
    return gain if 0 < gain < math.inf else 0.0
