"""Entrants: who is compared. Searches by a proposer, recorded runs, and what needs no search."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.run.config import ProposerSpec
from kernelsmith.run.start import JOURNAL

SEARCH, RUNS = "search", "runs"
FIXED = ("eager", "compile", "max-autotune")
"""Entrants without a search: the reference itself, and the reference behind torch's compiler."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One column of a table."""

    name: str
    """One word, the same in every file of records."""
    kind: str
    """``search``, ``runs``, or one of ``FIXED``."""
    proposer: ProposerSpec | None = None
    """Who writes, for ``search``."""
    policy: str = ""
    """How candidates are chosen to be improved, for ``search``; empty: as the preset says."""
    runs: str = ""
    """A folder of runs that were made elsewhere, for ``runs``; an agent's, for instance."""

    def __post_init__(self) -> None:
        if self.kind not in (SEARCH, RUNS, *FIXED):
            raise UsageError(f"no entrant {self.kind!r}; known are {', '.join(FIXED)}")
        if (self.kind == SEARCH) is (self.proposer is None):
            raise ValueError("a search has a proposer, and nothing else has")

    @property
    def is_fixed(self) -> bool:
        """Whether it is judged once, whatever the seed."""
        return self.kind in FIXED


def searching(spec: ProposerSpec, policy: str = "") -> Entrant:
    """A search; named after who writes, and the policy where that is not the usual one."""
    name = spec.kind
    if spec.kind == "llm":
        name = "+".join(model.name for model in spec.models)
    elif spec.kind in ("replay", "student"):
        name = f"{spec.kind}:{Path(spec.path or '').stem}"
    if policy not in ("", "evolve"):
        name = f"{name}/{policy}"
    return Entrant(name=_word(name), kind=SEARCH, proposer=spec, policy=policy)


def recorded(folder: Path, name: str = "") -> Entrant:
    """Runs that exist already, one folder each, matched to tasks by name.

    Raises:
        UsageError: There is none.
    """
    if not any(folder.rglob(JOURNAL)):
        raise UsageError(f"{str(folder)!r} holds no run: no {JOURNAL} in it or below")
    folder = folder.resolve()  # the bench may be taken up from another folder
    return Entrant(name=_word(name or folder.name), kind=RUNS, runs=str(folder))


def fixed(name: str) -> Entrant:
    """The reference, as it is or compiled."""
    if name not in FIXED:
        raise UsageError(f"no entrant {name!r}; known are {', '.join(FIXED)}")
    return Entrant(name=name, kind=name)


def distinct(entrants: Sequence[Entrant]) -> tuple[Entrant, ...]:
    """Refuse two of one name: their records could not be told apart."""
    names = [each.name for each in entrants]
    if not names:
        raise UsageError("nobody to compare; name one: --proposer rules, --model NAME, --entrant")
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two entrants are called {name!r}; a table needs names of their own")
    return tuple(entrants)


def run_for(folder: Path, task: str, number: int) -> Path | None:
    """The recorded run of one task; several are taken in the order of their names, one a sample."""
    found = _runs_in(folder).get(task, ())
    return found[number] if number < len(found) else None


@cache
def _runs_in(folder: Path) -> dict[str, list[Path]]:
    """Runs by the name of their task; read once, since a bench asks for every task."""
    from kernelsmith.run.journal import read

    found: dict[str, list[Path]] = {}
    for journal in sorted(folder.rglob(JOURNAL)):
        found.setdefault(read(journal).header.task.name, []).append(journal.parent)
    return found


def _word(name: str) -> str:
    return re.sub(r"\s+", "-", name.strip()) or "unnamed"
