"""One variant out of two of the same family: each parameter from one or the other."""

import random
from collections.abc import Sequence

from kernelsmith.propose.rules.mutation import Move
from kernelsmith.propose.rules.space import Parameters, Space
from kernelsmith.propose.rules.statistics import Key, Statistics, key_of


def crossings(
    space: Space, parent: Parameters, others: Sequence[Parameters], *,
    known: Statistics, rng: random.Random, count: int,
) -> list[Move]:  # fmt: skip
    """Up to ``count`` untried variants that take something from the parent and from another.

    Two that differ in one parameter have no child of their own; nobody is crossed with itself.
    """
    found: dict[Key, Move] = {}
    partners = [
        (other, differing)
        for other in others
        if len(differing := [p.name for p in space.parameters if parent[p.name] != other[p.name]])
        > 1
    ]
    for _ in range(2 * count if partners else 0):
        other, differing = rng.choice(partners)
        taken = rng.sample(differing, rng.randint(1, len(differing) - 1))
        chosen = dict(parent) | {name: other[name] for name in taken}
        if key_of(chosen) not in known.tried and len(found) < count:
            listed = ", ".join(
                f"{name} {parent[name]} -> {other[name]}" for name in differing if name in taken
            )
            note = f"crossed with an inspiration that passed, too: {listed}"
            found.setdefault(key_of(chosen), Move(chosen=chosen, note=note))
    return list(found.values())
