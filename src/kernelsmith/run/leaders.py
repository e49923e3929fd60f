"""Who led a run, and who measured as well: candidates that the noise cannot tell apart."""

from collections.abc import Sequence

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.trajectory import Exemplar, Step
from kernelsmith.search.score import Grade, grade

_KEPT = 32
"""Enough to choose a few from; a long run has thousands of others."""


class Leaders:
    """The best candidates so far, by score, each once."""

    def __init__(self) -> None:
        self._found: dict[CandidateId, tuple[Grade, Candidate]] = {}

    def add(self, step: Step) -> None:
        """Take note of a step that was told."""
        if not step.passed or step.candidate is None or step.evaluation is None:
            return
        self._found.setdefault(step.candidate.id, (grade(step.evaluation), step.candidate))
        if len(self._found) > 2 * _KEPT:
            self._found = dict(self._ranked()[:_KEPT])

    def rivals(self, best: Exemplar, most: int) -> dict[CandidateId, Candidate]:
        """Others that may be as good as the best one, likeliest first."""
        top = grade(best.evaluation)
        near = [
            (id, candidate) for id, (found, candidate) in self._ranked()
            if id != best.candidate.id and found.noise and found.may_equal(top)
        ]  # fmt: skip
        return dict(near[:most])

    def _ranked(self) -> Sequence[tuple[CandidateId, tuple[Grade, Candidate]]]:
        return sorted(self._found.items(), key=lambda each: -each[1][0].score)
