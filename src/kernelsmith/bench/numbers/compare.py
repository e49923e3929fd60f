"""Two systems on the same tasks: which is better, by how much, and could it be luck."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from kernelsmith.bench.numbers.allowed import apart
from kernelsmith.bench.numbers.metrics import (
    GROUPINGS,
    Common,
    by_entrant_and_device,
    by_task,
    grid_of,
    on_common_tasks,
    summarise,
    system_name,
    usual_measure,
)
from kernelsmith.bench.numbers.resampling import Draws, Grid
from kernelsmith.bench.numbers.scores import BY_NAME, Measure, Metric
from kernelsmith.bench.numbers.significance import (
    Test,
    holm,
    paired_difference,
    sign_test,
    signed_rank_test,
)
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.bench.output.plain import plain
from kernelsmith.bench.record import Record
from kernelsmith.errors import UsageError

SCHEMA = "bench-compare/1"
COMPARED = ("correct", "built", "fast_1", "fast_1.2", "fast_1.5", "fast_2", "sure", "average",
            "kept", "geometric", "slower", "first_correct", "first_fast", "best_step", "tokens",
            "usd", "seconds")  # fmt: skip
_TESTED = ("correct", "kept", "geometric")


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One metric of two systems."""

    metric: str
    first: Estimate
    second: Estimate
    change: Estimate | None = None
    """The second less the first, over it for ratios that average as such; none on one task."""
    p: float | None = None
    """By paired bootstrap, two-sided; not less than a sign test could give on as many tasks."""
    corrected: float | None = None
    """After Holm, among all pairs that are compared at once."""

    @property
    def is_significant(self) -> bool:
        """Whether chance would do this in fewer than one of twenty, and the interval agrees."""
        p = self.p if self.corrected is None else self.corrected
        return p is not None and p < 0.05 and not self.holds_none

    @property
    def holds_none(self) -> bool:
        """Whether the interval of the change holds "no difference"."""
        if self.change is None or self.change.low is None or self.change.high is None:
            return True
        return self.change.low <= BY_NAME[self.metric].scale(0.0) <= self.change.high


@dataclass(frozen=True, slots=True, kw_only=True)
class OnTask:
    """One task of two systems: speed-ups as geometric means over seeds, none where none passed."""

    entry: str
    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """The second's over the first's."""
        if self.first is None or self.second is None:
            return None
        return self.second / self.first


