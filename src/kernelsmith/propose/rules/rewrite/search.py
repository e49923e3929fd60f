"""Looks for cheaper graphs: tidy rules wherever they fit, the others as the cost model says."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kernelsmith.propose.rules.rewrite.algebra.catalogue import COSTED, TIDY
from kernelsmith.propose.rules.rewrite.algebra.rule import Rule
from kernelsmith.propose.rules.rewrite.build import Build
from kernelsmith.propose.rules.rewrite.cost import Peaks, cost_us
from kernelsmith.propose.rules.rewrite.graph import FLOATS, NONE, Arena, Node

_WIDTH = 4
_DEPTH = 10
_MOST_TIDY = 400
_MOST_SITES = 60
"""In larger graphs single sites are not tried: a rule is applied everywhere it fits at once."""


EVERYWHERE = -1
Step = tuple[Rule, int]
"""A rule, and at which of the sites where it fits (in order), or ``EVERYWHERE``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A rewritten graph, and how it was reached."""

    roots: tuple[int, ...]
    rules: tuple[Rule, ...] = ()
    steps: tuple["Step", ...] = ()
    """The choices that were made: all but the tidying in between."""
    cost_us: float = 0.0

    @property
    def names(self) -> tuple[str, ...]:
        """The rules that were applied, each once, in order."""
        return tuple(dict.fromkeys(each.name for each in self.rules))


def apply(arena: Arena, roots: tuple[int, ...], rule: Rule, site: int) -> tuple[int, ...] | None:
    """The graph after one rule at one node; nothing where it does not fit."""
    node = arena[site]
    if node.dtype not in FLOATS:
        return None
    new = rule.rewrite(Build(arena), site)
    if new is None or new == site:
        return None
    return arena.replaced(roots, {site: new})


def tidied(
    arena: Arena, found: Found, peaks: Peaks, allowed: frozenset[str] | None = None
) -> Found:
    """Apply what never costs anything until nothing fits any more."""
    rules = [each for each in TIDY if allowed is None or each.name in allowed]
    for _ in range(_MOST_TIDY):
        step = _first(arena, found.roots, rules)
        if step is None:
            break
        found = replace(found, roots=step[0], rules=(*found.rules, step[1]))
    return replace(found, cost_us=cost_us(arena, found.roots, peaks))


def _first(
    arena: Arena, roots: tuple[int, ...], rules: Iterable[Rule]
) -> tuple[tuple[int, ...], Rule] | None:
    for site in arena.reachable(roots):
        for rule in rules:
            new = apply(arena, roots, rule, site)
            if new is not None and new != roots:
                return new, rule
    return None


def search(arena: Arena, roots: tuple[int, ...], peaks: Peaks) -> list[Found]:
    """Different graphs of the same value, cheapest first; the one given is not among them.

    A beam over single applications. A step that costs a little more is kept (a bias that must move
    before a product can shrink), one that costs much more is not.
    """
    start = Found(roots=roots, cost_us=cost_us(arena, roots, peaks))
    beam = [tidied(arena, start, peaks)]
    seen: dict[tuple[int, ...], Found] = {roots: start}
    seen.setdefault(beam[0].roots, beam[0])
    limit = start.cost_us * 1.02 + 2 * peaks.launch_us
    for _ in range(_DEPTH):
        more: list[Found] = []
        for state in beam:
            for new, step in _steps(arena, state.roots):
                found = tidied(arena, _after(state, new, step), peaks)
                if found.roots in seen or found.cost_us > min(limit, state.cost_us * 1.1 + 10):
                    continue
                seen[found.roots] = found
                more.append(found)
        if not more:
            break
        beam = sorted(more, key=_order)[:_WIDTH]
    return sorted((each for key, each in seen.items() if key != roots), key=_order)


def _order(found: Found) -> tuple[float, int, tuple[str, ...]]:
    return round(found.cost_us, 3), len(found.rules), found.names


def _after(state: Found, roots: tuple[int, ...], step: Step) -> Found:
    return Found(roots=roots, rules=(*state.rules, step[0]), steps=(*state.steps, step))


def _sites(arena: Arena, roots: tuple[int, ...], rule: Rule) -> list[tuple[int, ...]]:
    """The graphs after this rule at each of the sites where it fits."""
    found = []
    for site in arena.reachable(roots):
        new = apply(arena, roots, rule, site)
        if new is not None and new != roots:
            found.append(new)
    return found


def _steps(arena: Arena, roots: tuple[int, ...]) -> list[tuple[tuple[int, ...], Step]]:
    found: list[tuple[tuple[int, ...], Step]] = []
    small = len(arena.reachable(roots)) <= _MOST_SITES
    for rule in COSTED:
        sites = _sites(arena, roots, rule)
        if small or len(sites) == 1:
            found += [(new, (rule, number)) for number, new in enumerate(sites)]
        if len(sites) > 1:
            found.append((everywhere(arena, roots, rule), (rule, EVERYWHERE)))
    return found


def everywhere(arena: Arena, roots: tuple[int, ...], rule: Rule) -> tuple[int, ...]:
    """Apply one rule at every site where it fits, from the inputs on, once each."""
    now: dict[int, int] = {NONE: NONE}
    for number in arena.reachable(roots):
        node = arena[number]
        inputs = tuple(now[each] for each in node.inputs)
        same = number if inputs == node.inputs else arena.add(replace(node, inputs=inputs))
        new = rule.rewrite(Build(arena), same) if node.dtype in FLOATS else None
        assert new is None or _alike(arena[new], node), (rule.name, node, arena[new])
        now[number] = same if new is None else new
    return tuple(now[each] for each in roots)


def _alike(one: Node, other: Node) -> bool:
    return (one.shape, one.dtype) == (other.shape, other.dtype)


def replay(arena: Arena, roots: tuple[int, ...], found: Found, peaks: Peaks) -> Found | None:
    """Take the same steps in the graph of another workload; nothing where one does not fit."""
    allowed = frozenset(each.name for each in found.rules)
    state = tidied(arena, Found(roots=roots), peaks, allowed)
    for rule, number in found.steps:
        if number == EVERYWHERE:
            new = everywhere(arena, state.roots, rule)
        else:
            sites = _sites(arena, state.roots, rule)
            if number >= len(sites):
                return None
            new = sites[number]
        state = tidied(arena, _after(state, new, (rule, number)), peaks, allowed)
    return state if state.roots != roots else None
