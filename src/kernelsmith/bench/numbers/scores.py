"""What a record scores: the definition of every metric, in one list (``docs/metrics.md``)."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from kernelsmith.bench.numbers.resampling import Combine
from kernelsmith.bench.numbers.statistics import mean, quantile
from kernelsmith.bench.record import Point, Record
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio

THRESHOLDS = (1.0, 1.2, 1.5, 2.0)
"""Of fast_p."""

HOWS = ("device", "call", "mean")
_NOTHING = math.nan
"""A record that says nothing about a metric; it never reaches a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Which of a winner's ratios is meant."""

    baseline: str = "eager"
    how: str = "device"
    """``device``, ``call`` (plain calls) or ``mean`` (the paper's: mean of independent tests)."""

    def __post_init__(self) -> None:
        if self.how not in HOWS:
            raise ValueError(f"a ratio is one of {', '.join(HOWS)}; got {self.how!r}")

    def __str__(self) -> str:
        words = {"device": "device time", "call": "plain calls", "mean": "mean of plain calls"}
        return f"over {self.baseline}, {words[self.how]}"

    def of(self, record: Record) -> Ratio | None:
        """The winner's ratio; none where nothing passed or it could not be measured."""
        return record.speedup(self.baseline, how=self.how)

    def of_step(self, point: Point) -> Ratio | None:
        """A step's ratio; steps are timed beside eager only."""
        if self.baseline != "eager":
            return None
        return point.speedup if self.how == "device" else point.call or point.speedup


class Unit(StrEnum):
    """How a metric is written."""

    SHARE = "share"
    RATIO = "ratio"
    STEPS = "steps"
    COUNT = "count"
    USD = "usd"
    SECONDS = "seconds"
    SCORE = "score"


