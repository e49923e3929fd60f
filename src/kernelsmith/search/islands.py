"""Islands: archives that search on their own and exchange elites by migration.

Ring topology: island i sends copies of its best to island i + 1, and the last one to the first.
Copies are marked and do not travel on, so that islands stay different; each copy has to win its
cell like any newcomer.
"""

from collections.abc import Sequence

from kernelsmith.domain.trajectory import Placement
from kernelsmith.search.archive import Archive


def home(number: int, islands: int) -> int:
    """Return the island that an ask works for: each in turn."""
    return number % islands


def migrate(archives: Sequence[Archive], *, migrants: int) -> list[Placement]:
    """Send each island's best natives to the next one; all are chosen before any is added."""
    if len(archives) == 1:
        return []
    leaving = [
        [elite for elite in archive.top if not elite.migrant][:migrants] for archive in archives
    ]
    placed = []
    for island, elites in enumerate(leaving):
        there = archives[(island + 1) % len(archives)]
        placed += [there.copy_in(elite) for elite in elites]
    return placed


def source_of(archives: Sequence[Archive], island: int) -> Archive | None:
    """Return the archive that an ask of ``island`` draws from, if any has an elite.

    Its own; as long as that is empty, the nearest one upstream in the ring.
    """
    upstream = (archives[(island - back) % len(archives)] for back in range(len(archives)))
    return next((archive for archive in upstream if len(archive)), None)
