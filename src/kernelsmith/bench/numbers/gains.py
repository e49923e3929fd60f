"""Where and at what cost searches gain: by level beyond N steps, and money for each gain."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kernelsmith.bench.numbers.histories import (
    NOT_BELOW_0,
    Histories,
    kept_over_tasks,
    over_tasks,
    ratio_of_means,
)
from kernelsmith.bench.numbers.metrics import UNNAMED
from kernelsmith.bench.numbers.resampling import Floats
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.bench.record import Record

AFTER = (5, 10, 20, 40)
_RESAMPLES = 1000
_WHAT = ("tokens", "usd", "seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beyond:
    """What searches of one level still gained after so many steps."""

    level: str
    after: int
    until: int
    """Steps of the longest search."""
    searches: int
    """That went on for longer."""
    gain: Estimate
    """Geometric mean over tasks of the best at the end over the best then."""
    improved: Estimate
    """Share of tasks that found something better."""
    rescued: Estimate
    """Share of tasks that had nothing right before and did later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What gains cost: all that was spent over all that was gained."""

    what: str
    """``tokens``, ``usd`` or ``seconds``."""
    total: float
    gains: int
    """Times that a step raised the best, above eager."""
    each: Estimate | None
    """Per gain; none where nothing was gained."""
    doubling: Estimate | None
    """Per doubling of the speed: spent over log2 of the final speed-ups."""
    uncounted: int = 0
    """Searches of which nobody knows what they took; they add nothing to what was spent."""


def beyond(
    records: Sequence[Record], *, after: Sequence[int] = AFTER, seed: int = 0
) -> list[Beyond]:
    """By level and number of steps; levels whose searches all ended by then are left out."""
    levels: dict[str, list[Record]] = {}
    for record in records:
        levels.setdefault(record.level or UNNAMED, []).append(record)
    found = []
    for level, own in sorted(levels.items()):
        for steps in after:
            longer = Histories.of([record for record in own if record.steps > steps])
            if longer is None:
                continue
            drawn = longer.drawn_weights(np.random.default_rng((seed, steps)), _RESAMPLES)
            gain = longer.kept[:, -1] - longer.kept[:, steps - 1]
            improved = (gain > 0).astype(np.float64)
            rescued = longer.correct[:, -1] - longer.correct[:, steps - 1]
            both = np.stack([improved, rescued], axis=1)
            shares = over_tasks(longer, both, drawn, is_rate=True)
            found.append(
                Beyond(
                    level=level, after=steps, until=longer.horizon, searches=len(longer.records),
                    gain=kept_over_tasks(longer, gain[:, np.newaxis], drawn)[0],
                    improved=shares[0], rescued=shares[1],
                )
            )  # fmt: skip
    return found


def gains_of(record: Record) -> int:
    """How often a step raised the best speed-up, counted from eager: 1.5 at once is one gain."""
    best, count = 1.0, 0
    for ratio in record.best_by_step():
        if ratio is not None and ratio.value > best:
            best, count = ratio.value, count + 1
    return count


def prices(records: Sequence[Record], *, seed: int = 0) -> list[Price]:
    """Tokens, money and time for each gain; what nobody counted is left out."""
    histories = Histories.of(records)
    if histories is None:
        return []
    drawn = histories.drawn_weights(np.random.default_rng(seed), _RESAMPLES)
    gains = np.asarray([gains_of(record) for record in histories.records], dtype=np.float64)
    doublings: Floats = histories.kept[:, -1] / math.log(2)
    found = []
    for what in _WHAT:
        spent = [getattr(record.cost, what) for record in histories.records]
        uncounted = sum(value is None for value in spent)
        if uncounted == len(spent):
            continue
        amounts = np.asarray([value or 0.0 for value in spent], dtype=np.float64)
        found.append(
            Price(
                what=what, total=float(amounts.sum()), gains=int(gains.sum()), uncounted=uncounted,
                each=ratio_of_means(histories, amounts, gains, drawn, bounds=NOT_BELOW_0),
                doubling=ratio_of_means(
                    histories, amounts, doublings, drawn, bounds=NOT_BELOW_0
                ),
            )
        )  # fmt: skip
    return found
