"""A sample: one step of a trajectory, taken by itself, as a model is trained on it."""

import math
from dataclasses import dataclass
from enum import StrEnum

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Brief, Exemplar, Step


class Stage(StrEnum):
    """Where a sample comes from, as in the paper."""

    COLD_START = "cold-start"
    """A teacher over the whole corpus; for supervised training."""
    EXPERT = "expert"
    """Many steps on annotated cluster centres; for reinforcement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One judged step, and where it stands in its trajectory."""

    run: str
    stage: Stage
    step: Step
    family: str
    """What the task computes, in the words of ``bench/suites/families.py``."""
    difficulty: int
    lineage: CandidateId
    """The first ancestor: samples of one lineage were derived from each other."""
    depth: int
    """Ancestors between it and the first one; 0 for a first step."""

    def __post_init__(self) -> None:
        if self.step.candidate is None or self.step.evaluation is None:
            raise ValueError(f"step {self.step.brief.number} was not judged; it teaches nothing")

    @property
    def id(self) -> str:
        """Run and number of the step."""
        return f"{self.run}/{self.brief.number}"

    @property
    def brief(self) -> Brief:
        """What was asked."""
        return self.step.brief

    @property
    def task(self) -> Task:
        """What is computed."""
        return self.step.brief.task

    @property
    def candidate(self) -> Candidate:
        """What was written."""
        assert self.step.candidate is not None
        return self.step.candidate

    @property
    def evaluation(self) -> Evaluation:
        """What it was worth."""
        assert self.step.evaluation is not None
        return self.step.evaluation

    @property
    def is_first(self) -> bool:
        """Whether it translates the reference, with no kernel to improve."""
        return self.brief.parent is None

    @property
    def correct(self) -> bool:
        """Whether the judge believed it."""
        return self.evaluation.verdict is Verdict.PASSED

    @property
    def speedup(self) -> Ratio | None:
        """Over the task's baseline; none where it was not timed."""
        timing = self.evaluation.timing
        return timing.speedup if timing is not None else None

    @property
    def gain(self) -> Ratio | None:
        """Over the parent: as measured beside it, else from both speed-ups."""
        if self.step.gain is not None:
            return self.step.gain
        parent = self.brief.parent
        return None if parent is None else over_parent(parent.evaluation, self.evaluation)

    @property
    def shown(self) -> tuple[Exemplar, ...]:
        """Every candidate whose source a prompt for it may show."""
        parent = (self.brief.parent,) if self.brief.parent is not None else ()
        return (*parent, *self.brief.inspirations, *self.brief.failures)


def speedup_of(evaluation: Evaluation) -> Ratio | None:
    """The speed-up of an evaluation that was timed."""
    return evaluation.timing.speedup if evaluation.timing is not None else None


def over_parent(parent: Evaluation, child: Evaluation) -> Ratio | None:
    """The ratio of two speed-ups, their errors taken as independent; none unless both were timed.

    Both stand over the same baseline, so it cancels out.
    """
    old, new = speedup_of(parent), speedup_of(child)
    if old is None or new is None:
        return None
    value = new.value / old.value
    below = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    above = math.hypot(math.log(new.high / new.value), math.log(old.value / old.low))
    return Ratio(value=value, low=value * math.exp(-below), high=value * math.exp(above))
