"""What stands in each table of a bench, whatever it is printed as."""

from collections.abc import Sequence

from kernelsmith.bench.numbers.compare import Contrast
from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.numbers.metrics import Summary
from kernelsmith.bench.numbers.scores import BY_NAME, Unit
from kernelsmith.bench.output import search_sheets
from kernelsmith.bench.output.cells import (
    NONE,
    Cell,
    Sheet,
    amount,
    cell,
    changed,
    p_value,
    reason,
    share,
    written,
)
from kernelsmith.bench.record import Record

_QUARTILES = "quartiles"
"""Both in one column: where the middle half of the speed-ups lies."""
OVERALL = ("correct", "built", "fast_1", "fast_1.2", "fast_1.5", "fast_2", "average", "kept",
           "geometric", "median", _QUARTILES, "slower")  # fmt: skip
_LEVEL = ("correct", "fast_1", "average", "geometric", "first_correct", "steps_passed",
          "best_step")  # fmt: skip
_GROUP = ("correct", "fast_1", "average", "geometric", "slower")
_SEARCH = ("first_correct", "first_fast", "steps_built", "steps_passed", "first_passed",
           "best_step")  # fmt: skip
_SPENT = ("steps", "tokens", "usd", "seconds", "qd_score", "coverage")


def sheets(found: Findings) -> list[Sheet]:
    """Every table that the findings fill, the ones that are read first in front."""
    made = [
        *(_overall(name, own, found) for name, own in found.overall.items()),
        _levels(found),
        _sound(found),
        _clear(found),
        _own(found),
        *_searching(found),
        search_sheets.reached(found.searches),
        search_sheets.stopped(found.searches),
        search_sheets.beyond(found.searches),
        search_sheets.prices(found.searches),
        _pairs(found.pairs),
        *(_group(found, grouping) for grouping in ("category", "family", "dtype")),
        _explained(found),
        search_sheets.rounds(found.searches),
        search_sheets.flows(found.searches),
        _across(found),
        _failed(found),
        _missing(found),
    ]
    return [sheet for sheet in made if sheet is not None and sheet.rows]


def _overall(name: str, summaries: Sequence[Summary], found: Findings) -> Sheet:
    notes = [found.said] if found.said else []
    if name == str(found.measure):
        notes += [f"{system}: {rules}" for system, rules in found.allowed.items()]
        notes += [f"over {baseline}: nobody could be timed: {why}"
                  for baseline, why in found.untimed.items()]  # fmt: skip
    for each in summaries:
        if each.is_baseline:
            notes.append(f"{each.system} is this baseline itself, and has no ratio to it")
        elif each.unasked:
            notes.append(f"{each.system}: {each.unasked} winners were not measured {name}")
        if each.unmeasured and not each.is_baseline:
            why = f": {each.trouble}" if each.trouble else ""
            said = f"{each.system}: {each.unmeasured} winners could not be timed {name}{why}"
            notes.append(said)
        if each.noisy:
            notes.append(f"{each.system}: noisy winners (their own intervals stayed wider than "
                         f"asked for): {each.noisy}")  # fmt: skip
        if each.seeds[0] != each.seeds[1]:
            notes.append(f"{each.system}: {each.seeds[0]} to {each.seeds[1]} seeds per task")
        if each.unconfirmed:
            notes.append(f"{each.system}: {each.unconfirmed} winners were not judged again")
    return _summary_sheet(f"Speed-up {name}", summaries, OVERALL, notes=notes, key="overall")


def _summary_sheet(
    title: str, summaries: Sequence[Summary], metrics: Sequence[str], *,
    notes: Sequence[str] = (), key: str = "",
) -> Sheet:  # fmt: skip
    known = {name for each in summaries for name in each.figures}
    known |= {_QUARTILES} if "quartile_1" in known else set()
    columns = [name for name in metrics if name in known]
    best = {name: _best(summaries, name) for name in columns}
    return Sheet(
        title=title,
        header=("system", "tasks", *(_label(name) for name in columns)),
        rows=tuple(
            (
                Cell(each.system), Cell(_count(each)),
                *(_figure(each, name, is_best=each.system in best[name]) for name in columns),
            )
            for each in summaries
        ),
        notes=tuple(notes), key=key,
    )  # fmt: skip


