"""The next variant from a parent: one or two parameters changed, where the feedback points."""

import random
from collections.abc import Sequence

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.propose.rules.space import Parameter, Parameters, Space
from kernelsmith.propose.rules.statistics import Statistics

_SHORT_US = 60.0
"""Below this a launch is mostly overhead: how work is handed to threads decides."""
_BY_OVERHEAD = {"serial_below", "threads", "schedule", "tile", "programs", "warps", "rows"}
_ATTEMPTS = 40


def mutated(
    space: Space, parent: Parameters, *, evaluation: Evaluation, others: Sequence[Parameters],
    known: Statistics, rng: random.Random,
) -> tuple[dict[str, str], str]:  # fmt: skip
    """A variant near the parent, and in words what was changed and why."""
    if evaluation.verdict is not Verdict.PASSED:
        found = _stepped_back(space, parent, evaluation.verdict)
        if found is not None:
            return found
    best: tuple[dict[str, str], str] | None = None
    for _ in range(_ATTEMPTS):
        best = _changed(space, parent, evaluation=evaluation, others=others, known=known, rng=rng)
        if tuple(sorted(best[0].items())) not in known.tried:
            break
    assert best is not None
    return best


def _stepped_back(
    space: Space, parent: Parameters, verdict: Verdict
) -> tuple[dict[str, str], str] | None:
    """After a failure: what is known to be exact, or the defaults."""
    chosen, changes = dict(parent), []
    for each in space.parameters:
        wrong = verdict is Verdict.WRONG
        goal = each.safe if wrong else each.default
        if goal is not None and chosen[each.name] != goal:
            changes.append(f"{each.name} {chosen[each.name]} -> {goal}")
            chosen[each.name] = goal
    return (chosen, f"step back after {verdict}: {', '.join(changes)}") if changes else None


def _changed(
    space: Space, parent: Parameters, *, evaluation: Evaluation, others: Sequence[Parameters],
    known: Statistics, rng: random.Random,
) -> tuple[dict[str, str], str]:  # fmt: skip
    chosen, changes = dict(parent), []
    for each in _picked(space, evaluation, rng):
        value, origin = _next(each, chosen[each.name], others, known, rng)
        changes.append(f"{each.name} {chosen[each.name]} -> {value} ({origin or each.why})")
        chosen[each.name] = value
    return chosen, "; ".join(changes)


def _picked(space: Space, evaluation: Evaluation, rng: random.Random) -> list[Parameter]:
    """One parameter, at times two, biased by where the time seems to go."""
    free = [each for each in space.parameters if len(each.choices) > 1]
    weights = [_pull(each.name, evaluation) for each in free]
    count = 1 if rng.random() < 0.6 else 2
    picked: list[Parameter] = []
    while free and len(picked) < count:
        at = rng.choices(range(len(free)), weights)[0]
        picked.append(free.pop(at))
        weights.pop(at)
    return picked


def _pull(name: str, evaluation: Evaluation) -> float:
    weight = 1.0
    timing = evaluation.timing
    if timing is not None:
        short = min(each.median_us for each in timing.workloads) < _SHORT_US
        weight *= 2.0 if short and name in _BY_OVERHEAD else 1.0
    if evaluation.coverage is not None and evaluation.coverage.own < 0.5:
        weight *= 2.0 if name in _BY_OVERHEAD else 1.0  # the library decides; get out of its way
    if name in ("math", "accumulate"):
        weight *= 0.3  # they trade exactness; seldom the bottleneck
    return weight * (0.3 if name == "threads" else 1.0)


def _next(
    parameter: Parameter, now: str, others: Sequence[Parameters], known: Statistics,
    rng: random.Random,
) -> tuple[str, str]:  # fmt: skip
    """Another value: an inspiration's, a neighbour's, or any, by what is known of each."""
    borrowed = sorted({each[parameter.name] for each in others} - {now})
    if borrowed and rng.random() < 0.4:
        return rng.choice(borrowed), "as in an inspiration"
    at = parameter.choices.index(now)
    near = [
        each
        for i, each in enumerate(parameter.choices)
        if each != now and (not parameter.ordered or abs(i - at) == 1)
    ]
    weights = [known.weight(parameter.name, each) for each in near]
    return rng.choices(near, weights)[0], ""
