"""What the run so far says about each value of each parameter."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.trajectory import Step
from kernelsmith.propose.rules.space import Parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """Counts and log speed-ups, by parameter and value; ``with_step`` gives new ones."""

    seen: Mapping[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    """How often a value was judged right, and the sum of the logs of its speed-ups."""
    failed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    tried: frozenset[tuple[tuple[str, str], ...]] = frozenset()

    def with_step(self, step: Step, chosen: Parameters) -> "Statistics":
        """Take in one step of a candidate with these parameters."""
        tried = self.tried | {tuple(sorted(chosen.items()))}
        evaluation = step.evaluation
        seen, failed = dict(self.seen), dict(self.failed)
        if evaluation is not None and not step.passed:
            for item in chosen.items():
                failed[item] = failed.get(item, 0) + 1
        elif evaluation is not None and evaluation.timing is not None:
            gain = math.log(evaluation.timing.speedup.value)
            for item in chosen.items():
                count, total = seen.get(item, (0, 0.0))
                seen[item] = (count + 1, total + gain)
        return Statistics(seen=seen, failed=failed, tried=tried)

    def weight(self, name: str, value: str) -> float:
        """How promising a value is beside the others of its parameter; 1 where nothing is known."""
        others = [(c, t) for (n, v), (c, t) in self.seen.items() if n == name and v != value]
        count, total = self.seen.get((name, value), (0, 0.0))
        failures = self.failed.get((name, value), 0)
        trust = 0.5**failures if not count else count / (count + failures)
        if not count or not others:
            return max(trust, 0.05)
        rest = sum(t for _, t in others) / sum(c for c, _ in others)
        ahead = (total / count - rest) * math.sqrt(count)
        return max(0.05, trust * math.exp(max(-2.0, min(2.0, 4.0 * ahead))))
