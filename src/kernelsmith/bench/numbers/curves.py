"""What more steps buy: best against step, share of the gain at few steps, rules to stop by."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kernelsmith.bench.numbers.histories import (
    Histories,
    kept_over_tasks,
    over_tasks,
    ratio_of_means,
)
from kernelsmith.bench.numbers.resampling import Floats
from kernelsmith.bench.numbers.statistics import Estimate
from kernelsmith.bench.record import Record

CHECKPOINTS = (1, 5, 10, 20, 40)
PATIENCES = (3, 5, 10, 15)
_RESAMPLES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """One system's best against step: geometric mean over tasks, eager kept until beaten."""

    system: str
    best: tuple[Estimate, ...]
    """After each step."""
    correct: tuple[Estimate, ...]
    """Share of tasks with something that passed, after each step."""
    tasks: int
    searches: int
    final: Estimate | None = None
    """The same of the winners as judged at the end, without selection's luck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """What a number of steps gave of what the whole search gave."""

    steps: int
    share: Estimate | None
    """Of the logarithm of the final speed-up; none where the whole search gained nothing."""
    best: Estimate
    correct: Estimate
    tokens: float | None = None
    """Per task so far."""
    usd: float | None = None
    seconds: float | None = None
    uncounted: int = 0
    """Steps, of all searches to their ends, whose tokens or money nobody counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What a rule would have saved and lost on recorded searches."""

    rule: str
    steps: float
    """Taken per task under the rule."""
    work: Estimate
    """Share of the steps that were taken without it."""
    gain: Estimate | None
    """Share of the gain that is left."""
    best: Estimate


Rule = Callable[[Floats, Sequence[bool]], int]
"""From one search's line (logarithms) and its new bests, step by step, to the steps after which it
would have stopped."""


def curve(records: Sequence[Record], *, system: str, seed: int = 0) -> Curve | None:
    """Best against step with a band; none for an entrant that does not search."""
    histories = Histories.of(records)
    if histories is None:
        return None
    drawn = histories.drawn_weights(np.random.default_rng(seed), _RESAMPLES)
    ends = np.asarray([_judged(record) for record in histories.records])[:, np.newaxis]
    final = None if np.isnan(ends).any() else kept_over_tasks(histories, ends, drawn)[0]
    return Curve(
        system=system,
        best=tuple(kept_over_tasks(histories, histories.kept, drawn)),
        correct=tuple(over_tasks(histories, histories.correct, drawn, is_rate=True)),
        tasks=histories.tasks, searches=len(histories.records), final=final,
    )  # fmt: skip


def cost_quality(
    records: Sequence[Record], *, checkpoints: Sequence[int] = CHECKPOINTS, seed: int = 0
) -> list[Reached]:
    """What each number of steps gave, up to the longest search, which stands last."""
    histories = Histories.of(records)
    if histories is None:
        return []
    drawn = histories.drawn_weights(np.random.default_rng(seed), _RESAMPLES)
    at = sorted({k for k in checkpoints if 0 < k < histories.horizon} | {histories.horizon})
    spent = {what: histories.spent(what) for what in ("tokens", "usd", "seconds")}
    uncounted = max(
        (histories.uncounted(what) for what in ("tokens", "usd") if spent[what] is not None),
        default=0,
    )
    columns = [k - 1 for k in at]
    best = kept_over_tasks(histories, histories.kept[:, columns], drawn)
    correct = over_tasks(histories, histories.correct[:, columns], drawn, is_rate=True)
    return [
        Reached(
            steps=k,
            share=_share(histories, histories.kept[:, k - 1], drawn),
            best=best[index], correct=correct[index], uncounted=uncounted,
            **{
                what: None if so_far is None else float(histories.weights @ so_far[:, k - 1])
                for what, so_far in spent.items()
            },
        )
        for index, k in enumerate(at)
    ]  # fmt: skip


def patience(steps: int) -> Rule:
    """Stop after ``steps`` in a row without a new best: what ``--early-stop`` does."""

    def rule(line: Floats, bests: Sequence[bool]) -> int:
        waited = 0
        for index, is_best in enumerate(bests):
            waited = 0 if is_best else waited + 1
            if waited >= steps:
                return index + 1
        return len(bests)

    return rule


def fixed(steps: int) -> Rule:
    """Stop after ``steps``."""
    return lambda line, bests: min(steps, len(bests))


def levelling(window: int, least: float) -> Rule:
    """Stop once the last ``window`` steps together raised the best by less than ``least``."""

    def rule(line: Floats, bests: Sequence[bool]) -> int:
        for index in range(window, len(line)):
            if line[index] - line[index - window] < math.log1p(least):
                return index + 1
        return len(line)

    return rule


def stopping_rules(horizon: int) -> dict[str, Rule]:
    """The rules that a table of early stopping shows, for searches of up to ``horizon`` steps."""
    found: dict[str, Rule] = {}
    for steps in (k for k in CHECKPOINTS if k < horizon):
        found[_steps(steps)] = fixed(steps)
    for steps in (k for k in PATIENCES if k < horizon):
        found[f"{steps} steps without a new best"] = patience(steps)
    for window in (w for w in (5, 10) if w < horizon):
        found[f"less than 1 % in {window} steps"] = levelling(window, 0.01)
    return found


def _steps(count: int) -> str:
    return f"{count} step{'s' if count > 1 else ''}"


def early_stopping(records: Sequence[Record], *, seed: int = 0) -> list[Stopped]:
    """Replay every recorded search under every rule that looks at what was found so far."""
    histories = Histories.of(records)
    if histories is None:
        return []
    drawn = histories.drawn_weights(np.random.default_rng(seed), _RESAMPLES)
    rows = np.arange(len(histories.records))
    lines = [line[:taken] for line, taken in zip(histories.kept, histories.taken, strict=True)]
    bests = [[point.is_best for point in record.searched] for record in histories.records]
    flying = [max(0, (record.rules.concurrency or 1) - 1) for record in histories.records]
    planned = {_steps(count) for count in CHECKPOINTS}
    found = []
    for name, rule in stopping_rules(histories.horizon).items():
        # What is in flight when a search is told to stop is finished, and counts; a number of steps
        # that is known from the beginning has nothing in flight behind it.
        ahead = 0 if name in planned else 1
        steps = np.asarray(
            [
                min(len(own), rule(line, own) + ahead * behind)
                for line, own, behind in zip(lines, bests, flying, strict=True)
            ]
        )
        left = histories.kept[rows, steps - 1]
        work = ratio_of_means(
            histories, steps.astype(np.float64), histories.taken.astype(np.float64), drawn,
            bounds=(0, 1),
        )  # fmt: skip
        assert work is not None, "every search takes steps"
        found.append(
            Stopped(
                rule=name, steps=float(histories.weights @ steps), work=work,
                gain=_share(histories, left, drawn),
                best=kept_over_tasks(histories, left[:, np.newaxis], drawn)[0],
            )
        )  # fmt: skip
    return found


def _share(histories: Histories, reached: Floats, drawn: Floats) -> Estimate | None:
    # the line never falls, so a part is never more than the whole
    return ratio_of_means(histories, reached, histories.kept[:, -1], drawn, bounds=(0, 1))


def _judged(record: Record) -> float:
    """The winner's logarithm as judged at the end; 0 where eager is kept; NaN if not timed."""
    if not record.passed:
        return 0.0
    ratio = record.speedup("eager")
    return math.nan if ratio is None else max(0.0, math.log(ratio.value))
