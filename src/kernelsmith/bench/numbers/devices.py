"""The same kernels on several devices: how far a speed-up is a property of the machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

import numpy as np

from kernelsmith.bench.numbers.resampling import Floats
from kernelsmith.bench.numbers.scores import Measure
from kernelsmith.bench.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """One kernel's speed-ups over devices."""

    entry: str
    entrant: str
    kernel: str
    """Hash of its source."""
    speedups: tuple[tuple[str, float], ...]
    """By device."""

    @property
    def factor(self) -> float:
        """The largest speed-up over the smallest."""
        values = [value for _, value in self.speedups]
        return max(values) / min(values)

    @property
    def flips(self) -> bool:
        """Whether it is faster than the baseline on one device and slower on another."""
        values = [value for _, value in self.speedups]
        return min(values) < 1 < max(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """Two devices by the kernels that both ran."""

    first: str
    second: str
    kernels: int
    ratio: float
    """Geometric mean of the second's speed-up over the first's."""
    rank_correlation: float | None
    """Spearman's; none where either side ties throughout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Across:
    """How much speed-ups move between devices."""

    devices: tuple[str, ...]
    spreads: tuple[Spread, ...]
    """Widest first."""
    between: float
    """Variance over devices of a kernel's log speed-up, mean over all speed-ups."""
    total: float
    """Variance of all log speed-ups."""
    pairs: tuple[Pairing, ...]

    @property
    def device_share(self) -> float:
        """Share of the variance that lies between devices rather than between kernels."""
        return self.between / self.total if self.total > 0 else 0.0

    @property
    def flipped(self) -> int:
        """Kernels that are faster here and slower there."""
        return sum(spread.flips for spread in self.spreads)


def across(records: Sequence[Record], *, measure: Measure | None = None) -> Across | None:
    """Compare kernels that were judged on more than one device; none where there are none.

    The same kernel is the same source on the same version of the same entry, whoever entered it.
    Of several seeds on one device the geometric mean counts.
    """
    measure = measure or Measure()
    found: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    who: dict[tuple[str, str, str], str] = {}
    for record in records:
        ratio = measure.of(record)
        if ratio is None or record.winner is None:
            continue
        identity = (record.entry, record.task, record.winner.sha256)
        found.setdefault(identity, {}).setdefault(str(record.device), []).append(ratio.value)
        who[identity] = min(record.entrant, who.get(identity, record.entrant))
    spreads = [
        Spread(
            entry=entry, entrant=who[entry, task, kernel], kernel=kernel,
            speedups=tuple((name, geometric_mean(own[name])) for name in sorted(own)),
        )
        for (entry, task, kernel), own in found.items()
        if len(own) > 1
    ]  # fmt: skip
    if not spreads:
        return None
    logs = [np.log([value for _, value in spread.speedups]) for spread in spreads]
    devices = tuple(sorted({device for spread in spreads for device, _ in spread.speedups}))
    return Across(
        devices=devices,
        spreads=tuple(sorted(spreads, key=lambda spread: (-spread.factor, spread.entry))),
        between=float(np.average([own.var() for own in logs], weights=[own.size for own in logs])),
        total=float(np.concatenate(logs).var()),
        pairs=tuple(
            pairing
            for index, first in enumerate(devices)
            for second in devices[index + 1 :]
            if (pairing := _pairing(first, second, spreads)) is not None
        ),
    )


def _pairing(first: str, second: str, spreads: Sequence[Spread]) -> Pairing | None:
    tables = [dict(spread.speedups) for spread in spreads]
    both = [(own[first], own[second]) for own in tables if first in own and second in own]
    if not both:
        return None
    a, b = np.asarray(both, dtype=np.float64).T
    return Pairing(
        first=first, second=second, kernels=len(both),
        ratio=math.exp(float(np.mean(np.log(b / a)))),
        rank_correlation=_correlation(_ranks(a), _ranks(b)),
    )  # fmt: skip


def _ranks(values: Floats) -> Floats:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Floats = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return found


def _correlation(a: Floats, b: Floats) -> float | None:
    if a.size < 3 or a.std() == 0 or b.std() == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])
