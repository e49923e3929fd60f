"""Whether a task's variants may multiply float32 in TF32, by what the judge said of those that did.

Torch's convolutions are allowed to, and whether they do depends on sizes and layouts. Where eager's
are exact, whatever rounds its factors is wrong, whoever multiplies: there is no use in trying
others, and no need to give up more than the rounding.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Mends:
    """Who writes what a trial that was off as TF32 is becomes without that.

    The first brief that knows of the trial does, and nobody else: briefs in flight do not see what
    others write, and would write the same.
    """

    due: tuple[Trial, ...] = ()
    """Trials that this brief is the first to know of."""
    others: frozenset[tuple[str, Key]] = frozenset()
    """What briefs in flight write, or those to come."""
    in_flight: int = 0
    """How many of those in flight are busy with that."""

    @classmethod
    def of(
        cls, trials: Sequence[Trial], spaces: Mapping[str, Space], number: int, *, lag: int | None
    ) -> "Mends":
        """For one brief.

        Args:
            trials: What it knows of.
            spaces: By family.
            number: Of the brief.
            lag: How many briefs after a trial the first comes that knows of it; all know all where
                it is absent.
        """
        first: dict[tuple[str, Key], Trial] = {}
        seen: set[tuple[str, Key]] = set()
        for each in sorted(trials, key=lambda each: each.number):
            seen.add((each.family, each.chosen))
            made = each.family, key_of(spaces[each.family].exactly(dict(each.chosen)))
            if each.tf32 and made not in seen:
                first.setdefault(made, each)
        if lag is None:
            return cls(due=tuple(first.values()))
        by = {made: each.number + lag for made, each in first.items()}
        return cls(
            due=tuple(each for made, each in first.items() if by[made] == number),
            others=frozenset(made for made in by if by[made] > number - lag and by[made] != number),
            in_flight=sum(number - lag < each < number for each in by.values()),
        )

    def has(self, family: str, chosen: Parameters) -> bool:
        """Whether a variant is another brief's to write."""
        return (family, key_of(chosen)) in self.others


def _rounding(space: Space, chosen: Parameters) -> frozenset[Rounding]:
    return frozenset((space.template, *each) for each in space.rounding(chosen))
