"""A trial: one answer of a model in training, and what came of it."""

from dataclasses import dataclass

from kernelsmith.domain.evaluation import Evaluation, LabelName, Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.training.data.sample import over_parent, speedup_of

CHEATS = (Verdict.CHEATED, Verdict.REFUSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a reward may look at: parent and child, judged; and what the prompt had shown."""

    parent: Evaluation | None = None
    """None for a first step: then the task's baseline is what there is to beat."""
    evaluation: Evaluation | None = None
    """None where the reply held no program, or judging was lost."""
    rejection: str = ""
    """Why the reply held no program; that is the model's own doing."""
    lost: str = ""
    """Why nobody judged it; that is ours."""
    gain: Ratio | None = None
    """Over the parent, where it was measured directly beside it."""
    shown: tuple[Evaluation, ...] = ()
    """Of the other programs in the prompt."""
    source: str = ""

    def __post_init__(self) -> None:
        told = (self.evaluation is not None) + bool(self.rejection) + bool(self.lost)
        if told != 1:
            raise ValueError("a trial was judged, rejected or lost, one of them")

    @property
    def cheated(self) -> bool:
        """Whether it reached around the judge."""
        return self.evaluation is not None and self.evaluation.verdict in CHEATS

    @property
    def correct(self) -> bool:
        """Whether the judge believed it."""
        return self.evaluation is not None and self.evaluation.verdict is Verdict.PASSED

    @property
    def speedup(self) -> Ratio | None:
        """Over the task's baseline."""
        return None if self.evaluation is None else speedup_of(self.evaluation)

    @property
    def over_parent(self) -> Ratio | None:
        """Over the parent; over the baseline where there is none that was timed."""
        if self.gain is not None:
            return self.gain
        if self.evaluation is None:
            return None
        if self.parent is None or speedup_of(self.parent) is None:
            return self.speedup
        return over_parent(self.parent, self.evaluation)

    @property
    def coverage(self) -> float | None:
        """Share of the time that ran in code of the candidate's own; none where nobody saw."""
        found = self.evaluation
        if found is None:
            return None
        shares = [(each.own, each.share) for each in found.kernels if each.share is not None]
        if shares:
            total = sum(share for _, share in shares)
            own = sum(share for is_own, share in shares if is_own)
            return own / total if total > 0 else None
        return found.coverage.own if found.coverage is not None else None

    @property
    def lazy(self) -> bool:
        """Whether the judge found that little of the time ran in code of its own."""
        return self.evaluation is not None and self.evaluation.has(LabelName.TRIVIAL)
