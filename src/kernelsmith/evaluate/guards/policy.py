"""The rule that turns coverage into a judgement: how much library time a task allows.

- ``any``: nothing to judge.
- ``some``: less than 2 % of the time in the candidate's own code is a cheat (a fallback to torch,
  or a decoy kernel beside it); less than 20 % is labelled trivial.
- ``none``: more than 10 % of the time in library code is a cheat.

Two things keep the rule fair. An accusation needs the whole one-sided 99 % interval on its side, so
few samples never convict; the label goes by the share itself. And a launch must allocate its output
through torch, which costs some 0.25 us of library time each: while library time stays within an
allowance per launch it is taken for that, the shares above do not apply, and only a candidate
whose own code hardly shows at all is judged (below 0.5 %: a cheat; below 2 %: trivial).
"""

import math
from dataclasses import dataclass

from kernelsmith.domain.evaluation import Coverage
from kernelsmith.domain.task import Library

DECOY = 0.02
ABSENT = 0.005
TRIVIAL = 0.20
LIBRARY_LIMIT = 0.10
DECISIVE = 300
"""That many samples with none in own code put Wilson's upper limit below ``DECOY``."""
EXHAUSTIVE = 3000
"""Beyond that, a share near ``DECOY`` stays unproven and passes as trivial."""
GLUE_US = 2.0
"""Library time per launch that is taken for glue: about eight times ``torch.empty``."""
_Z = 2.326
"""One-sided 99 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Evidence of a cheat; the evaluation's verdict is ``cheated`` with this message."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trivial:
    """Grounds for the label ``trivial``."""

    reason: str


def judge_coverage(
    coverage: Coverage, library: Library, *, library_us: float | None = None, certain: bool = False
) -> Violation | Trivial | None:
    """Hold coverage against what the task allows.

    Args:
        coverage: Where the sampled launches' time ran.
        library: How much library code the task allows.
        library_us: Time per launch in library code; without it there is no allowance.
        certain: The shares were measured, not sampled: no interval around them.
    """
    if library is Library.ANY:
        return None
    most = coverage.own if certain else _upper(coverage.own, coverage.samples)
    glue_only = library_us is not None and library_us <= GLUE_US
    if most < (ABSENT if glue_only else DECOY):
        return Violation(rule="decoy" if coverage.own > 0 else "fallback", message=_shown(coverage))
    if library is Library.NONE and not glue_only:
        least = 1 - most
        if least > LIBRARY_LIMIT:
            return Violation(
                rule="library",
                message=f"library code: {coverage.library:.0%} of the time ran in libraries, and "
                f"this task allows {LIBRARY_LIMIT:.0%} ({coverage.samples} samples)",
            )
    if coverage.own < (DECOY if glue_only else TRIVIAL):
        return Trivial(
            reason=f"{coverage.own:.1%} of the time ran in code that the candidate built "
            f"({coverage.samples} samples)"
        )
    return None


def undecided(coverage: Coverage, library: Library, *, library_us: float | None = None) -> bool:
    """Whether it looks like a violation, by samples too few to prove or disprove one."""
    if library is Library.ANY:
        return False
    glue_only = library_us is not None and library_us <= GLUE_US
    limit = ABSENT if glue_only else DECOY
    if coverage.own < limit <= _upper(coverage.own, coverage.samples):
        return coverage.samples < EXHAUSTIVE  # looks guilty; only more samples can tell
    if coverage.samples >= DECISIVE:
        return False
    if library is Library.NONE and not glue_only and coverage.library > LIBRARY_LIMIT:
        return True
    return coverage.own < (DECOY if glue_only else TRIVIAL)


def _upper(share: float, samples: int) -> float:
    """Wilson's upper limit of a share; right at 0 and 1 too, where the usual one has no width."""
    z2 = _Z * _Z / samples
    spread = _Z * math.sqrt(share * (1 - share) / samples + z2 / (4 * samples))
    return min(1.0, (share + z2 / 2 + spread) / (1 + z2))


def _shown(coverage: Coverage) -> str:
    if coverage.own == 0:
        return (
            "torch fallback: none of the time ran in code that the candidate built "
            f"({coverage.samples} samples)"
        )
    return (
        f"decoy: only {coverage.own:.2%} of the time ran in code that the candidate built, "
        f"the rest in libraries ({coverage.samples} samples)"
    )
