"""What refining does: kernels rescued, kept and broken from one step to the next.

After KernelBench-X, which found that rescued kernels are slower than those that were right from the
start. Twice: along lineages (a candidate against the one it was derived from), and by rounds (what
a task had after i steps against what it had after j).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.bench.numbers.curves import CHECKPOINTS
from kernelsmith.bench.record import Point, Record
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio

KINDS = ("rescued", "kept", "broken", "stuck", "from the reference")
"""Fail to pass, pass to pass, pass to fail, fail to fail; and those without a parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Candidates of one kind of transition."""

    kind: str
    count: int
    share: float
    """Of all candidates that were judged."""
    speedup: float | None
    """Geometric mean over eager of those that passed and were timed."""
    gain: float | None
    """Geometric mean over the parent, of those with two timings."""
    faster: int
    """How many were faster than their parent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What tasks had after ``to`` steps, against what they had after ``since``."""

    since: int
    to: int
    searches: int
    built: float
    """Share of searches that had something compiled by then."""
    correct: float
    """Share that had something right by then."""
    average: float | None
    """Arithmetic mean of the best speed-ups then, of those that are right: KernelBench-X's."""
    rescued: int
    """Right now, not before."""
    rescued_average: float | None
    persistent: int
    """Right before already."""
    persistent_average: float | None


def flows(records: Sequence[Record]) -> list[Flow]:
    """Every judged candidate by what its parent was; nothing where nobody searched."""
    members: dict[str, list[tuple[Point, Point | None]]] = {kind: [] for kind in KINDS}
    for record in records:
        by_step = {point.step: point for point in record.points}
        for point in record.searched:
            if point.verdict is None:
                continue
            parent = None if point.parent is None else by_step.get(point.parent)
            members[_kind(point, parent)].append((point, parent))
    total = sum(len(own) for own in members.values())
    return [_flow(kind, own, total) for kind, own in members.items() if own]


def rounds(records: Sequence[Record], *, checkpoints: Sequence[int] = CHECKPOINTS) -> list[Round]:
    """From checkpoint to checkpoint; a search that ended early stays as it was."""
    searches = [record for record in records if record.points]
    if not searches:
        return []
    horizon = max(record.steps for record in searches)
    ends = sorted({k for k in checkpoints if 0 < k < horizon} | {horizon})
    found = []
    for since, to in zip([0, *ends[:-1]], ends, strict=True):
        before = [_best(record, since) for record in searches]
        now = [_best(record, to) for record in searches]
        rescued = [n for b, n in zip(before, now, strict=True) if not b[0] and n[0]]
        persistent = [n for b, n in zip(before, now, strict=True) if b[0] and n[0]]
        found.append(
            Round(
                since=since, to=to, searches=len(searches),
                built=sum(_is_built(record, to) for record in searches) / len(searches),
                correct=sum(right for right, _ in now) / len(searches),
                average=_mean([ratio for right, ratio in now if right]),
                rescued=len(rescued), rescued_average=_mean([ratio for _, ratio in rescued]),
                persistent=len(persistent),
                persistent_average=_mean([ratio for _, ratio in persistent]),
            )
        )  # fmt: skip
    return found


def _kind(point: Point, parent: Point | None) -> str:
    if parent is None:
        return "from the reference"
    before, now = parent.verdict is Verdict.PASSED, point.verdict is Verdict.PASSED
    if now:
        return "kept" if before else "rescued"
    return "broken" if before else "stuck"


def _flow(kind: str, members: Sequence[tuple[Point, Point | None]], total: int) -> Flow:
    gains = [gain for pair in members if (gain := _gain(*pair)) is not None]
    timed = [math.log(p.speedup.value) for p, _ in members if p.speedup is not None]
    return Flow(
        kind=kind, count=len(members), share=len(members) / total,
        speedup=math.exp(math.fsum(timed) / len(timed)) if timed else None,
        gain=math.exp(math.fsum(map(math.log, gains)) / len(gains)) if gains else None,
        faster=sum(gain > 1 for gain in gains),
    )  # fmt: skip


def _gain(point: Point, parent: Point | None) -> float | None:
    """Over the parent: measured beside it where it was, else by both ratios to eager."""
    if point.gain is not None:
        return point.gain.value
    if parent is None or parent.speedup is None or point.speedup is None:
        return None
    return point.speedup.value / parent.speedup.value


def _best(record: Record, steps: int) -> tuple[bool, Ratio | None]:
    """Whether something was right after so many steps, and the best ratio then."""
    taken = record.searched[:steps]
    timed = [point.speedup for point in taken if point.speedup is not None]
    right = any(point.verdict is Verdict.PASSED for point in taken)
    return right, max(timed, key=lambda ratio: ratio.value, default=None)


def _is_built(record: Record, steps: int) -> bool:
    return any(point.is_built for point in record.searched[:steps])


def _mean(ratios: Sequence[Ratio | None]) -> float | None:
    values = [ratio.value for ratio in ratios if ratio is not None]
    return math.fsum(values) / len(values) if values else None
