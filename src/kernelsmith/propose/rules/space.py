"""Parameters of a family: their values, the header line, and those of the graph templates."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelsmith.propose.header import header_of, written
from kernelsmith.propose.rules.chip import H200, Chip
from kernelsmith.propose.rules.graph import COSTLY, POLYNOMIAL, Graph, Kind, Shape
from kernelsmith.propose.rules.levers import Lever, lever_named
from kernelsmith.propose.rules.plan import can_keep, onlines, plan

Parameters = Mapping[str, str]
Seed = tuple[tuple[str, str], ...]
"""Some choices, by name."""
_STRIDE = 256
"""Asks whose seeds cannot coincide, as long as there are that many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One choice that a family leaves open."""

    name: str
    choices: tuple[str, ...]
    default: str
    why: str
    """What changing it may gain, for the note."""
    ordered: bool = True
    """Whether neighbours are alike, so that a mutation goes one step."""
    safe: str | None = None
    """The value to go back to after a wrong result, where there is one."""
    coarse: tuple[tuple[str, float], ...] = ()
    """Values that are less exact than eager, and how far off in the judge's norm: tried only where
    the budget that it measured has room for that."""
    rounded: tuple[tuple[str, Seed], ...] = ()
    """Values that multiply float32 in TF32, as torch's convolutions may, each with what to choose
    instead where eager's are exact."""
    lever: Lever | None = None
    """What it acts on; guessed from the name where nobody says."""
    kernel: str = ""
    """The kernel whose launch it sets, by its name in the source; empty: no single one."""

    def __post_init__(self) -> None:
        if self.default not in self.choices:
            raise ValueError(f"{self.name} has no choice {self.default!r}")
        if self.default in dict(self.coarse):
            raise ValueError(f"{self.name} cannot begin with {self.default!r}, which is coarse")
        for value, instead in self.rounded:
            if dict(instead).get(self.name, value) in dict(self.rounded):
                raise ValueError(f"{self.name}={value} needs a choice that does not round")

    @property
    def acts_on(self) -> Lever:
        """Its lever, given or guessed."""
        return self.lever or lever_named(self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """All variants of one family for one task."""

    template: str
    parameters: tuple[Parameter, ...]
    seeds: tuple[Seed, ...]
    """What differs from the defaults in the first variants tried, best guess first."""

    @property
    def size(self) -> int:
        """How many variants there are."""
        size = 1
        for each in self.parameters:
            size *= len(each.choices)
        return size

    def __post_init__(self) -> None:
        known = {each.name: each.choices for each in self.parameters}
        exact = [instead for each in self.parameters for _, instead in each.rounded]
        for name, value in (pair for seed in (*self.seeds, *exact) for pair in seed):
            if value not in known.get(name, ()):
                raise ValueError(f"{self.template} begins with {name}={value}, which is no choice")

    @property
    def defaults(self) -> dict[str, str]:
        """The variant that is tried first."""
        return {each.name: each.default for each in self.parameters}

    def named(self, name: str) -> Parameter:
        """The parameter of that name."""
        return next(each for each in self.parameters if each.name == name)

    def seed(self, number: int, seed: int) -> dict[str, str]:
        """The variant for an ask without a parent; different numbers give different ones."""
        known = self.starts
        if number < len(known):
            return known[number]
        rng = random.Random(f"{seed}:{number}")
        strata = max(1, self.size // _STRIDE)
        index = number + _STRIDE * rng.randrange(strata)
        for step in range(self.size):
            found = self._variant((index + step * _STRIDE) % self.size)
            if found not in known:
                return found
        return known[0]

    @property
    def starts(self) -> list[dict[str, str]]:
        """The variants to begin with, best guess first; the defaults where none is named."""
        return [self.defaults | dict(each) for each in self.seeds] or [self.defaults]

    def rounding(self, chosen: Parameters) -> frozenset[tuple[str, str]]:
        """The choices by which a variant multiplies float32 in TF32; none where it does not."""
        return frozenset(
            (each.name, chosen[each.name])
            for each in self.parameters
            if chosen[each.name] in dict(each.rounded)
        )

    def exactly(self, chosen: Parameters) -> dict[str, str]:
        """The variant nearest to this one that multiplies float32 as it is."""
        found = dict(chosen)
        for each in self.parameters:
            found |= dict(dict(each.rounded).get(chosen[each.name], ()))
        return found

    def error(self, chosen: Parameters) -> float:
        """How far off a variant is expected to be, in the judge's norm; 0 where it is exact."""
        return max(
            (dict(each.coarse).get(chosen[each.name], 0.0) for each in self.parameters), default=0.0
        )

    def differing(self, chosen: Parameters) -> str:
        """What differs from the defaults, for a note."""
        found = [
            f"{each.name} {chosen[each.name]}"
            for each in self.parameters
            if chosen[each.name] != each.default
        ]
        return ", ".join(found)

    def _variant(self, index: int) -> dict[str, str]:
        scattered = index * _coprime(self.size) % self.size
        found = {}
        for each in self.parameters:
            scattered, at = divmod(scattered, len(each.choices))
            found[each.name] = each.choices[at]
        return found

    def header(self, chosen: Parameters) -> str:
        """The line that a candidate carries."""
        return written(self.template, {each.name: chosen[each.name] for each in self.parameters})

    def read(self, source: str) -> dict[str, str] | None:
        """The parameters in a candidate's header; ``None`` where it has none of this template."""
        found = header_of(source)
        if found is None or found[0] != self.template:
            return None
        given = found[1]
        names = {each.name for each in self.parameters}
        if set(given) != names or any(given[n] not in self.named(n).choices for n in names):
            return None
        return given


def _coprime(size: int) -> int:
    """A number near the golden section of ``size`` that shares no factor with it."""
    found = max(1, int(size * 0.618))
    while math.gcd(found, size) != 1:
        found += 1
    return found


_PASSES = Parameter(
    name="passes",
    choices=("multi", "online"),
    default="multi",
    safe="multi",
    why="maximum and sum in one sweep",
    ordered=False,
)


def cpu_space(graph: Graph) -> Space:
    """What the C++ template of a graph can be varied by."""
    flat = not graph.has_rows
    sums = any(n.kind is Kind.REDUCE and n.op == "sum" for n in graph.nodes)
    made = [
        Parameter(name="width", choices=("4", "8", "16"), default="16",
                  why="floats per vector"),
        Parameter(name="unroll", choices=("1", "2", "4", "8"), default="2",
                  why="vectors in flight hide latency"),
        Parameter(name="tile",
                  choices=("2", "4", "8", "16", "32", "64") if flat else ("1", "2", "4", "8", "16"),
                  default="16" if flat else "4",
                  why="KiB elements per task" if flat else "rows per task"),
        Parameter(name="schedule", choices=("static", "dynamic", "guided"), default="static",
                  why="how threads share the tasks", ordered=False),
        Parameter(name="threads", choices=("1", "all"), default="all",
                  why="one thread starts at once"),
        Parameter(name="serial_below", choices=("0", "4096", "16384", "65536"),
                  default="16384" if graph.ops() & COSTLY else "65536",
                  why="small inputs are not worth waking threads for"),
    ]  # fmt: skip
    if graph.result.shape is Shape.FULL:
        made.append(
            Parameter(
                name="stores",
                choices=("plain", "stream"),
                default="plain",
                why="outputs that nobody reads soon need no cache",
                ordered=False,
            )
        )
    if graph.ops() & POLYNOMIAL:
        made.append(
            Parameter(
                name="math",
                choices=("poly", "libm"),
                default="poly",
                safe="libm",
                why="polynomials run in vectors",
                ordered=False,
            )
        )
    if sums:
        made.append(
            Parameter(
                name="accumulate",
                choices=("lanes", "blocked", "double"),
                safe="double",
                default="lanes",
                why="how partial sums are kept",
                ordered=False,
            )
        )
    if can_keep(graph):
        made.append(
            Parameter(
                name="keep",
                choices=("recompute", "scratch"),
                default="scratch",
                why="values kept between sweeps cost no second exp",
                ordered=False,
            )
        )
    if onlines(graph):
        made.append(_PASSES)
    return Space(template="flat" if flat else "rows", parameters=tuple(made),
                 seeds=_seeds(made, _CPU_SEEDS))  # fmt: skip


_CPU_SEEDS: tuple[Parameters, ...] = (
    {},
    {"unroll": "4", "stores": "stream"},
    {"passes": "online", "keep": "recompute", "unroll": "4"},
    {"tile": "8", "schedule": "dynamic"},
    {"unroll": "1", "tile": "16"},
    {"width": "8", "unroll": "4", "accumulate": "blocked"},
)

_LONG = 16384
"""Elements of a row above which it goes in steps."""
_PROGRAMS = ("0", "264", "1056", "4224")
_SPLITS = Parameter(
    name="splits",
    choices=("1", "4", "16", "64", "256", "1024"),
    default="1",
    why="pieces of a long row, where there are fewer rows than multiprocessors",
)
_TRITON_SEEDS: tuple[Parameters, ...] = (
    {},
    {"warps": "8"},
    {"rows": "4", "warps": "4"},
    {"block": "4096", "warps": "8"},
    {"programs": "1056", "evict": "first"},
    {"block": "2048", "passes": "online"},
)


def triton_space(
    graph: Graph, rows: Sequence[tuple[int, int]] = (), chip: Chip = H200
) -> Space:  # fmt: skip
    """What the Triton template of a graph can be varied by.

    ``rows`` says how many there are and how long, for every workload where that is known.
    """
    flat = not graph.has_rows
    long = [each for each in rows if each[1] > _LONG and not flat]
    each = chip.processors
    made = [
        Parameter(name="block", choices=("256", "512", "1024", "2048", "4096", "8192"),
                  default="1024" if flat else "2048",
                  why="elements per step" if flat else "elements per step of a long row"),
        Parameter(name="warps", choices=("1", "2", "4", "8", "16", *(["32"] if long else [])),
                  default="4", why="warps per program"),
        Parameter(name="programs", choices=_by_processor(each) if long else _PROGRAMS, default="0",
                  why="0 is one per tile; otherwise programs stay and take the next"),
        Parameter(name="evict", choices=("none", "first"), default="none", ordered=False,
                  why="inputs that are read once should leave the cache first"),
    ]  # fmt: skip
    if not flat:
        made += [
            Parameter(name="rows", choices=("1", "2", "4", "8"), default="1",
                      why="rows per program"),
            Parameter(name="whole", choices=("1024", "4096", "16384", "65536"), default="16384",
                      why="rows up to this length stay in registers"),
        ]  # fmt: skip
    if onlines(graph):
        made.append(_PASSES)
    wanted = _TRITON_SEEDS
    if long and len(plan(graph, keep=False, online=False).sweeps) > 1:
        wanted = (*_long_seeds(each), *wanted)
    few = min((count for count, _ in long), default=each)
    if few < each and graph.of(Kind.REDUCE) and not graph.of(Kind.TOTAL):
        made.append(_SPLITS)
        wanted = (*_few_seeds(few, each), *wanted)
    return Space(template="flat" if flat else "rows", parameters=tuple(made),
                 seeds=_seeds(made, wanted))  # fmt: skip


def _by_processor(processors: int) -> tuple[str, ...]:
    return ("0", *(str(times * processors) for times in (1, 2, 8, 32)))


def _long_seeds(processors: int) -> tuple[Parameters, ...]:
    """One large program per multiprocessor: what it has read is in the cache when it comes back."""
    near = {"programs": str(processors), "warps": "32", "block": "8192"}
    return (near, near | {"passes": "online"}, {"passes": "online"})


def _few_seeds(rows: int, processors: int) -> tuple[Parameters, ...]:
    """Pieces enough for several programs per multiprocessor."""
    enough = [each for each in _SPLITS.choices if int(each) * rows >= 4 * processors]
    splits = enough[0] if enough else _SPLITS.choices[-1]
    cut = {"splits": splits, "block": "4096", "warps": "8"}
    return (cut | {"passes": "online"}, cut)


def _seeds(parameters: list[Parameter], wanted: tuple[Parameters, ...]) -> tuple[Seed, ...]:
    """Those seeds that say something about these parameters, each once."""
    choices = {each.name: each.choices for each in parameters}
    defaults = {each.name: each.default for each in parameters}
    found: list[Seed] = []
    for each in wanted:
        kept = tuple(
            (k, v) for k, v in each.items() if v in choices.get(k, ()) and defaults[k] != v
        )
        if kept not in found:
            found.append(kept)
    return tuple(found)
