"""The two sides of a timed pair on a device, their samples, and why a pair may not count."""

import math
from dataclasses import dataclass, field

from kernelsmith.domain.timing import Pair
from kernelsmith.evaluate.cuda.answer import Placed
from kernelsmith.evaluate.cuda.lane import DeviceLane
from kernelsmith.evaluate.cuda.oracle import ArenaView, DeviceOracle
from kernelsmith.evaluate.values import Launches


class Uncapturable(Exception):
    """A side cannot be captured into a graph; both are timed by plain launches then."""


class Disturbed(Exception):
    """The baseline ran at another speed than alone; nothing of this pair counts."""

    def __init__(self, message: str, *, stale: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.stale, self.late = stale, late
        """Whether others had the device for long in between, so that it proves nothing; or only the
        candidate's answers came late, which is looked at once more by itself."""


@dataclass(slots=True)
class Side:
    """A lane, and what of it was captured."""

    lane: DeviceLane
    captured: Launches | None = None
    """The outputs of the graph; none where launches are plain."""

    def call_once(self, view: ArenaView) -> None:
        """Have it load libraries, or compile, while nobody waits for it to be timed."""
        self.lane.attach(view)
        self.lane.release(self.lane.run([0]))
        self.lane.detach()


@dataclass(slots=True)
class Samples:
    """Microseconds per launch of both sides, batch by batch."""

    baseline: list[float] = field(default_factory=list)
    candidate: list[float] = field(default_factory=list)
    turns: list[tuple[float, float]] = field(default_factory=list)
    """Both sides of every turn, those that do not count as samples included."""

    @property
    def pair(self) -> Pair:
        """As the timing keeps them."""
        return Pair(baseline_us=tuple(self.baseline), candidate_us=tuple(self.candidate))


@dataclass(frozen=True, slots=True)
class Suspect:
    """The launch whose outputs are furthest from the baseline's, and how far: not yet wrong."""

    launch: int
    off: float


def furthest(
    oracle: DeviceOracle, baseline: DeviceLane, candidate: DeviceLane, made: dict[bool, Launches]
) -> Suspect | None:
    """Whom to look at in full; nobody where there is no distance between outputs."""
    pairs, index = [], []
    for launch in range(len(made[True].addresses)):
        for theirs, ours in zip(
            candidate.outputs(made[True], launch), baseline.outputs(made[False], launch),
            strict=False,
        ):  # fmt: skip
            if not isinstance(theirs, Placed) or not isinstance(ours, Placed):
                return Suspect(launch, math.inf)
            if (theirs.spec.shape, theirs.spec.dtype) != (ours.spec.shape, ours.spec.dtype):
                return Suspect(launch, math.inf)
            if theirs.spec.is_float:
                pairs.append((theirs, ours))
                index.append(launch)
    if not pairs:
        return None
    errors = oracle.relative(pairs)
    worst = max(range(len(errors)), key=errors.__getitem__)
    return Suspect(index[worst], errors[worst])
