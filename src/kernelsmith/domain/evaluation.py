"""An evaluation: one candidate, judged once on one task by one device."""

import math
from dataclasses import dataclass, field
from enum import StrEnum

from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.timing import Timing


class Verdict(StrEnum):
    """How far a candidate got. Everything but ``PASSED`` is the candidate's own doing."""

    REFUSED = "refused"
    """A guard saw the source reach around the benchmark; it was never run, or never timed."""
    BUILD_FAILED = "build_failed"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    WRONG = "wrong"
    CHEATED = "cheated"
    """It ran, and evidence shows that it gamed the judge; the message says which."""
    PASSED = "passed"

    def __bool__(self) -> bool:
        raise TypeError("a verdict is not a yes or no; compare it: verdict is Verdict.PASSED")


class LabelName(StrEnum):
    """What a reader of a passed evaluation must know before quoting its speed-up."""

    ROBUST = "robust"
    """Right on odd strides, extremes, empty and size-one inputs too; export asks for it."""
    FRAGILE = "fragile"
    """Right on the task's inputs, not on those; the reason names the first failure."""
    TRIVIAL = "trivial"
    """Little of the time ran in code that the candidate built: a lazy optimisation."""
    DEGENERATE = "degenerate"
    """The task itself asks for less than it seems to; its speed-ups are reported apart."""
    ALGEBRAIC = "algebraic"
    """Its author says that it computes less by algebra that holds for all inputs; says which."""
    NOISY = "noisy"
    """The interval stayed wider than asked for when the budget was spent."""
    SEED_WEIGHTS = "seed_weights"
    """Weights were matched by seed only, as foreign suites do."""
    PREPARED = "prepared"
    """The candidate repacked static weights in ``prepare()``, outside the clock."""
    NO_FLOAT64 = "no_float64"
    """The reference does not run in float64; errors are against its own precision."""
    NO_COVERAGE = "no_coverage"
    """This machine let nobody see where the time went."""
    LOW_PRECISION = "low_precision"
    """The task allows computing below the precision of its inputs."""
    UNTIMED = "untimed"
    """Right, but checked in an interpreter or under emulation: nothing was timed."""
    EMULATED = "emulated"
    """Ran on hardware that imitates the device it was written for; says nothing of its speed."""
    NO_GRAPH = "no_graph"
    """Capturing a graph was not sound; the samples lie between device events."""
    THROTTLED = "throttled"
    """The device held its clocks down while it was timed; the log says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One label with the reason it was given."""

    name: LabelName
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """How far a candidate's worst output was from float64, on one workload."""

    workload: str
    error: float
    """Worst row or tile: 2-norm of the error over the reference's (see ``docs/correctness.md``)."""
    budget: float
    """What was allowed in the same norm."""
    eager_error: float
    """What PyTorch eager itself is off by, in the same norm."""
    trials: int

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise ValueError("an accuracy rests on at least one trial")


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Where the time of the candidate's launches ran, seen from outside its process."""

    own: float
    """Share in code that the candidate built, of own and library time together."""
    library: float
    samples: int
    """Samples in own or library code; interpreter and kernel samples are not counted."""

    def __post_init__(self) -> None:
        if self.samples < 1 or not 0 <= self.own <= 1 or abs(self.own + self.library - 1) > 1e-6:
            raise ValueError(f"shares of some samples, adding up to 1; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One kernel that a candidate launches on the device, as seen from outside its process."""

    name: str
    own: bool
    """Whether the candidate brought it; otherwise a library did."""
    launches: int
    """Per call of the candidate."""
    share: float | None = None
    """Of the device time."""
    registers: int | None = None
    """Per thread."""
    spills: int | None = None
    """Bytes of local memory per thread; more than 0 means that registers ran out."""
    shared_bytes: int | None = None
    """Shared memory per block."""
    grid: tuple[int, ...] = ()
    block: tuple[int, ...] = ()
    precision: str = ""
    """What it multiplies in, such as ``float32``, ``tf32`` or ``bfloat16``; empty: not known."""
    config: str = ""
    """What an autotuner chose, readable; empty: nothing was tuned."""

    def __post_init__(self) -> None:
        if not self.name or self.launches < 1:
            raise ValueError(f"a kernel has a name and was launched; got {self}")
        if self.share is not None and not 0 <= self.share <= 1:
            raise ValueError(f"a share of the device time lies in 0 to 1; got {self.share}")
        counts = (self.registers, self.spills, self.shared_bytes, *self.grid, *self.block)
        if any(count is not None and count < 0 for count in counts):
            raise ValueError(f"counts are not negative; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Roofline:
    """How close one workload came to what the device can do at all."""

    workload: str
    bytes: int
    """What must be moved at least: every input read once, every output written once."""
    flops: int | None = None
    floor_us: float
    """The time below which nobody gets, from the measured bandwidth and peak."""
    bandwidth_share: float
    """Bandwidth achieved over bandwidth measured; caches can lift it above 1."""
    compute_share: float | None = None

    def __post_init__(self) -> None:
        if self.bytes < 0 or (self.flops is not None and self.flops < 0):
            raise ValueError(f"bytes and operations are not negative; got {self}")
        if not 0 < self.floor_us < math.inf:
            raise ValueError(f"a floor lies above 0 us; got {self.floor_us}")
        shares = [self.bandwidth_share, 0.0 if self.compute_share is None else self.compute_share]
        if not all(0 <= share < math.inf for share in shares):
            raise ValueError(f"shares are not negative; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """One candidate, judged once on one task by one device. Forward computation only."""

    task: str
    candidate: CandidateId
    device: Device
    verdict: Verdict
    timing: Timing | None = None
    """Present exactly when the verdict is ``PASSED`` and not labelled ``UNTIMED``; there is no 0.0
    or -1.0 stand-in."""
    message: str = ""
    """What the next proposer should read: compiler output, the first mismatch, the traceback."""
    labels: tuple[Label, ...] = ()
    accuracy: tuple[Accuracy, ...] = ()
    coverage: Coverage | None = None
    output: str = ""
    """Tail of what the candidate printed."""
    spent: tuple[tuple[str, float], ...] = field(default=())
    """Seconds per stage, outside the speed-up."""
    judge: str = ""
    """Version of the judge; evaluations by different judges do not compare."""
    kernels: tuple[Kernel, ...] = ()
    """What ran on the device, in the order of its share."""
    rooflines: tuple[Roofline, ...] = ()
    device_log: tuple[tuple[str, str], ...] = ()
    """Clocks, throttle reasons and temperatures while it was timed, by name."""

    def __post_init__(self) -> None:
        passed = self.verdict is Verdict.PASSED
        untimed = passed and self.has(LabelName.UNTIMED)
        if (self.timing is not None) is not (passed and not untimed):
            raise ValueError(
                f"timing goes with PASSED only, and not with untimed; got {self.verdict}"
                f"{', untimed' if untimed else ''}, {self.timing}"
            )
        if not passed and not self.message.strip():
            raise ValueError(f"{self.verdict} needs a message for the next proposer to read")
        names = [label.name for label in self.labels]
        if len(set(names)) != len(names):
            raise ValueError(f"a label is given once; got {names}")
        if LabelName.ROBUST in names and LabelName.FRAGILE in names:
            raise ValueError("robust and fragile exclude each other")

    def has(self, name: LabelName) -> bool:
        """Whether the label was given."""
        return any(label.name is name for label in self.labels)
