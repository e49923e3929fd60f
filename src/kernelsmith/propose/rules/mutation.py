"""Variants near a parent: one or two parameters changed, where the diagnosis points."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.propose.rules.diagnosis import Advice, Diagnosis
from kernelsmith.propose.rules.space import Parameter, Parameters, Space
from kernelsmith.propose.rules.statistics import Key, Statistics, key_of

Pull = tuple[Parameter, float, Advice | None]
"""A parameter, how much speaks for changing it, and why."""
_ATTEMPTS = 4
"""Draws for each variant that is wanted; small spaces run out of new ones."""
_OBEYED = 0.8
"""How often an ordered parameter goes the way that the diagnosis points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A variant, and in words what was changed and why."""

    chosen: dict[str, str]
    note: str


def stepped_back(space: Space, parent: Parameters, verdict: Verdict) -> Move | None:
    """After a failure: what is known to be exact, or the defaults."""
    chosen, changes = dict(parent), []
    for each in space.parameters:
        wrong = verdict is Verdict.WRONG
        goal = each.safe if wrong else each.default
        if goal is not None and chosen[each.name] != goal:
            changes.append(f"{each.name} {chosen[each.name]} -> {goal}")
            chosen[each.name] = goal
    if not changes:
        return None
    return Move(chosen=chosen, note=f"step back after {verdict}: {', '.join(changes)}")


def made_exact(space: Space, parent: Parameters) -> Move | None:
    """After a result that was off as TF32 is: the same without that, and all else as it was."""
    chosen = space.exactly(parent)
    changes = [
        f"{each.name} {parent[each.name]} -> {chosen[each.name]}"
        for each in space.parameters
        if chosen[each.name] != parent[each.name]
    ]
    if not changes:
        return None
    note = f"step back after {Verdict.WRONG}: {', '.join(changes)} (it was off as TF32 is)"
    return Move(chosen=chosen, note=note)


def moves(
    space: Space, parent: Parameters, *, diagnosis: Diagnosis, others: Sequence[Parameters],
    known: Statistics, rng: random.Random, count: int,
) -> list[Move]:  # fmt: skip
    """Up to ``count`` different variants near the parent that were not tried, as drawn."""
    found: dict[Key, Move] = {}
    free = [(p, *diagnosis.pull(p)) for p in space.parameters if len(p.choices) > 1]
    for _ in range(count * _ATTEMPTS if free else 0):
        move = _changed(free, parent, others=others, known=known, rng=rng)
        key = key_of(move.chosen)
        if key not in known.tried:
            found.setdefault(key, move)
        if len(found) == count:
            break
    return list(found.values())


def _changed(
    free: Sequence[Pull], parent: Parameters, *, others: Sequence[Parameters],
    known: Statistics, rng: random.Random,
) -> Move:  # fmt: skip
    chosen, changes = dict(parent), []
    for each, _, advice in _picked(free, rng):
        value, origin = _next(each, chosen[each.name], advice, others, known, rng)
        why = origin or (advice.why if advice is not None else each.why)
        changes.append(f"{each.name} {chosen[each.name]} -> {value} ({why})")
        chosen[each.name] = value
    return Move(chosen=chosen, note="; ".join(changes))


def _picked(free: Sequence[Pull], rng: random.Random) -> list[Pull]:
    """One parameter, at times two, as likely as the diagnosis pulls at them."""
    left = list(free)
    picked: list[Pull] = []
    count = 1 if rng.random() < 0.6 else 2
    while left and len(picked) < count:
        at = rng.choices(range(len(left)), [weight for _, weight, _ in left])[0]
        picked.append(left.pop(at))
    return picked


def _next(
    parameter: Parameter, now: str, advice: Advice | None, others: Sequence[Parameters],
    known: Statistics, rng: random.Random,
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
    if parameter.ordered and advice is not None and advice.step and rng.random() < _OBEYED:
        wanted = at + advice.step
        if 0 <= wanted < len(parameter.choices):
            near = [parameter.choices[wanted]]
    weights = [known.weight(parameter.name, each) for each in near]
    return rng.choices(near, weights)[0], ""