def _label(name: str) -> str:
    return name if name == _QUARTILES else BY_NAME[name].label


def _figure(summary: Summary, name: str, *, is_best: bool) -> Cell:
    if name != _QUARTILES:
        return cell(summary.get(name), BY_NAME[name].unit, is_best=is_best)
    ends = [summary.get(f"quartile_{number}") for number in (1, 3)]
    if None in ends:
        return Cell(NONE)
    return Cell(" to ".join(written(each.value, Unit.RATIO) for each in ends if each is not None))


def _count(summary: Summary) -> str:
    low, high = summary.seeds
    if high == 1:
        return str(summary.tasks)
    return f"{summary.tasks} x {high if low == high else f'{low}-{high}'}"


def _best(summaries: Sequence[Summary], name: str) -> set[str]:
    values = {each.system: each[name].value for each in summaries if name in each.figures}
    if len(values) < 2 or len(set(values.values())) == 1:
        return set()
    top = (max if BY_NAME[name].more_is_better else min)(values.values())
    return {system for system, value in values.items() if value == top}


def _levels(found: Findings) -> Sheet | None:
    """The paper's table 1, level by level with the mean of the levels last, and why they differ."""
    groups = found.groups.get("level", ())
    levels = sorted({each.group for each in groups})
    if len(levels) < 2:
        return None
    columns = [name for name in _LEVEL if any(name in each.figures for each in groups)]
    rows = [
        (Cell(each.group), Cell(each.system), Cell(_count(each)),
         *(cell(each.get(name), BY_NAME[name].unit) for name in columns))
        for level in levels
        for each in groups
        if each.group == level
    ]  # fmt: skip
    rows += [
        (Cell("mean of levels"), Cell(each.system), Cell(_count(each)),
         *(cell(each.over_levels.get(name), BY_NAME[name].unit) for name in columns))
        for each in next(iter(found.overall.values()))
    ]  # fmt: skip
    return Sheet(
        title=f"By level, {found.measure}",
        header=("level", "system", "tasks", *(BY_NAME[name].label for name in columns)),
        rows=tuple(rows), text_columns=2, key="levels",
        notes=("the mean of levels weighs each level alike, as the paper's AVG does",),
    )  # fmt: skip


def _sound(found: Findings) -> Sheet | None:
    if not found.sound:
        return None
    left = ", ".join(found.degenerate[:8]) + (" ..." if len(found.degenerate) > 8 else "")
    return _summary_sheet(
        f"Without degenerate tasks, {found.measure}", found.sound, OVERALL, key="sound",
        notes=(f"tasks that accept kernels which do not do the work ({len(found.degenerate)}): "
               f"{left}",),
    )  # fmt: skip


def _clear(found: Findings) -> Sheet | None:
    if not found.clear:
        return None
    left = ", ".join(found.suspect[:8]) + (" ..." if len(found.suspect) > 8 else "")
    return _summary_sheet(
        f"Without degenerate and suspect tasks, {found.measure}", found.clear, OVERALL,
        key="clear",
        notes=(f"tasks that accept such kernels at a looser tolerance, or that others left out "
               f"({len(found.suspect)}): {left}",),
    )  # fmt: skip


def _own(found: Findings) -> Sheet | None:
    if not found.own:
        return None
    return _summary_sheet(
        f"Each system on all of its own tasks, {found.measure}", found.own, OVERALL, key="own",
        notes=("rows of this table stand on different tasks and do not compare",),
    )  # fmt: skip


def _group(found: Findings, grouping: str) -> Sheet | None:
    groups = found.groups.get(grouping, ())
    if len({each.group for each in groups}) < 2:
        return None
    return Sheet(
        title=f"By {grouping}, {found.measure}",
        header=(grouping, "system", "tasks", *(BY_NAME[name].label for name in _GROUP)),
        rows=tuple(
            (Cell(each.group), Cell(each.system), Cell(_count(each)),
             *(cell(each.get(name), BY_NAME[name].unit) for name in _GROUP))
            for each in sorted(groups, key=lambda each: each.group)
        ),
        text_columns=2, key=grouping,
    )  # fmt: skip


