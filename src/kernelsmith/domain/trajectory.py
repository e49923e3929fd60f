"""A trajectory: what was asked and proposed, what it was worth, what search made of it."""

from dataclasses import dataclass
from enum import StrEnum

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Ratio


class Role(StrEnum):
    """Why an exemplar is in a brief."""

    PARENT = "parent"
    """To be improved."""
    TOP = "top"
    """One of the best of its island."""
    DIVERSE = "diverse"
    """From a cell that differs from the parent's."""
    FAILURE = "failure"
    """What not to do again, and what came of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exemplar:
    """A candidate with what the judge said of it."""

    role: Role
    candidate: Candidate
    evaluation: Evaluation
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What ``ask`` hands a proposer: everything it may know, and nothing that is held out."""

    number: int
    """Of the ask, counted from 0: tells are applied in this order."""
    task: Task
    backend: str
    island: int
    seed: int
    """For the proposer's own choices; the same run asks with the same seeds."""
    parent: Exemplar | None = None
    """What to improve; absent while there is nothing but the reference."""
    inspirations: tuple[Exemplar, ...] = ()
    """Top and diverse ones, best first."""
    failures: tuple[Exemplar, ...] = ()
    """The most recent informative ones, newest first."""
    device: Device | None = None

    def __post_init__(self) -> None:
        if self.number < 0 or self.island < 0:
            raise ValueError(f"asks and islands are counted from 0; got {self.number}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of a chat."""

    role: str
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a proposal cost. ``None`` where nobody counted."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    attempts: int = 1
    """Requests that it took, failed ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """What a proposer wrote: a whole source, or why there is none."""

    source: str | None
    rejection: str = ""
    """Why the reply holds no candidate; present exactly when ``source`` is not."""
    proposer: str = ""
    """Who wrote it: ``rules``, ``agent``, or the model's name."""
    note: str = ""
    """What the proposer says it tried, in one line."""
    messages: tuple[Message, ...] = ()
    """Exactly what a model was sent."""
    reply: str = ""
    """Exactly what it answered."""
    usage: Usage = Usage()

    def __post_init__(self) -> None:
        if (self.source is None) is (not self.rejection):
            raise ValueError("a proposal holds a source, or says why it holds none")


class Outcome(StrEnum):
    """What the archive did with a candidate."""

    NEW = "new"
    """It opened a cell."""
    IMPROVED = "improved"
    """It took a cell from a worse one."""
    KEPT_OUT = "kept_out"
    """It passed, and its cell holds a better one."""
    FAILED = "failed"
    """It did not pass; kept as feedback."""
    DUPLICATE = "duplicate"
    """It had been judged before, and was not judged again."""
    REJECTED = "rejected"
    """The proposal held no candidate."""
    LOST = "lost"
    """It could not be judged, for reasons of ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a candidate went."""

    outcome: Outcome
    island: int
    cell: tuple[int, ...] | None = None
    score: float | None = None
    gained: float = 0.0
    """Score above what the cell held before; above 0 for ``new`` and ``improved``."""
    is_best: bool = False
    """Whether it is the best of the run so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of a journal: a brief, a proposal, an evaluation, and what the archive did."""

    brief: Brief
    proposal: Proposal
    placement: Placement
    candidate: Candidate | None = None
    evaluation: Evaluation | None = None
    gain: Ratio | None = None
    """Over the parent, measured directly beside it; absent where that was not measured."""
    lost: str = ""
    """Why it could not be judged, where it could not."""
    seconds: float = 0.0
    """From ask to tell."""

    def __post_init__(self) -> None:
        if self.evaluation is not None and self.candidate is None:
            raise ValueError("an evaluation is of a candidate")

    @property
    def passed(self) -> bool:
        """Whether the judge believed it."""
        return self.evaluation is not None and self.evaluation.verdict is Verdict.PASSED
