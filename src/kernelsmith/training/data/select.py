"""Which steps reinforcement starts from: named strategies over trajectories."""

import math
import random
from collections.abc import Callable, Mapping, Sequence

from kernelsmith.errors import UsageError
from kernelsmith.training.data.leakage import guarded
from kernelsmith.training.data.sample import Sample

TOP_K = 2
"""Steps per lineage that ``top-k`` takes."""

Strategy = Callable[[Sequence[Sample], int], list[Sample]]
"""From the samples of some runs, and a seed, to those to train on."""


def best(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """The paper's: steps that improved a parent and were their run's best when they came."""
    del seed
    return [
        each for each in samples
        if not each.is_first and each.correct and each.step.placement.is_best and _gained(each) > 1
    ]  # fmt: skip


def every(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """All steps, whatever became of them."""
    del seed
    return list(samples)


def initial(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """First steps only: from the reference to a kernel."""
    del seed
    return [each for each in samples if each.is_first]


def top_k(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """The largest gains of every lineage."""
    del seed
    lineages: dict[tuple[str, str], list[Sample]] = {}
    for each in samples:
        if not each.is_first and each.correct and _gained(each) > 1:
            lineages.setdefault((each.run, each.lineage), []).append(each)
    chosen = {
        each.id
        for lineage in lineages.values()
        for each in sorted(lineage, key=lambda s: (-_gained(s), s.id))[:TOP_K]
    }
    return [each for each in samples if each.id in chosen]


def gain_weighted(samples: Sequence[Sample], seed: int = 0) -> list[Sample]:
    """Improvements drawn with replacement, as often as the logarithm of their gain is large."""
    pool = [each for each in samples if each.correct and not each.is_first and _gained(each) > 1]
    if not pool:
        return []
    weights = [math.log(_gained(each)) for each in pool]
    return random.Random(seed).choices(pool, weights=weights, k=len(pool))


STRATEGIES: Mapping[str, Strategy] = {
    "best": best, "all": every, "initial": initial, "top-k": top_k, "gain-weighted": gain_weighted,
}  # fmt: skip
_UNGUARDED = ("all", "initial")
"""``all`` is what the paper warns of, and shows that only without a guard; first steps show
nothing to copy."""


def select(
    samples: Sequence[Sample], strategy: str, *, seed: int = 0, guard: bool | None = None
) -> list[Sample]:
    """Choose by name.

    Args:
        samples: Of any number of runs.
        strategy: One of ``STRATEGIES``.
        seed: For strategies that draw.
        guard: Whether leaking samples are left out; by default for all but ``all``.

    Raises:
        UsageError: There is no such strategy.
    """
    if strategy not in STRATEGIES:
        raise UsageError(f"no selection {strategy!r}; known are {', '.join(STRATEGIES)}")
    guard = strategy not in _UNGUARDED if guard is None else guard
    return STRATEGIES[strategy](guarded(samples) if guard else samples, seed)


def _gained(sample: Sample) -> float:
    gain = sample.gain
    return gain.value if gain is not None else 0.0
