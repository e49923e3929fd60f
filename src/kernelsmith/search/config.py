"""How a search behaves: one frozen value, checked when it is made."""

from dataclasses import dataclass

from kernelsmith.errors import UsageError
from kernelsmith.search.descriptors import DEFAULT, DIMENSIONS

POLICY_NAMES = ("evolve", "best-of-n", "refine", "greedy", "random")
TOPOLOGIES = ("ring",)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchConfig:
    """Everything that changes what ``ask`` answers, besides task, seed and what was told."""

    policy: str = "evolve"
    islands: int = 2
    """Used by ``evolve``; the controls have one."""
    migration_every: int = 12
    """Tells between migrations, counted over all islands."""
    migrants: int = 1
    """Elites that each island sends on per migration."""
    topology: str = "ring"
    pursue: int = 10
    """Children that an island's best has before the mix below applies to most of the asks."""
    exploit: float = 0.7
    """Share of asks whose parent is one of its island's best few."""
    explore: float = 0.1
    """Share of asks whose parent is the least used of a few from any island. The rest take theirs
    from a few cells drawn evenly among all occupied ones of the island."""
    inspirations: int = 4
    """In a brief: half of them top, half from cells that differ."""
    failures: int = 3
    """In a brief, newest first."""
    failures_kept: int = 16
    """Remembered; distinct by verdict and first line."""
    dimensions: tuple[str, ...] = DEFAULT
    """What the archive's cells are over; see ``descriptors.py``."""

    def __post_init__(self) -> None:
        _one_of("policy", self.policy, POLICY_NAMES)
        _one_of("topology", self.topology, TOPOLOGIES)
        for name in ("islands", "migration_every"):
            _at_least(name, getattr(self, name), 1)
        for name in ("migrants", "inspirations", "failures", "pursue"):
            _at_least(name, getattr(self, name), 0)
        _at_least("failures_kept", self.failures_kept, self.failures)
        if min(self.exploit, self.explore) < 0 or self.exploit + self.explore > 1:
            raise UsageError(
                f"exploit and explore are shares of 1; got {self.exploit} and {self.explore}"
            )
        if not self.dimensions or len(set(self.dimensions)) != len(self.dimensions):
            raise UsageError(f"an archive has dimensions, each once; got {self.dimensions}")
        for name in self.dimensions:
            _one_of("dimension", name, tuple(DIMENSIONS))


def _one_of(what: str, name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise UsageError(f"no {what} {name!r}; known are {', '.join(known)}")


def _at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise UsageError(f"{name} is at least {least}; got {value}")