@dataclass(frozen=True, slots=True, kw_only=True)
class Contrast:
    """Two systems on their common tasks."""

    first: str
    second: str
    measure: Measure
    tasks: int
    said: str = ""
    """What was left out, and what does not quite compare."""
    differences: tuple[Difference, ...] = ()
    tests: tuple[tuple[str, Test], ...] = ()
    """By metric: on differences of tasks, wins are the second's."""
    by_level: tuple[tuple[str, tuple[Difference, ...]], ...] = ()
    each: tuple[OnTask, ...] = ()
    """In the order of the second's advantage, largest first; then those that one side lacks."""

    def __getitem__(self, metric: str) -> Difference:
        return next(each for each in self.differences if each.metric == metric)

    @property
    def gained(self) -> tuple[str, ...]:
        """Tasks that only the second solved."""
        return tuple(t.entry for t in self.each if t.first is None and t.second is not None)

    @property
    def lost(self) -> tuple[str, ...]:
        """Tasks that only the first solved."""
        return tuple(t.entry for t in self.each if t.first is not None and t.second is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two files of results, system by system."""

    contrasts: tuple[Contrast, ...]
    unpaired: tuple[str, ...] = ()
    """Systems that stand on one side only."""

    def as_json(self) -> str:
        """Every figure, test and task, for machines."""
        body = {"schema": SCHEMA, "contrasts": plain(self.contrasts), "unpaired": self.unpaired}
        return json.dumps(body, indent=1, allow_nan=False) + "\n"


def compare(
    a: Sequence[Record], b: Sequence[Record], *, names: tuple[str, str] = ("A", "B"),
    measure: Measure | None = None, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Pair the systems of two files of results and contrast each pair.

    One system on each side are a pair whatever they are called; several are paired by entrant and
    device, an entrant of one device on each side also where the devices differ. The p-values of
    several pairs are corrected for their number.

    Raises:
        UsageError: No system of one side has a counterpart on the other, or no task has.
        ValueError: Both sides have one name.
    """
    if names[0] == names[1]:
        raise ValueError(f"two sides need two names; got {names[0]!r} twice")
    first, second = by_entrant_and_device(a), by_entrant_and_device(b)
    measure = measure or usual_measure([*a, *b])
    if not first or not second:
        raise UsageError(f"{names[0 if not first else 1]} holds no record to compare")
    several = any(len({device for _, device in side}) > 1 for side in (first, second))
    called = {who: system_name(who, several=several) for who in (*first, *second)}
    pairs = _paired(list(first), list(second))
    if not pairs:
        sides = (", ".join(called[who] for who in side) for side in (first, second))
        raise UsageError(
            f"no system of {names[0]} ({next(sides)}) is in {names[1]} ({next(sides)})"
            + ("; compare files of one device each" if several else "")
        )
    contrasts = []
    for one, other in pairs:
        is_same = called[one] == called[other]
        found = contrast(
            first[one], second[other], measure=measure, seed=seed,
            names=(f"{called[one]} ({names[0]})" if is_same else called[one],
                   f"{called[other]} ({names[1]})" if is_same else called[other]),
        )  # fmt: skip
        if found is not None:
            contrasts.append(found)
    if not contrasts:
        raise UsageError(f"{names[0]} and {names[1]} have no task in common")
    paired = {who for pair in pairs for who in pair}
    return Comparison(
        contrasts=tuple(_corrected(contrasts) if len(contrasts) > 1 else contrasts),
        unpaired=tuple(
            dict.fromkeys(called[who] for who in (*first, *second) if who not in paired)
        ),
    )


def _paired(
    first: Sequence[tuple[str, str]], second: Sequence[tuple[str, str]]
) -> list[tuple[tuple[str, str], tuple[str, str]]]:
    """Who stands against whom, each an entrant and its device."""
    if len(first) == len(second) == 1:
        return [(first[0], second[0])]
    found = []
    for who in first:
        here, there = ([each for each in side if each[0] == who[0]] for side in (first, second))
        if who in there:
            found.append((who, who))
        elif len(here) == len(there) == 1:
            found.append((who, there[0]))
    return found


def every_pair(
    systems: Mapping[str, Sequence[Record]], *, measure: Measure | None = None, seed: int = 0
) -> list[Contrast]:
    """Every two systems, each pair on its own common tasks, p-values corrected for their number."""
    names = list(systems)
    found = [
        each
        for index, one in enumerate(names)
        for other in names[index + 1 :]
        if (each := contrast(systems[one], systems[other], names=(one, other), measure=measure,
                             seed=seed)) is not None
    ]  # fmt: skip
    return _corrected(found)


def contrast(
    a: Sequence[Record], b: Sequence[Record], *, names: tuple[str, str],
    measure: Measure | None = None, seed: int = 0,
) -> Contrast | None:  # fmt: skip
    """Contrast two systems on their common tasks; none where they have none."""
    measure = measure or Measure()
    common = on_common_tasks({names[0]: a, names[1]: b})
    if not common.tasks:
        return None
    first, second = (common.systems[name] for name in names)
    differences = _differences(first, second, common.tasks, measure, COMPARED, seed)
    told = {each.metric for each in differences}
    return Contrast(
        first=names[0], second=names[1], measure=measure, tasks=len(common.tasks),
        said=_said(common, names),
        differences=differences,
        tests=_tests(first, second, common.tasks, measure, told),
        by_level=_by_level(first, second, measure, seed, told),
        each=_each(first, second, common.tasks, measure),
    )  # fmt: skip


def _differences(
    a: Sequence[Record], b: Sequence[Record], tasks: Sequence[str], measure: Measure,
    metrics: Sequence[str], seed: int,
) -> tuple[Difference, ...]:  # fmt: skip
    chosen = [BY_NAME[name] for name in metrics]
    one = summarise(a, system="", measure=measure, metrics=chosen, seed=seed)
    other = summarise(b, system="", measure=measure, metrics=chosen, seed=seed)
    assert one is not None
    assert other is not None
    dice = np.random.default_rng((seed, 2))
    after_draws = Draws.of(_grid(b, tasks, chosen[0], measure).seeds, dice)
    before_draws = Draws.of(_grid(a, tasks, chosen[0], measure).seeds, dice, like=after_draws)
    found = []
    for metric in chosen:
        before, after = one.get(metric.name), other.get(metric.name)
        if before is None or after is None:
            continue
        change = paired_difference(
            _grid(b, tasks, metric, measure), _grid(a, tasks, metric, measure), metric.combine,
            (after_draws, before_draws), bounds=metric.change_bounds, scale=metric.scale,
        )  # fmt: skip
        found.append(
            Difference(
                metric=metric.name, first=before, second=after,
                change=None if change is None else change[0],
                p=None if change is None else change[1],
            )
        )  # fmt: skip
    return tuple(found)


def _tests(
    a: Sequence[Record], b: Sequence[Record], tasks: Sequence[str], measure: Measure,
    told: Set[str],
) -> tuple[tuple[str, Test], ...]:  # fmt: skip
    found: list[tuple[str, Test]] = []
    for name in _told(told):
        metric = BY_NAME[name]
        one, other = (_grid(own, tasks, metric, measure).per_task for own in (a, b))
        for test in (sign_test(other - one), signed_rank_test(other - one)):
            # on yes and no all ranks tie, and signed ranks are the sign test
            if test is not None and not (name == "correct" and test.name != "sign"):
                found.append((name, test))
    return tuple(found)


def _by_level(
    a: Sequence[Record], b: Sequence[Record], measure: Measure, seed: int, told: Set[str]
) -> tuple[tuple[str, tuple[Difference, ...]], ...]:
    level_of = GROUPINGS["level"]
    levels = sorted({level_of(record) for record in a} - {""})
    found = []
    for level in levels if len(levels) > 1 else []:
        own = [record for record in a if level_of(record) == level]
        others = [record for record in b if level_of(record) == level]
        tasks = tuple(by_task(own))
        if others and set(tasks) == {record.entry for record in others}:
            found.append((level, _differences(own, others, tasks, measure, _told(told), seed)))
    return tuple(found)


def _told(told: Set[str]) -> list[str]:
    return [name for name in _TESTED if name in told]


def _each(
    a: Sequence[Record], b: Sequence[Record], tasks: Sequence[str], measure: Measure
) -> tuple[OnTask, ...]:
    one, other = (
        np.exp(_grid(own, tasks, BY_NAME["geometric"], measure).per_task).tolist() for own in (a, b)
    )
    found = [
        OnTask(entry=entry, first=_or_none(x), second=_or_none(y))
        for entry, x, y in zip(tasks, one, other, strict=True)
    ]
    return tuple(sorted(found, key=lambda task: (task.ratio is None, -(task.ratio or 0.0))))


def _grid(
    records: Sequence[Record], tasks: Sequence[str], metric: Metric, measure: Measure
) -> Grid:
    own = by_task(records)
    return grid_of({entry: own[entry] for entry in tasks}, metric, measure)


def _or_none(value: float) -> float | None:
    return None if value != value else value


def _said(common: Common, names: tuple[str, str]) -> str:
    parts = [common.said] if common.said else []
    devices = [{str(record.device) for record in common.systems[name]} for name in names]
    if devices[0] != devices[1]:
        where = " and ".join(", ".join(sorted(each)) for each in devices)
        parts.append(f"measured on different devices: {where}")
    seeds = [len(common.systems[name]) for name in names]
    if seeds[0] != seeds[1]:
        parts.append(f"{seeds[0]} records against {seeds[1]}: seeds differ in number")
    if rules := apart(*(common.systems[name] for name in names)):
        parts.append(f"they were not allowed the same: {rules}")
    return "; ".join(parts)


def _corrected(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Put Holm's p beside each metric's, over the pairs."""
    corrected: dict[tuple[int, str], float] = {}
    for name in COMPARED:
        rows = [
            (index, each.p)
            for index, found in enumerate(contrasts)
            for each in found.differences
            if each.metric == name and each.p is not None
        ]
        for (index, _), p in zip(rows, holm([p for _, p in rows]), strict=True):
            corrected[index, name] = p
    return [
        replace(
            found,
            differences=tuple(
                replace(each, corrected=corrected.get((index, each.metric)))
                for each in found.differences
            ),
        )
        for index, found in enumerate(contrasts)
    ]