Score = Callable[[Record, Measure], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One column: what a record scores, and how scores of tasks become one figure."""

    name: str
    label: str
    unit: Unit
    said: str
    """The definition, as ``docs/metrics.md`` and captions give it."""
    score: Score
    combine: Combine = mean
    is_log: bool = False
    """Whether scores are logarithms of ratios."""
    more_is_better: bool = True
    is_signed: bool = False
    """Whether scores below 0 exist."""

    @property
    def averages_levels(self) -> bool:
        """Whether a mean of levels makes sense, as the paper's tables have."""
        return self.combine is mean

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The ends that a figure cannot leave, on the scale of scores."""
        if self.is_signed:
            return None
        return (0.0, 1.0 if self.unit is Unit.SHARE else math.inf)

    @property
    def change_bounds(self) -> tuple[float, float] | None:
        """The ends that a difference of two figures cannot leave."""
        return (-1.0, 1.0) if self.unit is Unit.SHARE else None

    def scale(self, value: float) -> float:
        """From the scale of scores to that of the table."""
        return math.exp(value) if self.is_log else value


def is_built(record: Record) -> bool:
    """Whether the winner, or what got furthest, compiled and ran."""
    return record.verdict not in (None, Verdict.REFUSED, Verdict.BUILD_FAILED)


def correct(record: Record, measure: Measure) -> float:
    """1 where there is a winner."""
    return float(record.passed)


def fast(threshold: float) -> Score:
    """1 where the winner is more than ``threshold`` times as fast; right but untimed: nothing."""

    def score(record: Record, measure: Measure) -> float:
        if not record.passed:
            return 0.0
        ratio = measure.of(record)
        return _NOTHING if ratio is None else float(ratio.value > threshold)

    return score


def surely_faster(record: Record, measure: Measure) -> float:
    """1 where the whole interval lies above 1."""
    if not record.passed:
        return 0.0
    ratio = measure.of(record)
    return _NOTHING if ratio is None else float(ratio.is_faster)


def paper_ratio(record: Record, measure: Measure) -> float:
    """The speed-up; 0 where it is below 1 or nothing passed."""
    if not record.passed:
        return 0.0
    ratio = measure.of(record)
    if ratio is None:
        return _NOTHING
    return ratio.value if ratio.value >= 1 else 0.0


def log_ratio(record: Record, measure: Measure) -> float:
    """The logarithm of the speed-up of a winner; failures say nothing."""
    ratio = measure.of(record)
    return _NOTHING if ratio is None else math.log(ratio.value)


def log_kept(record: Record, measure: Measure) -> float:
    """The same for a user who keeps the baseline where no kernel is faster than it."""
    if not record.passed:
        return 0.0
    ratio = measure.of(record)
    return _NOTHING if ratio is None else max(0.0, math.log(ratio.value))


def slower(record: Record, measure: Measure) -> float:
    """1 where a winner is slower than the baseline; failures say nothing."""
    ratio = measure.of(record)
    return _NOTHING if ratio is None else float(ratio.value < 1)


def first_correct(record: Record, measure: Measure) -> float:
    """1 where the first step passed."""
    first = record.first
    return _NOTHING if first is None else float(first.verdict is Verdict.PASSED)


def first_fast(record: Record, measure: Measure) -> float:
    """1 where the first step was faster than eager already."""
    first = record.first
    if first is None or measure.baseline != "eager":
        return _NOTHING
    if first.verdict is not Verdict.PASSED:
        return 0.0
    ratio = measure.of_step(first)
    return _NOTHING if ratio is None else float(ratio.value > 1)


def steps_built(record: Record, measure: Measure) -> float:
    """Share of the steps whose candidate compiled; steps without a candidate count against."""
    if not record.points:
        return _NOTHING
    return sum(point.is_built for point in record.searched) / record.steps


def steps_passed(record: Record, measure: Measure) -> float:
    """Share of the steps whose candidate passed."""
    if not record.points:
        return _NOTHING
    return sum(point.verdict is Verdict.PASSED for point in record.searched) / record.steps


def best_step(record: Record, measure: Measure) -> float:
    """The step that brought the winner, counted from 1."""
    return _NOTHING if record.best_step is None or not record.passed else record.best_step + 1.0


def first_passed_step(record: Record, measure: Measure) -> float:
    """The first step that passed, counted from 1."""
    return next(
        (point.step + 1.0 for point in record.points if point.verdict is Verdict.PASSED), _NOTHING
    )


def _or_nothing(value: float | None) -> float:
    return _NOTHING if value is None else float(value)


def _of_archive(name: str) -> Score:
    def score(record: Record, measure: Measure) -> float:
        return _or_nothing(None if record.archive is None else getattr(record.archive, name))

    return score


_of_ratios = partial(Metric, unit=Unit.RATIO, score=log_ratio, is_log=True, is_signed=True)
_OF_WINNERS = "over the tasks with a winner"
METRICS: tuple[Metric, ...] = (
    Metric(name="correct", label="correct", unit=Unit.SHARE, score=correct,
           said="share of tasks with a kernel that passes the judge, guards included"),
    Metric(name="built", label="compiles", unit=Unit.SHARE,
           score=lambda record, _: float(is_built(record)),
           said="share of tasks whose winner, or what got furthest, compiled and ran"),
    *(
        Metric(name=f"fast_{p:g}", label=f"fast_{p:g}", unit=Unit.SHARE, score=fast(p),
               said=f"share of tasks with a right kernel more than {p:g} times as fast")
        for p in THRESHOLDS
    ),
    Metric(name="sure", label="surely faster", unit=Unit.SHARE, score=surely_faster,
           said="share of tasks whose speed-up's whole 95 % interval lies above 1"),
    Metric(name="average", label="average ratio", unit=Unit.RATIO, score=paper_ratio,
           said="the paper's: mean speed-up over all tasks, those below 1 and failures as 0"),
    Metric(name="kept", label="kept speed-up", unit=Unit.RATIO, score=log_kept, is_log=True,
           said="geometric mean over all tasks for a user who keeps the baseline where no kernel "
                "is faster"),
    _of_ratios(name="geometric", label="geometric mean",
               said=f"geometric mean speed-up {_OF_WINNERS}"),
    _of_ratios(name="quartile_1", label="lower quartile", combine=quantile(0.25),
               said=f"a quarter of the speed-ups lie below, {_OF_WINNERS}"),
    _of_ratios(name="median", label="median", combine=quantile(0.5),
               said=f"half of the speed-ups lie below, {_OF_WINNERS}"),
    _of_ratios(name="quartile_3", label="upper quartile", combine=quantile(0.75),
               said=f"three quarters lie below, {_OF_WINNERS}"),
    Metric(name="slower", label="slower", unit=Unit.SHARE, score=slower, more_is_better=False,
           said="share of the winners that are slower than the baseline"),
    Metric(name="first_correct", label="first step correct", unit=Unit.SHARE, score=first_correct,
           said="share of tasks whose first step passed: what one-shot generation gives"),
    Metric(name="first_fast", label="first step fast_1", unit=Unit.SHARE, score=first_fast,
           said="share of tasks whose first step was faster than eager, as the search timed it"),
    Metric(name="steps_built", label="steps that compile", unit=Unit.SHARE, score=steps_built,
           said="share of a search's steps whose candidate compiled"),
    Metric(name="steps_passed", label="steps that pass", unit=Unit.SHARE, score=steps_passed,
           said="share of a search's steps whose candidate passed"),
    Metric(name="first_passed", label="first pass at step", unit=Unit.STEPS,
           score=first_passed_step, combine=quantile(0.5), more_is_better=False,
           said="median step of the first candidate that passed, counted from 1"),
    Metric(name="best_step", label="best at step", unit=Unit.STEPS, score=best_step,
           combine=quantile(0.5), more_is_better=False,
           said="median step that brought the winner, counted from 1"),
    Metric(name="steps", label="steps", unit=Unit.STEPS, more_is_better=False,
           score=lambda record, _: float(record.steps) if record.points else _NOTHING,
           said="steps taken per task"),
    Metric(name="tokens", label="tokens", unit=Unit.COUNT, more_is_better=False,
           score=lambda record, _: _or_nothing(record.cost.tokens), said="tokens per task"),
    Metric(name="usd", label="cost", unit=Unit.USD, more_is_better=False,
           score=lambda record, _: _or_nothing(record.cost.usd), said="money per task"),
    Metric(name="seconds", label="search time", unit=Unit.SECONDS, more_is_better=False,
           score=lambda record, _: record.cost.seconds if record.points else _NOTHING,
           said="wall time of the search per task"),
    Metric(name="qd_score", label="QD score", unit=Unit.SCORE, score=_of_archive("qd_score"),
           said="sum over cells of the archive of the best score in them"),
    Metric(name="coverage", label="coverage", unit=Unit.SHARE, score=_of_archive("coverage"),
           said="share of the archive's cells that are occupied"),
)  # fmt: skip

BY_NAME = {metric.name: metric for metric in METRICS}
TIMED = tuple(
    metric
    for metric in METRICS
    if metric.name.startswith(("fast_", "quartile_"))
    or metric.name in ("correct", "sure", "average", "kept", "geometric", "median", "slower")
)
"""Metrics that another baseline or another clock changes, and correctness beside them."""
OF_RATIOS = frozenset(metric.name for metric in TIMED) - {"correct"}
"""Metrics that say something only of a system of which some winner, or none at all, was timed."""
SEARCH_ONLY = frozenset(
    ("first_correct", "first_fast", "steps_built", "steps_passed", "first_passed", "best_step",
     "steps", "seconds", "qd_score", "coverage")
)  # fmt: skip
"""Metrics that only records of a search have."""
