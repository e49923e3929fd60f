"""A record: what one entrant achieved on one entry of a suite with one seed.

Tables, figures and exports are functions of records alone. A record holds no source: the winner's
lies in a file beside the records, named here with its hash. How records lie in a file: ``ledger``.
"""

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import NamedTuple

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Label, LabelName, Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.run.dispatch import PROPOSER as DISPATCH

BASELINES = ("eager", "compile", "max-autotune", "graph")
"""What a winner can be measured beside; the first is the paper's."""
_UNBUILT = (Verdict.REFUSED, Verdict.BUILD_FAILED)
_HASH = re.compile(r"\w*")
_TINY = 1e-9
"""A ratio lies above 0, however little its mean is known."""


def _refuse_negative(**values: float | None) -> None:
    """See to it that what was counted or measured can be; none where nobody did."""
    for name, value in values.items():
        if value is not None and not 0 <= value < math.inf:
            raise ValueError(f"{name} is finite and not negative; got {value}")


class Key(NamedTuple):
    """What is done once in a bench, and not again when it is resumed."""

    entrant: str
    entry: str
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadRatio:
    """One timed workload of a winner beside one baseline."""

    workload: str
    speedup: Ratio
    call: Ratio | None = None
    mode: str = "calls"
    """How ``speedup`` was taken: ``graph``, ``events`` or ``calls``."""
    us: float
    """The winner's median per launch."""
    baseline_us: float

    def __post_init__(self) -> None:
        if not (0 < self.us < math.inf and 0 < self.baseline_us < math.inf):
            raise ValueError(f"a launch takes more than 0 us; got {self.us}, {self.baseline_us}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A winner beside one baseline: two ratios with their intervals, or why there are none."""

    baseline: str
    """One of ``BASELINES``."""
    device: Ratio | None = None
    """Geometric mean over workloads: graphs on both sides on a GPU, plain calls on a processor."""
    call: Ratio | None = None
    """Plain calls on both sides, dispatch included, as published tables give; none on a processor,
    where ``device`` is that already."""
    mean: Ratio | None = None
    """The paper's number: arithmetic mean over ``tests`` fresh process pairs, of plain calls."""
    tests: int = 0
    """Fresh process pairs that the ratios rest on, of the workload with the fewest."""
    workloads: tuple[WorkloadRatio, ...] = ()
    trouble: str = ""
    """Why it could not be measured; present exactly where ``device`` is not."""

    def __post_init__(self) -> None:
        if self.baseline not in BASELINES:
            raise ValueError(f"no baseline {self.baseline!r}; known are {', '.join(BASELINES)}")
        if (self.device is None) is (not self.trouble):
            raise ValueError("a winner has a ratio to a baseline, or there is a reason why not")

    @property
    def plain(self) -> Ratio | None:
        """Plain calls: what published tables give, on whatever device."""
        return self.call if self.call is not None else self.device


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One step of a search, as far as a table or a curve needs it."""

    step: int
    """Counted from 0."""
    verdict: Verdict | None = None
    """None where the step brought no candidate of its own: ``outcome`` says why."""
    outcome: str = ""
    """What the archive did: ``new``, ``improved``, ``kept_out``, ``failed``, ``duplicate``,
    ``rejected`` or ``lost``."""
    speedup: Ratio | None = None
    """Over eager, of this step's candidate."""
    call: Ratio | None = None
    gain: Ratio | None = None
    """Over the parent, measured beside it."""
    parent: int | None = None
    """The step whose candidate it was derived from; none: from the reference."""
    is_best: bool = False
    """Whether it was the best of the run when it came."""
    proposer: str = ""
    tokens: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    """From ask to tell."""

    def __post_init__(self) -> None:
        _refuse_negative(
            step=self.step, parent=self.parent, tokens=self.tokens, usd=self.usd,
            seconds=self.seconds,
        )  # fmt: skip

    @property
    def is_built(self) -> bool:
        """Whether a candidate was handed in and compiled: what compile rates count."""
        return self.verdict is not None and self.verdict not in _UNBUILT


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a record took. ``None`` where nobody counted."""

    tokens: int | None = None
    usd: float | None = None
    seconds: float = 0.0
    """Wall time of the search over all its sessions."""
    judging_s: float = 0.0
    """Wall time of judging the winner afterwards, beside every baseline."""

    def __post_init__(self) -> None:
        _refuse_negative(
            tokens=self.tokens, usd=self.usd, seconds=self.seconds, judging_s=self.judging_s
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """How much of the archive a search filled."""

    cells: int
    """Elites over all islands."""
    coverage: float
    """Share of cells that are occupied on any island."""
    qd_score: float
    """Sum over cells of the best score on any island; what passed scores above 0."""

    def __post_init__(self) -> None:
        _refuse_negative(cells=self.cells, coverage=self.coverage, qd_score=self.qd_score)
        if self.coverage > 1:
            raise ValueError(f"coverage is a share of the cells; got {self.coverage}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Winner:
    """Where the winner's source lies."""

    candidate: CandidateId
    path: str
    """Relative to the file of records, and below it: files of others are merged and read."""
    sha256: str

    def __post_init__(self) -> None:
        place = PurePosixPath(self.path)
        outside = place.is_absolute() or ".." in place.parts or "\0" in self.path
        if outside or not place.parts:
            raise ValueError(f"a winner lies below its records; got {self.path!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the entrant was allowed, so that tables compare like with like."""

    steps: int = 0
    """Most steps of a search; 0 for entrants that do not search."""
    policy: str = ""
    early_stop: int | None = None
    """The search ended after this many steps in a row without a new best."""
    seconds: float | None = None
    tokens: int | None = None
    usd: float | None = None
    target: float | None = None
    """A speed-up at which the search ended."""
    concurrency: int | None = None
    """Steps in flight; none where nobody wrote it down."""
    search_effort: str = ""
    """How thoroughly each candidate of the search was judged."""
    tests: int = 0
    """Fresh process pairs that each winner was judged by at the end; 0: until the interval was
    narrow, see ``effort``."""
    effort: str = "thorough"
    preset: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entrant on one entry with one seed, judged to the end."""

    entrant: str
    entry: str
    seed: int = 0
    suite: str
    level: str = ""
    category: str = ""
    family: str = ""
    dtype: str = ""
    note: str = ""
    """What the suite says against the task: ``degenerate: ...``, ``suspect: ...``, or nothing."""
    name: str = ""
    """The task's own name (``Task.name``); KernelBench's layout goes by it."""
    task: str = ""
    """Hash of the task; two records compare only where it is the same."""
    backend: str
    rules: Rules = Rules()
    verdict: Verdict | None
    """Of the winner; where nothing passed, of the candidate that got furthest; none where nothing
    could be judged at all (every proposal was rejected)."""
    message: str = ""
    """Why nothing passed."""
    confirmed: bool = False
    """Whether the winner passed again at the end, on fresh inputs."""
    beside: tuple[Beside, ...] = ()
    """One for each baseline that was asked for, of a winner that passed."""
    labels: tuple[Label, ...] = ()
    own: float | None = None
    """Share of the winner's time in code of its own; none where nobody saw."""
    points: tuple[Point, ...] = ()
    """Every step in order; empty for entrants that do not search."""
    best_step: int | None = None
    """The step that brought the winner."""
    stop: str = ""
    """Which rule ended the search."""
    archive: Archive | None = None
    cost: Cost = Cost()
    winner: Winner | None = None
    device: Device
    judge: str = ""
    """Version of the judge; numbers by different judges do not compare."""
    versions: tuple[tuple[str, str], ...] = ()
    run: str = ""
    """The run's folder, relative to the file of records; empty where there was no search."""
    finished: str = ""
    """UTC, ISO 8601."""

    def __post_init__(self) -> None:
        if not _HASH.fullmatch(self.task):
            raise ValueError(f"a task's hash is one word; got {self.task!r}")
        if self.beside and self.verdict is not Verdict.PASSED:
            raise ValueError(f"ratios go with a winner that passed; got {self.verdict}")
        names = [each.baseline for each in self.beside]
        if len(set(names)) != len(names):
            raise ValueError(f"a winner is measured beside a baseline once; got {names}")

    @property
    def key(self) -> Key:
        """What resuming does not do again."""
        return Key(self.entrant, self.entry, self.seed)

    @property
    def passed(self) -> bool:
        """Whether there is a winner."""
        return self.verdict is Verdict.PASSED

    @property
    def is_degenerate(self) -> bool:
        """Whether the suite's note or our judge says that the task asks for less than it seems."""
        labelled = any(each.name is LabelName.DEGENERATE for each in self.labels)
        return labelled or self.note.startswith("degenerate:")

    @property
    def is_suspect(self) -> bool:
        """Whether anything at all is known against the task, degenerate or not."""
        return self.is_degenerate or self.note.startswith("suspect:")

    @property
    def is_noisy(self) -> bool:
        """Whether the winner's interval stayed wider than asked for."""
        return any(each.name is LabelName.NOISY for each in self.labels)

    @property
    def searched(self) -> tuple[Point, ...]:
        """The steps of the search itself.

        A run may end with a candidate that it puts together of the winners of single workloads.
        Nobody asked a proposer for that, and it is taken where the search happens to end.
        """
        return tuple(point for point in self.points if point.proposer != DISPATCH)

    @property
    def steps(self) -> int:
        """Steps that the search took."""
        return len(self.searched)

    @property
    def first(self) -> Point | None:
        """The first step: what one-shot generation would have given."""
        return self.points[0] if self.points else None

    def over(self, baseline: str = "eager") -> Beside | None:
        """The winner beside one baseline; none where that was not asked for or nothing passed."""
        return next((each for each in self.beside if each.baseline == baseline), None)

    def speedup(self, baseline: str = "eager", *, how: str = "device") -> Ratio | None:
        """The ratio to a baseline; none where there is none.

        Args:
            baseline: One of ``BASELINES``.
            how: ``device``, ``call`` (plain calls, on any device) or ``mean`` (the paper's).
        """
        found = self.over(baseline)
        if found is None:
            return None
        return {"device": found.device, "call": found.plain, "mean": found.mean}[how]

    def best_by_step(self) -> tuple[Ratio | None, ...]:
        """The best speed-up over eager after each step, as the search saw it; none before any."""
        best: Ratio | None = None
        found = []
        for point in self.searched:
            if point.is_best and point.speedup is not None:
                best = point.speedup
            found.append(best)
        return tuple(found)


class Fault(StrEnum):
    """Through whose fault a job has no record."""

    OURS = "ours"
    """Our machinery failed: the same again may well go through."""
    REQUEST = "request"
    """It cannot be done as it was asked for; the reason says what to change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Missing:
    """What has no record, and why: a task that the suite could not give, or one we could not judge.

    The first has no entrant. The second is tried again when the bench is resumed.
    """

    entry: str
    reason: str
    entrant: str = ""
    seed: int = 0
    level: str = ""
    fault: Fault | None = None
    """Of a job; none where the suite could not give the task, and where nobody wrote it down."""
    task: str = ""
    """As of the record that is not there; empty where the suite could not give the task."""

    def __post_init__(self) -> None:
        if not self.reason:
            raise ValueError(f"{self.entry} is missing for a reason; it was not given")

    @property
    def key(self) -> Key:
        """As of the record that is not there."""
        return Key(self.entrant, self.entry, self.seed)

    def is_answered_by(self, record: Record) -> bool:
        """Whether this is the record that was missing, of the same version of the task."""
        if not self.entrant:  # what a suite could not give once is there for everybody
            return self.entry == record.entry
        return self.key == record.key and self.task in ("", record.task)


def mean_ratio(values: tuple[float, ...]) -> Ratio | None:
    """Arithmetic mean of independent ratios, with its 95 % interval; none of fewer than two."""
    if len(values) < 2:
        return None
    count = len(values)
    mean = math.fsum(values) / count
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in values) / (count - 1))
    half = _t(count - 1) * spread / math.sqrt(count)
    return Ratio(value=mean, low=max(mean - half, _TINY), high=mean + half)


def _t(freedom: int) -> float:
    """Student's 97.5 % quantile (Cornish and Fisher's expansion; exact for 1 and 2)."""
    if freedom == 1:
        return 12.7062
    if freedom == 2:
        return 4.3027
    z = 1.959964
    terms = (
        z,
        (z**3 + z) / 4 / freedom,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96 / freedom**2,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384 / freedom**3,
    )
    return math.fsum(terms)
