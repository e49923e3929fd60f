"""From records to figures with intervals: per system, and per level, category, family and dtype.

Pure functions. What is compared stands on the same tasks; what was left out for that is said. The
order in which records come changes nothing: a bench that was resumed gives the same table.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from kernelsmith.bench.numbers.resampling import Draws, Grid
from kernelsmith.bench.numbers.scores import HOWS, METRICS, OF_RATIOS, Measure, Metric
from kernelsmith.bench.numbers.statistics import Estimate, estimate, stratified
from kernelsmith.bench.record import BASELINES, Record
from kernelsmith.errors import UsageError

GROUPINGS: Mapping[str, Callable[[Record], str]] = {
    "level": lambda record: record.level,
    "category": lambda record: record.category,
    "family": lambda record: record.family,
    "dtype": lambda record: record.dtype,
}
UNNAMED = "not said"
"""The group of records whose suite does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One system on one set of tasks: every metric that its records say something about."""

    system: str
    grouping: str = ""
    """``level``, ``category``, ``family`` or ``dtype``; empty: all tasks."""
    group: str = ""
    measure: Measure
    tasks: int
    records: int
    seeds: tuple[int, int]
    """Fewest and most records per task."""
    unmeasured: int = 0
    """Winners that could not be timed beside this baseline; they count as correct only."""
    trouble: str = ""
    """Why, the commonest reason; empty where none was given."""
    unasked: int = 0
    """Winners that nobody measured beside this baseline; they count as correct only, too."""
    is_baseline: bool = False
    """Whether the system is this baseline itself, so that it has no ratio to it."""
    noisy: int = 0
    """Winners whose interval stayed wider than asked for; the judge says so beside eager only."""
    unconfirmed: int = 0
    """Winners that were not judged again at the end."""
    figures: Mapping[str, Estimate] = field(default_factory=dict)
    """By metric."""
    over_levels: Mapping[str, Estimate] = field(default_factory=dict)
    """The unweighted mean of the levels, as the paper's AVG; only where there are several."""
    largest: tuple[str, float] | None = None
    """The task with the largest speed-up, and that: what a mean may rest on."""

    def __getitem__(self, metric: str) -> Estimate:
        return self.figures[metric]

    def get(self, metric: str) -> Estimate | None:
        """A figure, or none where no record says anything about it."""
        return self.figures.get(metric)


@dataclass(frozen=True, slots=True, kw_only=True)
class Common:
    """Records of several systems on the tasks that all of them have."""

    systems: Mapping[str, tuple[Record, ...]]
    tasks: tuple[str, ...]
    left_out: Mapping[str, int]
    """By system, how many of its tasks the others do not have."""
    changed: tuple[str, ...] = ()
    """Tasks left out because systems were given different versions of them."""
    is_mixed: bool = False
    """Whether different judges had their say."""

    @property
    def said(self) -> str:
        """What was left out, in words; empty where nothing was."""
        parts = []
        if dropped := {name: count for name, count in self.left_out.items() if count}:
            each = ", ".join(f"{count} of {name}'s" for name, count in dropped.items())
            parts.append(
                f"only the {len(self.tasks)} tasks that all systems have count; left out: {each}"
            )
        if self.changed:
            parts.append(
                f"{len(self.changed)} tasks differ between systems in their source: "
                + ", ".join(self.changed[:5])
            )
        if self.is_mixed:
            parts.append("records are by different versions of the judge and do not quite compare")
        return "; ".join(parts)


