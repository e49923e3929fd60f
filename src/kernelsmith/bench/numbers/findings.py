"""Everything that a bench's records say, once: what tables, page and ``results.json`` show."""

import json
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np

from kernelsmith import __version__
from kernelsmith.bench.numbers.allowed import allowed
from kernelsmith.bench.numbers.compare import Contrast, every_pair
from kernelsmith.bench.numbers.curves import (
    Curve,
    Reached,
    Stopped,
    cost_quality,
    curve,
    early_stopping,
)
from kernelsmith.bench.numbers.deviance import Explained, Trial, explained
from kernelsmith.bench.numbers.devices import Across, across
from kernelsmith.bench.numbers.gains import Beyond, Price, beyond, prices
from kernelsmith.bench.numbers.metrics import (
    GROUPINGS,
    Summary,
    by_system,
    commonest,
    measures_in,
    natural,
    on_common_tasks,
    summarise,
    summarise_groups,
    usual_measure,
    without_degenerate,
    without_suspect,
)
from kernelsmith.bench.numbers.scores import BY_NAME, METRICS, TIMED, Measure, Metric
from kernelsmith.bench.numbers.transitions import Flow, Round, flows, rounds
from kernelsmith.bench.output.plain import plain
from kernelsmith.bench.record import BASELINES, Missing, Record