def _searching(found: Findings) -> list[Sheet]:
    first = next(iter(found.overall.values()), ())
    summaries = [each for each in first if each.system in found.searches]
    if not summaries:
        return []
    said = "the first step is what one-shot generation gives; steps are counted from 1"
    return [
        _summary_sheet("How searches went", summaries, _SEARCH, key="search", notes=(said,)),
        _summary_sheet("What searches took, and how much they covered, per task", summaries,
                       _SPENT, key="search"),
    ]  # fmt: skip


def _pairs(pairs: Sequence[Contrast]) -> Sheet:
    names = ("correct", "fast_1", "average", "kept", "geometric")
    rows = []
    for pair in pairs:
        known = {each.metric: each for each in pair.differences}
        rows.append(
            (
                Cell(pair.first), Cell(pair.second), Cell(str(pair.tasks)),
                *(changed(known.get(name)) for name in names),
            )
        )  # fmt: skip
    return Sheet(
        title="Pairs of systems: the second against the first, on their common tasks",
        header=("first", "second", "tasks", *(BY_NAME[name].label for name in names)),
        rows=tuple(rows), text_columns=2, key="pairs",
        notes=("differences, and ratios where means are geometric (x); p by paired bootstrap, "
               "after Holm over the pairs; * below 0.05",),
    )  # fmt: skip


def _explained(found: Findings) -> Sheet | None:
    every = found.explained
    if every is None:
        return None
    return Sheet(
        title="What decides correctness: explained deviance",
        header=("factor", "groups", "alone", "beside the other", "by chance", "adjusted", "p"),
        rows=(
            *(
                (Cell(each.name), Cell(str(each.groups)), share(each.alone), share(each.beside),
                 share(each.by_chance), share(each.adjusted), Cell(p_value(each.p)))
                for each in every.factors
            ),
            (Cell("both"), Cell(""), share(every.both), *(Cell(NONE),) * 4),
        ),
        notes=(f"{every.passed} of {every.records} records passed; by chance: what shuffled labels "
               "explain",),
        key="explained",
    )  # fmt: skip


def _across(found: Findings) -> Sheet | None:
    every = found.across
    if every is None:
        return None
    widest = every.spreads[0]
    where = ", ".join(f"{value:.2f} on {device}" for device, value in widest.speedups)
    return Sheet(
        title=f"The same kernels on several devices, {found.measure}",
        header=("device", "beside", "kernels", "speed-up ratio", "rank correlation"),
        rows=tuple(
            (Cell(each.first), Cell(each.second), Cell(str(each.kernels)),
             amount(each.ratio, Unit.RATIO), amount(each.rank_correlation, Unit.SCORE))
            for each in every.pairs
        ),
        notes=(
            f"widest: {widest.entry}, a factor of {widest.factor:.1f} ({where})",
            f"{every.device_share:.0%} of the variance of log speed-ups lies between devices; "
            f"{every.flipped} of {len(every.spreads)} kernels are faster on one and slower on "
            "another",
        ),
        text_columns=2, key="across",
    )  # fmt: skip


def _failed(found: Findings) -> Sheet:
    return Sheet(
        title="What failed, and why",
        header=("task", "system", "seed", "verdict", "reason"),
        rows=tuple(
            (Cell(record.entry), Cell(name), Cell(str(record.seed)), Cell(verdict_of(record)),
             Cell(reason(record.message) or NONE))
            for name, own in found.records.items()
            for record in own
            if not record.passed
        ),
        text_columns=5, key="failed",
    )  # fmt: skip


def verdict_of(record: Record) -> str:
    """A verdict in words; also where nothing could be judged at all."""
    return "nothing" if record.verdict is None else record.verdict.value.replace("_", " ")


def _missing(found: Findings) -> Sheet:
    return Sheet(
        title="Without a record",
        header=("entry", "system", "reason"),
        rows=tuple(
            (Cell(each.entry), Cell(each.entrant or "all"), Cell(each.reason))
            for each in found.missing
        ),
        text_columns=3, key="missing",
    )  # fmt: skip