def by_system(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """Records by who is compared: an entrant, and on which device where there are several."""
    found = by_entrant_and_device(records)
    several = len({device for _, device in found}) > 1
    return {system_name(who, several=several): own for who, own in found.items()}


def by_entrant_and_device(records: Iterable[Record]) -> dict[tuple[str, str], tuple[Record, ...]]:
    """Records by entrant and device, in the order of their names."""
    found: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        found.setdefault((record.entrant, str(record.device)), []).append(record)
    return {
        who: tuple(record for same in by_task(own).values() for record in same)
        for who, own in sorted(found.items())
    }


def system_name(who: tuple[str, str], *, several: bool) -> str:
    """What an entrant on a device is called, where there are several devices or one."""
    return " on ".join(who) if several else who[0]


def on_common_tasks(systems: Mapping[str, Sequence[Record]]) -> Common:
    """Keep the tasks that every system has, in the same version; say what goes."""
    entries = {name: {record.entry for record in own} for name, own in systems.items()}
    shared = set.intersection(*entries.values()) if entries else set()
    versions: dict[str, set[str]] = {}
    for own in systems.values():
        for record in own:
            if record.entry in shared and record.task:
                versions.setdefault(record.entry, set()).add(record.task)
    changed = {entry for entry, seen in versions.items() if len(seen) > 1}
    kept = shared - changed
    return Common(
        systems={
            name: tuple(record for record in own if record.entry in kept)
            for name, own in systems.items()
        },
        tasks=tuple(sorted(kept, key=natural)),
        left_out={name: len(own - shared) for name, own in entries.items()},
        changed=tuple(sorted(changed)),
        is_mixed=len({r.judge for own in systems.values() for r in own if r.judge}) > 1,
    )


def without_degenerate(records: Iterable[Record]) -> tuple[Record, ...]:
    """Leave out every task that the suite or the judge calls degenerate, for all systems alike."""
    return _without(tuple(records), lambda record: record.is_degenerate)


def without_suspect(records: Iterable[Record]) -> tuple[Record, ...]:
    """Leave out every task that anything is known against, for all systems alike."""
    return _without(tuple(records), lambda record: record.is_suspect)


def _without(every: Sequence[Record], is_bad: Callable[[Record], bool]) -> tuple[Record, ...]:
    bad = {record.entry for record in every if is_bad(record)}
    return tuple(record for record in every if record.entry not in bad)


def by_task(records: Iterable[Record]) -> dict[str, tuple[Record, ...]]:
    """Records of one system by entry, entries and seeds in order."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.entry, []).append(record)
    return {
        entry: tuple(sorted(found[entry], key=lambda record: record.seed))
        for entry in sorted(found, key=natural)
    }


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A key that sorts numbers in names as numbers: level1/9 before level1/10."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part)) if part.isdecimal() else (1, part) for part in parts)


def grid_of(tasks: Mapping[str, Sequence[Record]], metric: Metric, measure: Measure) -> Grid:
    """A metric's scores, a row a task and a column a seed."""
    return Grid.of([[metric.score(record, measure) for record in own] for own in tasks.values()])


def telling(
    records: Sequence[Record], measure: Measure, metrics: Sequence[Metric]
) -> Sequence[Metric]:
    """The metrics that a system's records say something about.

    Where something passed and nobody timed it beside this baseline, what failed would stand for all
    tasks alone: no share of fast ones, no average and no mean is worked out of that.
    """
    passed = [record for record in records if record.passed]
    if not passed or any(measure.of(record) is not None for record in passed):
        return metrics
    return [metric for metric in metrics if metric.name not in OF_RATIOS]


def summarise(
    records: Sequence[Record], *, system: str, measure: Measure | None = None, seed: int = 0,
    metrics: Sequence[Metric] = METRICS, grouping: str = "", group: str = "",
) -> Summary | None:  # fmt: skip
    """Every metric of one system's records with its interval; none where there are no records."""
    if not records:
        return None
    measure = measure or Measure()
    metrics = telling(records, measure, metrics)
    tasks = by_task(records)
    levels = [own[0].level for own in tasks.values()]
    codes = [sorted(set(levels)).index(level) for level in levels]
    seeds = np.asarray([len(own) for own in tasks.values()], dtype=np.int64)
    draws = Draws.of(seeds, np.random.default_rng((seed, 0)))
    in_levels = None
    if len(set(levels)) > 1:
        in_levels = Draws.of(seeds, np.random.default_rng((seed, 1)), strata=codes)
    figures: dict[str, Estimate] = {}
    over_levels: dict[str, Estimate] = {}
    for metric in metrics:
        grid = grid_of(tasks, metric, measure)
        found = estimate(grid, metric.combine, draws, bounds=metric.bounds, scale=metric.scale)
        if found is not None:
            figures[metric.name] = found
        if metric.averages_levels and in_levels is not None:
            averaged = estimate(
                grid, stratified(codes), in_levels, bounds=metric.bounds, scale=metric.scale
            )
            if averaged is not None:
                over_levels[metric.name] = averaged
    passed = [record for record in records if record.passed]
    ratios = [(r.entry, ratio.value) for r in passed if (ratio := measure.of(r)) is not None]
    asked = [beside for r in passed if (beside := r.over(measure.baseline)) is not None]
    return Summary(
        system=system, grouping=grouping, group=group, measure=measure, tasks=len(tasks),
        records=len(records), seeds=(int(seeds.min()), int(seeds.max())),
        unmeasured=len(asked) - len(ratios),
        trouble=commonest(each.trouble for each in asked), unasked=len(passed) - len(asked),
        is_baseline=not ratios and all(_is_baseline(record, measure) for record in records),
        noisy=sum(r.is_noisy for r in passed) if measure.baseline in ("eager", "graph") else 0,
        unconfirmed=sum(not record.confirmed for record in passed),
        figures=figures, over_levels=over_levels,
        largest=max(ratios, key=lambda pair: pair[1], default=None),
    )  # fmt: skip


def commonest(reasons: Iterable[str]) -> str:
    """The reason that is given most often; empty where none is."""
    counts = Counter(reason for reason in reasons if reason)
    return counts.most_common(1)[0][0] if counts else ""


def _is_baseline(record: Record, measure: Measure) -> bool:
    """Whether it is a compiled reference beside itself; eager is measured beside eager."""
    return record.entrant == measure.baseline != "eager" and not record.points


def summarise_groups(
    records: Sequence[Record], grouping: str, *, system: str, measure: Measure | None = None,
    seed: int = 0, metrics: Sequence[Metric] = METRICS,
) -> list[Summary]:  # fmt: skip
    """One summary a group, in the order of their names; nothing where all are in one unnamed."""
    of = GROUPINGS[grouping]
    metrics = telling(records, measure or Measure(), metrics)
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(of(record) or UNNAMED, []).append(record)
    if set(groups) <= {UNNAMED}:
        return []
    found = [
        summarise(own, system=system, measure=measure, seed=seed, metrics=metrics,
                  grouping=grouping, group=name)
        for name, own in sorted(groups.items())
    ]  # fmt: skip
    return [each for each in found if each is not None]


def measures_in(records: Iterable[Record]) -> list[Measure]:
    """Every baseline and way of measuring that some record has a ratio for."""
    every = [each for record in records for each in record.beside]
    return [
        Measure(baseline=baseline, how=how)
        for baseline in BASELINES
        for how in HOWS
        # not ``plain``: where plain calls are all there is, ``device`` is the same figure
        if any(getattr(each, how) is not None for each in every if each.baseline == baseline)
    ]


def usual_measure(records: Sequence[Record]) -> Measure:
    """Device time over the first baseline; the paper's mean where all was run by its protocol."""
    paper = Measure(how="mean")
    timed = [record for record in records if record.speedup() is not None]
    if timed and all(r.rules.preset == "paper" and paper.of(r) is not None for r in timed):
        return paper
    return next(iter(measures_in(records)), Measure())


def asked_measure(
    records: Sequence[Record], *, baseline: str | None, how: str | None, said: str,
    usual: Measure | None = None,
) -> Measure:  # fmt: skip
    """The ratio that a user names, by baseline or clock or both; what is not named is as usual.

    Raises:
        UsageError: No record has such a ratio; ``said`` names the records.
    """
    usual = usual or usual_measure(records)
    if baseline is None and how is None:
        return usual
    if baseline is not None and baseline not in BASELINES:
        raise UsageError(f"no baseline {baseline!r}; known are {', '.join(BASELINES)}")
    tried = [
        Measure(baseline=baseline or usual.baseline, how=clock)
        for clock in ((how,) if how else dict.fromkeys((usual.how, "device")))
    ]
    for each in tried:
        if any(each.of(record) is not None for record in records):
            return each
    there = "; ".join(map(str, measures_in(records))) or "none at all"
    raise UsageError(f"{said}: no record has a ratio {tried[0]}; there are: {there}")
