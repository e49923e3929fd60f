"""Whether a task's variants may multiply float32 in TF32, by what the judge said of those that did.

Torch's convolutions are allowed to, and whether they do depends on sizes and layouts. Where eager's
are exact, whatever rounds its factors is wrong, whoever multiplies: there is no use in trying
others, and no need to give up more than the rounding.
"""

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.propose.rules.space import Parameters, Space
from kernelsmith.propose.rules.statistics import Key, Trial, key_of

_NUMBER = r"(\d[\d.]*(?:e[+-]?\d+)?)"
_SEEN = re.compile(
    rf"the worst row is off by {_NUMBER} where {_NUMBER} is allowed \(eager: {_NUMBER}\)"
)
_MOST = 4e-3
"""What ten bits of each factor leave of a sum, at worst: 7e-4 for sums as they are and 1.1e-3 for
normed ones on an H200, 3e-6 where many are added up."""
_LEAST_TIMES = 32
"""How much further off than eager, at least, if eager does not round: 57 to 1700 times were seen. A
task whose eager error is TF32's own is not meant."""


def off_as_tf32(evaluation: Evaluation) -> bool:
    """Whether a result was wrong by as much as TF32 makes, beside an eager that is exact."""
    seen = _SEEN.search(evaluation.message) if evaluation.verdict is Verdict.WRONG else None
    if seen is None:
        return False
    off, _, eager = (float(each) for each in seen.groups())
    return _LEAST_TIMES * eager <= off <= _MOST


Rounding = tuple[str, str, str]
"""A family, and a choice by which it rounds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exactness:
    """What a run knows about rounding. Nothing is doubted until a variant that rounds was wrong."""

    doubted: bool = False
    trusted: frozenset[Rounding] = field(default=frozenset())
    """Choices with which something has passed all the same: not everything that may round does."""

    @classmethod
    def of(cls, trials: Iterable[Trial], spaces: Mapping[str, Space]) -> "Exactness":
        """Read the trials of a run."""
        found = [(each, _rounding(spaces[each.family], dict(each.chosen))) for each in trials]
        return cls(
            doubted=any(each.tf32 for each, _ in found),
            trusted=frozenset(
                one for each, rounding in found if each.gain is not None for one in rounding
            ),
        )

    def allows(self, space: Space, chosen: Parameters) -> bool:
        """Whether a variant does not round, or may."""
        return not self.doubted or _rounding(space, chosen) <= self.trusted

    def exactly(self, space: Space, chosen: Parameters) -> dict[str, str]:
        """The variant, or the nearest one that does not round where this may not."""
        return dict(chosen) if self.allows(space, chosen) else space.exactly(chosen)

    def starts(self, space: Space) -> list[dict[str, str]]:
        """What to begin with: the first start made exact, those that are, then the others."""
        if not self.doubted:
            return space.starts
        made = [self.exactly(space, each) for each in space.starts]
        exact = [each for each in space.starts if self.allows(space, each)]
        found: list[dict[str, str]] = []
        for each in (made[0], *exact, *made):
            if each not in found:
                found.append(each)
        return found


def to_mend(
    trials: Iterable[Trial], spaces: Mapping[str, Space], written: Container[tuple[str, Key]]
) -> list[Trial]:
    """Trials that were off as TF32 is and have no exact one behind them yet, oldest first.

    Args:
        trials: What is known.
        spaces: By family.
        written: What was tried, or is being judged.
    """
    due: dict[tuple[str, Key], Trial] = {}
    for each in sorted(trials, key=lambda each: each.number):
        made = each.family, key_of(spaces[each.family].exactly(dict(each.chosen)))
        if each.tf32 and made not in written:
            due.setdefault(made, each)
    return list(due.values())


def _rounding(space: Space, chosen: Parameters) -> frozenset[Rounding]:
    return frozenset((space.template, *each) for each in space.rounding(chosen))
