"""What the run so far says about variants, and about each value of each parameter."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kernelsmith.propose.rules.space import Parameters

Key = tuple[tuple[str, str], ...]


def key_of(chosen: Parameters) -> Key:
    """A choice of parameters, to be looked up."""
    return tuple(sorted(chosen.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One variant that was judged."""

    family: str
    chosen: Key
    gain: float | None = None
    """Logarithm of its speed-up; absent where it failed or nothing was timed."""
    failed: bool = False
    number: int = 0
    """Of the brief that it answered."""
    tf32: bool = False
    """Whether it multiplies in TF32 and was wrong by as much as that makes."""
    disowned: bool = False
    """Whether the library did nearly all of its work: so it will with any other schedule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts and log speed-ups, by parameter and value."""

    seen: Mapping[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """How often a value was judged right, and the sum of the logs of its speed-ups."""
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    tried: frozenset[Key] = frozenset()
    _all: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    """The same by parameter, over its values."""

    @classmethod
    def of(cls, trials: Iterable[Trial]) -> "Statistics":
        """Count the trials of one family."""
        seen: dict[tuple[str, str], tuple[int, float]] = {}
        failed: dict[tuple[str, str], int] = {}
        tried: set[Key] = set()
        for trial in trials:
            tried.add(trial.chosen)
            for item in trial.chosen:
                if trial.failed:
                    failed[item] = failed.get(item, 0) + 1
                elif trial.gain is not None:
                    count, total = seen.get(item, (0, 0.0))
                    seen[item] = (count + 1, total + trial.gain)
        sums: dict[str, tuple[int, float]] = {}
        for (name, _), (count, total) in seen.items():
            before, gained = sums.get(name, (0, 0.0))
            sums[name] = (before + count, gained + total)
        return cls(seen=seen, failed=failed, tried=frozenset(tried), _all=sums)

    def weight(self, name: str, value: str) -> float:
        """How promising a value is beside the others of its parameter; 1 where nothing is known."""
        count, total = self.seen.get((name, value), (0, 0.0))
        failures = self.failed.get((name, value), 0)
        trust = 0.5**failures if not count else count / (count + failures)
        every, gained = self._all.get(name, (0, 0.0))
        if not count or every == count:
            return max(trust, 0.05)
        rest = (gained - total) / (every - count)
        ahead = (total / count - rest) * math.sqrt(count)
        return max(0.05, trust * math.exp(max(-2.0, min(2.0, 4.0 * ahead))))
