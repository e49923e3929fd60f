"""The order of work on one row: which reductions share a sweep, and what is kept between them."""

from dataclasses import dataclass

from kernelsmith.propose.rules.graph import COSTLY, Graph, Kind, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Online:
    """A maximum and the sum of exponentials below it, found in one sweep."""

    maximum: int
    total: int
    over: int
    """What both are taken over."""
    unshifted: bool = False
    """Whether an infinite maximum is not taken off: the sum is then infinite, and not no number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One walk along a row."""

    reduces: tuple[int, ...] = ()
    online: tuple[Online, ...] = ()
    keeps: tuple[int, ...] = ()
    """Values written to scratch, for a later sweep to read."""
    writes: bool = False
    """Whether it writes the output."""

    @property
    def targets(self) -> tuple[int, ...]:
        """Reductions that the sweep ends with."""
        return self.reduces + tuple(each.total for each in self.online)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The sweeps of one row, in order."""

    sweeps: tuple[Sweep, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        """All that is kept, in the order of its place in scratch."""
        return tuple(sorted({each for sweep in self.sweeps for each in sweep.keeps}))


def onlines(graph: Graph) -> tuple[Online, ...]:
    """Pairs that one sweep can find: ``max(a)`` and ``sum(exp(a - max(a)))``."""
    found = []
    nodes = graph.nodes
    for number in graph.of(Kind.REDUCE):
        if nodes[number].op != "sum":
            continue
        grown = nodes[nodes[number].args[0]]
        if grown.op != "exp" or nodes[grown.args[0]].op != "sub":
            continue
        over, shift = nodes[grown.args[0]].args
        top = nodes[shift].args[0] if nodes[shift].op == "or_zero" else shift
        if nodes[top].kind is Kind.REDUCE and nodes[top].op == "max" and nodes[top].args == (over,):
            found.append(Online(maximum=top, total=number, over=over, unshifted=top != shift))
    return tuple(found)


def plan(graph: Graph, *, keep: bool, online: bool) -> Plan:
    """Put every reduction into the earliest sweep that can take it."""
    pairs = onlines(graph) if online else ()
    levels = _levels(graph, {pair.total: pair.maximum for pair in pairs})
    last = max((levels[n] for n in graph.of(Kind.REDUCE)), default=0)
    paired = {pair.maximum for pair in pairs} | {pair.total for pair in pairs}
    sweeps = [
        Sweep(
            reduces=tuple(
                n for n in graph.of(Kind.REDUCE) if levels[n] == level and n not in paired
            ),
            online=tuple(pair for pair in pairs if levels[pair.maximum] == level),
        )
        for level in range(1, last + 1)
    ]
    if graph.result.shape is Shape.FULL:
        sweeps.append(Sweep(writes=True))
    return Plan(sweeps=tuple(_keeping(graph, sweeps) if keep else sweeps))


def can_keep(graph: Graph) -> bool:
    """Whether anything costly is needed in two sweeps."""
    return bool(plan(graph, keep=True, online=False).kept)


def _levels(graph: Graph, same: dict[int, int]) -> list[int]:
    levels: list[int] = []
    for number, node in enumerate(graph.nodes):
        if number in same:
            levels.append(levels[same[number]])
            continue
        below = max((levels[a] for a in node.args), default=0)
        levels.append(below + (node.kind is Kind.REDUCE))
    return levels


def roots(graph: Graph, sweep: Sweep) -> list[int]:
    """The full values that a sweep computes for their own sake."""
    found = [graph.nodes[n].args[0] for n in sweep.reduces]
    found += [pair.over for pair in sweep.online]
    return found + ([graph.output] if sweep.writes else [])


def computed(graph: Graph, starts: list[int], have: frozenset[int]) -> list[int]:
    """Values per element that a sweep computes for these, in order; ``have`` is read instead."""
    found: set[int] = set()
    stack = list(starts)
    while stack:
        number = stack.pop()
        node = graph.nodes[number]
        if number in found or node.shape not in (Shape.FULL, Shape.COLUMN):
            continue
        found.add(number)
        if number not in have:
            stack += node.args
    return sorted(found)


def _keeping(graph: Graph, sweeps: list[Sweep]) -> list[Sweep]:
    costly = _costly(graph)
    made: dict[int, int] = {}
    keeps: dict[int, set[int]] = {}
    kept: frozenset[int] = frozenset()
    for position, sweep in enumerate(sweeps):
        # The topmost values that an earlier sweep had are the ones worth keeping.
        reached: set[int] = set()
        stack = roots(graph, sweep)
        while stack:
            number = stack.pop()
            if graph.nodes[number].shape is not Shape.FULL or number in reached:
                continue
            reached.add(number)
            if number in made and number in costly:
                keeps.setdefault(made[number], set()).add(number)
                kept |= {number}
                continue
            stack += graph.nodes[number].args
        for number in computed(graph, roots(graph, sweep), kept):
            made.setdefault(number, position)
    return [
        Sweep(
            reduces=sweep.reduces, online=sweep.online, writes=sweep.writes,
            keeps=tuple(sorted(keeps.get(position, ()))),
        )
        for position, sweep in enumerate(sweeps)
    ]  # fmt: skip


def _costly(graph: Graph) -> set[int]:
    """Full values that take a costly operator to make."""
    found: set[int] = set()
    for number, node in enumerate(graph.nodes):
        made = node.shape is Shape.FULL and node.kind is not Kind.INPUT
        if made and (node.op in COSTLY or found & set(node.args)):
            found.add(number)
    return found
