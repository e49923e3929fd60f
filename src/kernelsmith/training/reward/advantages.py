"""Advantages: how much better an answer was than its group, by several estimators.

One trap decides which to use. All answers of a group share their parent, so the speed-up over the
parent is the speed-up over the baseline divided by one number, and dividing by the group's standard
deviation takes that number out again: with ``grpo`` both rewards train the same policy. Only
without that division (``mean``, ``loo``, ``trloo``), or with a reward that is not proportional
(logarithms, bounds, sums), does the choice of the baseline matter. ``loo`` is the default.
"""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from kernelsmith.errors import UsageError

Rewards = Sequence[float | None]
Estimator = Callable[[Rewards], list[float]]
"""From the rewards of one group to advantages. None (lost) gets 0 and is in nobody's baseline."""

_EPSILON = 1e-4


def grpo(rewards: Rewards) -> list[float]:
    """Distance from the group's mean in its standard deviations."""
    valid = _valid(rewards)
    if len(valid) < 2:
        return [0.0] * len(rewards)
    middle, spread = statistics.fmean(valid), statistics.stdev(valid)
    return _each(rewards, lambda reward: (reward - middle) / (spread + _EPSILON))


def mean(rewards: Rewards) -> list[float]:
    """Distance from the group's mean, the answer itself included: biased by (n - 1) / n."""
    valid = _valid(rewards)
    if len(valid) < 2:
        return [0.0] * len(rewards)
    middle = statistics.fmean(valid)
    return _each(rewards, lambda reward: reward - middle)


def loo(rewards: Rewards) -> list[float]:
    """Distance from the mean of the others: unbiased."""
    valid = _valid(rewards)
    if len(valid) < 2:
        return [0.0] * len(rewards)
    total, others = math.fsum(valid), len(valid) - 1
    return _each(rewards, lambda reward: reward - (total - reward) / others)


ESTIMATORS: Mapping[str, Estimator] = {"grpo": grpo, "mean": mean, "loo": loo, "trloo": loo}
"""``trloo`` is ``loo`` turn by turn; with one turn they are the same."""


def estimator_named(name: str) -> Estimator:
    """Find an estimator.

    Raises:
        UsageError: There is none of that name.
    """
    if name not in ESTIMATORS:
        raise UsageError(f"no advantage {name!r}; known are {', '.join(ESTIMATORS)}")
    return ESTIMATORS[name]


def returns(rewards: Rewards, gamma: float = 1.0) -> list[float | None]:
    """What an episode still brings from each turn on; a lost turn has none, and adds nothing."""
    found: list[float | None] = []
    ahead = 0.0
    for reward in reversed(rewards):
        ahead = gamma * ahead + (reward or 0.0)
        found.append(None if reward is None else ahead)
    return found[::-1]


def over_turns(
    episodes: Sequence[Rewards], estimator: Estimator, gamma: float = 1.0
) -> list[list[float]]:
    """Advantages of every turn of a group of episodes, each turn beside the same turn of others.

    Episodes end at different turns, so the group shrinks from turn to turn. With ``mean`` the bias
    (n - 1) / n then differs between turns, and the direction of the gradient is wrong, not only its
    length; with ``loo`` this is Dr. Kernel's TRLOO. A turn that only one episode reached has nobody
    to be compared with: its return is its advantage, as there.
    """
    ahead = [returns(each, gamma) for each in episodes]
    found = [[0.0] * len(each) for each in episodes]
    for turn in range(max((len(each) for each in episodes), default=0)):
        present = [index for index, each in enumerate(ahead) if turn < len(each)]
        group = [ahead[index][turn] for index in present]
        valid = _valid(group)
        if len(valid) == 1:
            advantages = [0.0 if each is None else each for each in group]
        else:
            advantages = estimator(group)
        for index, advantage in zip(present, advantages, strict=True):
            found[index][turn] = advantage
    return found


def _valid(rewards: Rewards) -> list[float]:
    return [each for each in rewards if each is not None]


def _each(rewards: Rewards, value: Callable[[float], float]) -> list[float]:
    return [0.0 if each is None else value(each) for each in rewards]
