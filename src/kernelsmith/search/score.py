"""The score: what search ranks by, from an evaluation.

A ladder over verdicts, then the speed-up. With ``low`` the low end of the 95 % interval of the
geometric mean over workloads::

    refused, cheated        0.0
    build_failed            0.1
    crashed, timed_out      0.2
    wrong                   0.3
    passed, untimed         1.0
    passed                  1 + w * log2(1 + low)       w = 1/2 if labelled trivial, else 1

As fast as the baseline is 2.0, three times as fast 3.0. Only the low end counts, so a noisy timing
never ranks above a sure one by luck. ``degenerate`` costs nothing here: it is a property of the
task, every candidate of that task carries it, and it is reported apart.

The noise of a score is its distance to the score of the interval's middle. A candidate improves on
another only beyond it::

    score(new) - score(old) > sqrt(2) * min(noise(new), noise(old))

For equally wide intervals this asks that the 95 % interval of the ratio of both lies above 1. A
wide interval protects nobody: against a surer newcomer the newcomer's noise counts.
"""

import math
from dataclasses import dataclass

from kernelsmith.domain.evaluation import Evaluation, LabelName, Verdict

RUNGS = {
    Verdict.REFUSED: 0.0,
    Verdict.CHEATED: 0.0,
    Verdict.BUILD_FAILED: 0.1,
    Verdict.CRASHED: 0.2,
    Verdict.TIMED_OUT: 0.2,
    Verdict.WRONG: 0.3,
    Verdict.PASSED: 1.0,
}
TRIVIAL_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Grade:
    """A score with its noise; worked out once per evaluation."""

    score: float
    noise: float

    def improves_on(self, old: "Grade") -> bool:
        """Whether it is better than ``old`` beyond the noise of both."""
        return self.score - old.score > math.sqrt(2) * min(self.noise, old.noise)

    def may_equal(self, better: "Grade") -> bool:
        """Whether it could turn out as good as one that scored better, measured once more."""
        return better.score - self.score <= math.sqrt(2) * max(self.noise, better.noise)


def grade(evaluation: Evaluation) -> Grade:
    """Score one evaluation and say how sure that is."""
    rung = RUNGS[evaluation.verdict]
    if evaluation.timing is None:
        return Grade(rung, 0.0)
    speedup = evaluation.timing.speedup
    weight = TRIVIAL_WEIGHT if evaluation.has(LabelName.TRIVIAL) else 1.0
    low = weight * math.log2(1 + speedup.low)
    return Grade(rung + low, weight * math.log2(1 + speedup.value) - low)


def score(evaluation: Evaluation) -> float:
    """Return the score of one evaluation; the formula stands at the top of this module."""
    return grade(evaluation).score


def score_of_speedup(low: float) -> float:
    """Return the score that a candidate has whose interval begins at ``low``."""
    return RUNGS[Verdict.PASSED] + math.log2(1 + low)


def improves(new: Evaluation, old: Evaluation) -> bool:
    """Whether ``new`` is better than ``old`` beyond the noise of both."""
    return grade(new).improves_on(grade(old))
