"""What a journal holds, as values: the header, the steps, and what was under way."""

from dataclasses import dataclass, field
from enum import StrEnum

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal, Step
from kernelsmith.run.config import RunConfig

SCHEMA = "journal/1"


class Stage(StrEnum):
    """Why a candidate was judged."""

    FIRST = "first"
    GAIN = "gain"
    """Beside its parent."""
    CONFIRM = "confirm"
    """Again and more thoroughly, since it would be the run's best."""
    RUNOFF = "runoff"
    """At the end, beside others that measured as well as it did."""
    FINAL = "final"
    """Once more at the end, as the run's result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A journal's first line: what is being run, with what, where."""

    task: Task
    config: RunConfig
    device: Device | None = None
    run: str = ""
    """Name of the run; the same in ``best.py``."""
    started: str = ""
    """UTC, ISO 8601."""
    versions: tuple[tuple[str, str], ...] = ()
    """Of Kernel-Smith, its judge and Python."""

    @property
    def seed(self) -> int:
        """From it and what was told, every ask follows."""
        return self.config.seed


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One call of an evaluator: a verdict, or why there is none."""

    stage: Stage
    candidate: Candidate
    evaluation: Evaluation | None = None
    lost: str = ""

    def __post_init__(self) -> None:
        if (self.evaluation is None) is (not self.lost):
            raise ValueError("a judged candidate has an evaluation, or was lost for a reason")

    @property
    def passed(self) -> bool:
        """Whether it was found right."""
        return self.evaluation is not None and self.evaluation.verdict is Verdict.PASSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A process that took the run up again, perhaps with another budget."""

    config: RunConfig
    started: str = ""
    versions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A whole journal. Read it while a run is under way, too."""

    header: Header
    steps: tuple[Step, ...] = ()
    """In the order of their numbers, from 0, none missing."""
    proposals: dict[int, Proposal] = field(default_factory=dict)
    """By number of the ask; those of unfinished steps are here only."""
    judged: dict[tuple[int, Stage], Judged] = field(default_factory=dict)
    """By number and stage; for ``FINAL`` the number is that of the steps told before it."""
    drained: tuple[int, ...] = ()
    """Numbers that were asked only after all earlier ones had been told: ends of budgets."""
    adapted: dict[int, str] = field(default_factory=dict)
    """Steps after which the proposer changed its weights, with the hash of what they became."""
    sessions: tuple[Session, ...] = ()
    """Later ones; the first is the header's."""
    elapsed_s: float = 0.0
    """Running time up to the last line that tells, over all sessions."""
    asked: dict[int, float] = field(default_factory=dict)
    """When proposals were asked for, in running time, by number of the ask."""

    @property
    def config(self) -> RunConfig:
        """The one in force at the end."""
        return self.sessions[-1].config if self.sessions else self.header.config

    @property
    def final(self) -> Judged | None:
        """The confirmed result, where the run came to its end after the last step."""
        found = self.judged.get((len(self.steps), Stage.FINAL))
        return found if found is not None and found.passed else None