SCHEMA = "bench-results/1"
GROUPED = tuple(
    BY_NAME[name]
    for name in ("correct", "built", "fast_1", "fast_1.2", "fast_1.5", "fast_2", "average", "kept",
                 "geometric", "median", "slower", "first_correct", "first_fast", "steps_built",
                 "steps_passed", "first_passed", "best_step")
)  # fmt: skip
"""What groups are summarised by: a category of three tasks needs no quartiles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """How one system's searches went."""

    curve: Curve
    reached: tuple[Reached, ...]
    stopped: tuple[Stopped, ...]
    beyond: tuple[Beyond, ...]
    prices: tuple[Price, ...]
    flows: tuple[Flow, ...]
    rounds: tuple[Round, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What records say. Summaries stand on the common tasks unless their name says otherwise."""

    suites: tuple[str, ...]
    systems: tuple[str, ...]
    measure: Measure
    """The one that groups, pairs and pictures use."""
    tasks: int
    said: str
    """What was left out so that systems compare; empty where nothing was."""
    overall: Mapping[str, tuple[Summary, ...]]
    """By measure in words, one summary a system."""
    own: tuple[Summary, ...]
    """Each system on all of its own tasks; empty where these are the common ones."""
    sound: tuple[Summary, ...]
    """Without degenerate tasks; empty where there are none."""
    degenerate: tuple[str, ...]
    clear: tuple[Summary, ...]
    """Without suspect tasks either; empty where there are none besides the degenerate."""
    suspect: tuple[str, ...]
    """Degenerate ones are not named again."""
    untimed: Mapping[str, str]
    """Baselines that were asked for and that nobody could be timed beside, with the reason."""
    groups: Mapping[str, tuple[Summary, ...]]
    """By grouping: level, category, family, dtype."""
    searches: Mapping[str, Search]
    pairs: tuple[Contrast, ...]
    explained: Explained | None
    across: Across | None
    missing: tuple[Missing, ...]
    records: Mapping[str, tuple[Record, ...]]
    """On the common tasks, by system."""
    allowed: Mapping[str, str]
    """By system, the rules that its records were made by, in words."""
    devices: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]
    judges: tuple[str, ...]
    seed: int


def findings(
    records: Sequence[Record], *, missing: Sequence[Missing] = (), measure: Measure | None = None,
    seed: int = 0,
) -> Findings:  # fmt: skip
    """Work everything out. The same records and seed give the same figures."""
    every = by_system(records)
    common = on_common_tasks(every)
    measures = measures_in(records) or [Measure()]
    chosen = measure or usual_measure(records)
    kept = {name: own for name, own in common.systems.items() if own}
    flat = [record for own in kept.values() for record in own]
    sound = {record.entry for record in without_degenerate(flat)}
    degenerate = tuple(entry for entry in common.tasks if entry not in sound)
    clear = {record.entry for record in without_suspect(flat)}
    suspect = tuple(entry for entry in common.tasks if entry in sound - clear)
    return Findings(
        suites=tuple(sorted({record.suite for record in records})),
        systems=tuple(every), measure=chosen, tasks=len(common.tasks), said=common.said,
        overall={
            str(each): _summaries(kept, each, seed, METRICS if each == chosen else TIMED)
            for each in dict.fromkeys([chosen, *measures])
        },
        own=_summaries(every, chosen, seed) if any(common.left_out.values()) else (),
        sound=_summaries(_on(kept, sound), chosen, seed) if degenerate else (),
        degenerate=degenerate,
        clear=_summaries(_on(kept, clear), chosen, seed) if suspect else (),
        suspect=suspect,
        untimed=_untimed(records, measures),
        groups={
            grouping: tuple(
                each
                for name, own in kept.items()
                for each in summarise_groups(own, grouping, system=name, measure=chosen,
                                             seed=seed, metrics=GROUPED)
            )
            for grouping in GROUPINGS
        },
        searches={
            name: found for name, own in kept.items()
            if (found := search_of(own, system=name, seed=seed)) is not None
        },
        pairs=tuple(every_pair(every, measure=chosen, seed=seed)),
        explained=_explained(kept, seed),
        across=across(records, measure=chosen),
        missing=tuple(sorted(missing, key=lambda each: (natural(each.entry), each.key))),
        records=kept,
        allowed={name: allowed(own) for name, own in every.items()},
        devices=tuple(sorted({str(record.device) for record in records})),
        versions=tuple(sorted({
            pair for record in records for pair in (*record.device.versions, *record.versions)
        })),
        judges=tuple(sorted({record.judge for record in records if record.judge})),
        seed=seed,
    )  # fmt: skip


def search_of(records: Sequence[Record], *, system: str, seed: int) -> Search | None:
    """How one system's searches went; none for an entrant that does not search."""
    drawn = curve(records, system=system, seed=seed)
    if drawn is None:
        return None
    return Search(
        curve=drawn,
        reached=tuple(cost_quality(records, seed=seed)),
        stopped=tuple(early_stopping(records, seed=seed)),
        beyond=tuple(beyond(records, seed=seed)),
        prices=tuple(prices(records, seed=seed)),
        flows=tuple(flows(records)),
        rounds=tuple(rounds(records)),
    )


def as_json(found: Findings) -> str:
    """``results.json``: every figure with its interval, and each record's own numbers."""
    body = {
        "schema": SCHEMA,
        "kernelsmith": __version__,
        "metrics": {metric.name: metric.said for metric in METRICS},
        **{
            name: plain(getattr(found, name))
            for name in Findings.__dataclass_fields__
            if name != "records"
        },
        "records": {
            name: [_row(record, found.measure) for record in own]
            for name, own in found.records.items()
        },
    }
    return json.dumps(body, indent=1, allow_nan=False) + "\n"


def _summaries(
    systems: Mapping[str, Sequence[Record]], measure: Measure, seed: int,
    metrics: Sequence[Metric] = METRICS,
) -> tuple[Summary, ...]:  # fmt: skip
    found = [
        summarise(own, system=name, measure=measure, seed=seed, metrics=metrics)
        for name, own in systems.items()
    ]
    return tuple(each for each in found if each is not None)


def _on(systems: Mapping[str, Sequence[Record]], entries: Set[str]) -> dict[str, list[Record]]:
    return {name: [r for r in own if r.entry in entries] for name, own in systems.items()}


def _untimed(records: Sequence[Record], measures: Sequence[Measure]) -> dict[str, str]:
    timed = {each.baseline for each in measures}
    asked = [each for record in records for each in record.beside if each.baseline not in timed]
    return {
        name: commonest(each.trouble for each in asked if each.baseline == name)
        for name in BASELINES
        if any(each.baseline == name for each in asked)
    }


def _explained(systems: Mapping[str, Sequence[Record]], seed: int) -> Explained | None:
    trials = [
        Trial(task=record.entry, category=record.category or record.level, system=name,
              passed=record.passed)
        for name, own in systems.items()
        for record in own
    ]  # fmt: skip
    return explained(trials, generator=np.random.default_rng(seed))


def _row(record: Record, measure: Measure) -> dict[str, object]:
    ratio = measure.of(record)
    return {
        "entry": record.entry, "seed": record.seed, "level": record.level,
        "category": record.category, "family": record.family, "dtype": record.dtype,
        "note": record.note, "verdict": None if record.verdict is None else record.verdict.value,
        "message": record.message,
        "speedup": None if ratio is None else [ratio.value, ratio.low, ratio.high],
        "labels": [label.name.value for label in record.labels],
        "steps": record.steps, "best_step": record.best_step,
        "tokens": record.cost.tokens, "usd": record.cost.usd, "seconds": record.cost.seconds,
        "winner": None if record.winner is None else record.winner.path,
    }  # fmt: skip
