"""What speaks against a candidate while it is timed, collected over batches and weighed once.

A single odd batch proves nothing on a shared machine; what happens again and again does.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.cuda.lane import Replay
from kernelsmith.evaluate.cuda.nvml import Snapshot
from kernelsmith.evaluate.failure import ProgramFailed

LATE_US = 700.0
"""A kernel of no work takes 15 us on an idle device, and a time slice (some 2 ms) on a busy one."""
CLOCK_US = 150.0
CLOCK_SHARE = 0.05
CLOCK_USUAL = 0.5
"""How much longer than its events, beyond what the baseline shows, a batch may take by the
judge's clock: microseconds, a share of the batch, a share of what the baseline shows. Where a
request takes long for everyone it also takes longer for some (seen: 575 us for the baseline, 715
for an honest candidate)."""
SLOWDOWN = 1.08
"""Without heat (``GpuSettings.heat_us``) an H200's memory runs at one of two speeds 11.5 % apart,
and this limit would accuse the honest; with gigabytes a launch it does so in spite of heat."""
SLOWDOWN_US = 1.0
ALIKE = 1.03
"""By how much two sides may differ in how much slower a turn was for each."""
_CLOCK_MOST_US = 300.0
_LEEWAY = 0.35
_COLD_US = 25.0
_JUDGED_FROM_US = 200.0
_CLOCK_MOVES = 0.03


@dataclass(slots=True)
class Evidence:
    """Everything noticed about one candidate on one workload."""

    dropped: int = 0
    throttled: str = ""
    strangers: int = 0
    """Processes of others that were seen on the device while a batch ran."""
    persisting: int = 0
    """Bytes of the second-level cache that the candidate keeps, beyond what the baseline does."""
    _late: list[float] = field(default_factory=list)
    _gaps: list[tuple[float, float]] = field(default_factory=list)
    """Judge's clock minus events, and events, of the candidate's batches."""
    _baseline_gaps: list[float] = field(default_factory=list)
    _helpers: int = 0
    _clocks: list[int] = field(default_factory=list)
    _celsius: list[int] = field(default_factory=list)
    _reasons: set[str] = field(default_factory=set)

    def add_clock(self, ran: Replay, idle_us: float) -> None:
        """Take note of a candidate's batch, and of how soon the device was free after it."""
        self._gaps.append((ran.wall_us - ran.event_us, ran.event_us))
        self._late.append(idle_us)

    def add_baseline(self, ran: Replay) -> None:
        """Take note of what the same way costs the trusted side."""
        self._baseline_gaps.append(ran.wall_us - ran.event_us)

    def add_helpers(self, pids: list[int]) -> None:
        """Take note of processes that were not frozen with it."""
        self._helpers += bool(pids)

    def keep(
        self, before: Snapshot, after: Snapshot, *, last: bool, ours: frozenset[int] = frozenset()
    ) -> bool:
        """Whether the device held still, and was ours alone, over a batch of either side.

        The last one counts in any case: a time with a label is better than none. ``ours`` are the
        processes that were there before or have a right to be; where the driver numbers them
        otherwise than we do (in a container), nobody can be told from anybody.
        """
        for seen in (before, after):
            self._celsius += [seen.celsius] if seen.celsius is not None else []
            self._reasons |= seen.throttled
        if after.sm_mhz is None:
            return True  # a driver that says nothing of clocks says nothing of processes either
        self._clocks.append(after.sm_mhz)
        usual = statistics.median(self._clocks)
        moved = abs(after.sm_mhz - usual) > _CLOCK_MOVES * usual
        crowd = (before.pids or frozenset()) | (after.pids or frozenset())
        crowded = bool(ours & crowd) and bool(crowd - ours)
        self.strangers = max(self.strangers, len(crowd - ours) if crowded else 0)
        if after.throttled:
            self.throttled = ", ".join(sorted(self._reasons))
        # A kernel that draws all the power there is will be held down again: that is its speed.
        if (moved or before.throttled != after.throttled or crowded) and not last:
            self.dropped += 1
            return False
        return True

    def log(self) -> tuple[tuple[str, str], ...]:
        """Clocks, temperatures and reasons for throttling, as the card shows them."""
        found = []
        if self._clocks:
            found.append(("sm clock", f"{min(self._clocks)} to {max(self._clocks)} MHz"))
        if self._celsius:
            found.append(("temperature", f"{min(self._celsius)} to {max(self._celsius)} C"))
        found.append(("other processes", str(self.strangers)))
        found.append(("throttled", ", ".join(sorted(self._reasons)) or "no"))
        return tuple(found)

    def undisturbed(
        self, alone_us: float, together_us: float, turns: Sequence[tuple[float, float]]
    ) -> bool:
        """Whether the baseline ran as fast beside the candidate as it did alone.

        A device has slower moments (see ``SLOWDOWN``), which meet both sides of a turn alike; who
        slows the other side down does not slow itself. So where a slow turn was as slow for the
        candidate, beside its own calm turns, nobody is to blame.

        Args:
            alone_us: What the baseline took while there was no candidate.
            together_us: What it took beside the candidate, in the turns that count.
            turns: Baseline's and candidate's microseconds in every turn, warm-ups included: these
                can excuse, and dilute nothing.
        """
        limit = SLOWDOWN * alone_us + SLOWDOWN_US
        if together_us <= limit:
            return True
        calm = [own for theirs, own in turns if theirs <= limit]
        if not calm:
            return False
        usual = statistics.median(calm)
        slow = [(theirs / alone_us, own / usual) for theirs, own in turns if theirs > limit]
        return all(theirs <= ALIKE * own for theirs, own in slow)

    def judge_reading_ahead(self, part: tuple[float, float] | None, whole_us: float) -> None:
        """An eighth of the launches takes about an eighth of the time, unless all were computed.

        Raises:
            ProgramFailed: It did not.
        """
        if part is None or whole_us < _JUDGED_FROM_US:
            return
        share, us = part
        if us - _COLD_US > (share + _LEEWAY) * whole_us:
            raise ProgramFailed(
                Verdict.CHEATED,
                f"reads ahead: {share:.0%} of a batch's launches took {us:.0f} us, all of them "
                f"{whole_us:.0f} us",
            )

    def judge_leftovers(self, idle_us: Sequence[float]) -> None:
        """After plain calls, one by one: whatever still runs would share the device with others.

        Raises:
            ProgramFailed: It was busy again and again.
        """
        if late := _again([us for us in idle_us if us > LATE_US], len(idle_us)):
            raise ProgramFailed(Verdict.CHEATED, late)

    def verdict(self) -> str | None:
        """What repeats itself, in words; nothing where there is no case."""
        if late := _again([us for us in self._late if us > LATE_US], len(self._late)):
            return late
        if self.persisting:
            return (
                f"keeps {self.persisting:,} more bytes of the device's cache to itself than usual"
            )
        if self._helpers >= 2:
            return "started a process that runs on while it is frozen"
        return self.by_the_clock()

    def by_the_clock(self) -> str | None:
        """Whether its events say less than the judge's clock, again and again."""
        if not self._baseline_gaps or not self._gaps:
            return None
        usual = statistics.median(self._baseline_gaps)
        least = min(max(CLOCK_US, CLOCK_USUAL * usual), _CLOCK_MOST_US)
        hidden = [gap - usual > max(least, CLOCK_SHARE * event) for gap, event in self._gaps]
        if len(hidden) < 3 or 2 * sum(hidden) <= len(hidden):
            return None
        gap, event = self._gaps[-1]
        return (
            f"tampers with the clock: its events say {event:.0f} us a batch, the judge's "
            f"clock {gap + event:.0f} us, of which {usual:.0f} us are usual"
        )

    def forget_the_clock(self) -> None:
        """Begin anew with that: the next pair's processes are others."""
        self._gaps.clear()
        self._baseline_gaps.clear()


def _again(late: Sequence[float], times: int) -> str:
    if len(late) < 3 or 3 * len(late) <= times:
        return ""
    return (
        f"works on after its answer: {len(late)} of {times} times the device was still busy, "
        f"for {statistics.median(late):.0f} us or more"
    )
