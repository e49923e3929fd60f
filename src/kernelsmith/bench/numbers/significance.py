"""Whether two systems differ on the same tasks: paired bootstrap, sign test, signed ranks."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelsmith.bench.numbers.resampling import Combine, Draws, Floats, Grid
from kernelsmith.bench.numbers.statistics import Estimate, interval, mean
from kernelsmith.evaluate.timing.statistics import small_sample_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """One test of 'no difference', two-sided."""

    name: str
    p: float
    tasks: int
    """How many tasks took part; ties may not."""
    wins: int
    losses: int
    ties: int


def paired_difference(
    a: Grid, b: Grid, combine: Combine, draws: tuple[Draws, Draws], *,
    bounds: tuple[float, float] | None = None, scale: Callable[[float], float] = float,
) -> tuple[Estimate, float] | None:  # fmt: skip
    """Return what A has over B, combined over tasks, and the two-sided p-value of no difference.

    Tasks are drawn once for both (``Draws.of(..., like=...)``), seeds for each: what makes a task
    hard for both cancels. A task on which one side says nothing is left out. ``bounds`` are the
    ends that a difference cannot leave, ``scale=math.exp`` turns one of logarithms into a ratio.
    None where fewer than two tasks are left.
    """
    if len(a.seeds) != len(b.seeds) or draws[0].tasks is not draws[1].tasks:
        raise ValueError("paired systems stand on the same tasks")
    differences = a.per_task - b.per_task
    held = int(np.count_nonzero(~np.isnan(differences)))
    if held < 2:
        return None
    center = float(combine(differences[np.newaxis])[0])
    if combine is mean and not np.isnan(differences).any():
        drawn = draws[0].means(a) - draws[1].means(b)
    else:
        drawn = combine(draws[0].per_task(a) - draws[1].per_task(b))
    drawn = drawn[~np.isnan(drawn)]
    low, high = interval(drawn, center, held)
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    found = Estimate(value=scale(center), low=scale(low), high=scale(high), tasks=held)
    differing = int(np.count_nonzero(differences[~np.isnan(differences)]))
    return found, max(_two_sided(drawn, center, held), _least(differing))


def _two_sided(drawn: Floats, center: float, tasks: int) -> float:
    """The level at which the interval, pulled apart for few tasks as ``interval`` does, ends at 0.

    So p and the interval beside it say the same. One is added above and below: no number of
    resamples shows that p is 0.
    """
    if center == 0.0 or drawn.size == 0:
        return 1.0
    # relative, because sums of the same numbers in another order differ in the last digits
    reach = abs(center) / small_sample_factor(tasks) * (1 - 1e-9)
    beyond = int(np.count_nonzero(math.copysign(1.0, center) * (center - drawn) >= reach))
    return min(1.0, 2 * (beyond + 1) / (drawn.size + 1))


def _least(differing: int) -> float:
    """The least p that signs can give on so many tasks: resampling few of them shows no less."""
    return min(1.0, 2.0 ** (1 - differing))


def sign_test(differences: Sequence[float] | Floats) -> Test | None:
    """The exact sign test: is one side better on more tasks than chance gives? Ties are left out.

    On yes and no (correct or not) it is McNemar's exact test.
    """
    values = _present(differences)
    wins, losses = int((values > 0).sum()), int((values < 0).sum())
    if values.size == 0:
        return None
    return Test(
        name="sign", p=_binomial(min(wins, losses), wins + losses), tasks=wins + losses,
        wins=wins, losses=losses, ties=int(values.size) - wins - losses,
    )  # fmt: skip


def signed_rank_test(differences: Sequence[float] | Floats) -> Test | None:
    """Wilcoxon's signed-rank test, exact with ties; differences of 0 after Pratt.

    The distribution is that of the ranks seen, each with either sign: no table and no normal
    approximation, which are off where many tasks tie.
    """
    values = _present(differences)
    if values.size == 0:
        return None
    wins, losses = int((values > 0).sum()), int((values < 0).sum())
    # ranks count in halves, so twice a rank is a whole number; zeros are ranked, then left out
    doubled = _doubled_ranks(np.abs(values))
    kept = doubled[values != 0]
    plus = int(doubled[values > 0].sum())
    return Test(
        name="signed rank", p=_rank_p(kept, plus), tasks=wins + losses,
        wins=wins, losses=losses, ties=int(values.size) - wins - losses,
    )  # fmt: skip


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction: p-values that stand beside each other in one table."""
    order = sorted(range(len(ps)), key=lambda index: ps[index])
    corrected, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[index]))
        corrected[index] = highest
    return corrected


def _present(differences: Sequence[float] | Floats) -> Floats:
    values = np.asarray(differences, dtype=np.float64)
    return values[~np.isnan(values)]


def _binomial(fewer: int, total: int) -> float:
    if total == 0:
        return 1.0
    tail = sum(math.comb(total, count) for count in range(fewer + 1))
    return min(1.0, 2.0 * (tail / (1 << total)))


def _doubled_ranks(sizes: Floats) -> Floats:
    """Twice the rank of each, the mean rank among equals."""
    _, inverse, counts = np.unique(sizes, return_inverse=True, return_counts=True)
    before = np.cumsum(counts) - counts
    return (2 * before + counts + 1)[inverse].astype(np.float64)


def _rank_p(doubled: Floats, plus: int) -> float:
    ranks = doubled.astype(np.int64)
    total = int(ranks.sum())
    if total == 0:
        return 1.0
    ways = np.zeros(total + 1)
    ways[0] = 1.0
    reached = 0
    for rank in ranks:
        # halved as we go: 2**500 does not fit, and shares are what is asked for
        moved = ways[: reached + 1] / 2
        ways[: reached + 1] = moved
        ways[rank : rank + reached + 1] += moved
        reached += int(rank)
    fewer = min(plus, total - plus)
    return min(1.0, 2 * float(ways[: fewer + 1].sum()))
