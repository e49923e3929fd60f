"""An archive: the best candidate per behaviour cell of one island (MAP-Elites)."""

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.trajectory import Exemplar, Outcome, Placement, Role
from kernelsmith.search.descriptors import DEFAULT, DIMENSIONS, VERSION, Cell, cell_of, descriptors
from kernelsmith.search.score import Grade, grade

TOP = 16
"""How many of an archive's best are kept in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Elite:
    """The holder of one cell."""

    candidate: Candidate
    evaluation: Evaluation
    grade: Grade
    cell: Cell
    migrant: bool = False
    """Whether it is a copy from another island; copies do not travel on."""

    @property
    def id(self) -> CandidateId:
        """The candidate's, without hashing its source again."""
        return self.evaluation.candidate

    @property
    def score(self) -> float:
        """What it ranks by."""
        return self.grade.score

    def as_exemplar(self, role: Role) -> Exemplar:
        """Hand it out in a brief."""
        return Exemplar(
            role=role, candidate=self.candidate, evaluation=self.evaluation, score=self.score
        )


class Archive:
    """A dictionary from cells to elites that also knows its best, in order.

    One elite per cell, replaced only by one that is better beyond the noise of both. Adding costs
    the same however many were added, and so does drawing from it.
    """

    def __init__(self, *, island: int = 0, dimensions: Sequence[str] = DEFAULT) -> None:
        self.island = island
        self.dimensions = tuple(dimensions)
        self.version = VERSION
        self._elites: dict[Cell, Elite] = {}
        self._cells: list[Cell] = []
        self._top: list[Elite] = []
        self._qd_score = 0.0

    def add(
        self, candidate: Candidate, evaluation: Evaluation, *, migrant: bool = False
    ) -> Placement:
        """Put a candidate where it belongs, and say what was done.

        What did not pass is never an elite: the placement says ``failed`` and names no cell.
        """
        graded = grade(evaluation)
        if evaluation.verdict is not Verdict.PASSED:
            return Placement(outcome=Outcome.FAILED, island=self.island, score=graded.score)
        cell = cell_of(descriptors(candidate, evaluation, dimensions=self.dimensions))
        elite = Elite(
            candidate=candidate, evaluation=evaluation, grade=graded, cell=cell, migrant=migrant
        )
        return self._put(elite)

    def copy_in(self, elite: Elite) -> Placement:
        """Add a copy of another island's elite, marked as such; both have the same dimensions."""
        copy = Elite(
            candidate=elite.candidate, evaluation=elite.evaluation, grade=elite.grade,
            cell=elite.cell, migrant=True,
        )  # fmt: skip
        return self._put(copy)

    def __len__(self) -> int:
        """Occupied cells."""
        return len(self._cells)

    def __iter__(self) -> Iterator[Elite]:
        """All elites, in the order in which their cells were opened."""
        return (self._elites[cell] for cell in self._cells)

    def __getitem__(self, index: int) -> Elite:
        """The elite of the cell that was opened as number ``index``; O(1), for drawing."""
        return self._elites[self._cells[index]]

    def at(self, cell: Cell) -> Elite | None:
        """The elite of one cell."""
        return self._elites.get(cell)

    @property
    def top(self) -> Sequence[Elite]:
        """The best ``TOP`` of the archive, best first."""
        return self._top

    @property
    def capacity(self) -> int:
        """Cells that could be occupied, those of unknown descriptors included."""
        return math.prod(DIMENSIONS[name].size for name in self.dimensions)

    @property
    def coverage(self) -> float:
        """Share of the cells that are occupied."""
        return len(self) / self.capacity

    @property
    def qd_score(self) -> float:
        """Sum of the elites' scores: quality and diversity in one number, which never falls."""
        return self._qd_score

    def rebin(self, dimensions: Sequence[str] | None = None) -> int:
        """Insert every occupant anew, under today's bins, and return how many lost their cell.

        For a change of ``VERSION`` or of the dimensions. The best go first, so that the one which
        keeps a cell that several now share is the best of them.
        """
        occupants = sorted(self, key=lambda elite: (-elite.score, elite.id))
        self.dimensions = self.dimensions if dimensions is None else tuple(dimensions)
        self.version = VERSION
        self._elites, self._cells, self._top, self._qd_score = {}, [], [], 0.0
        for elite in occupants:
            self.add(elite.candidate, elite.evaluation, migrant=elite.migrant)
        return len(occupants) - len(self)

    def _put(self, elite: Elite) -> Placement:
        held = self._elites.get(elite.cell)
        if held is None:
            outcome, gained = Outcome.NEW, elite.score
            self._cells.append(elite.cell)
        elif elite.grade.improves_on(held.grade):
            outcome, gained = Outcome.IMPROVED, elite.score - held.score
        else:
            outcome, gained = Outcome.KEPT_OUT, 0.0
        if outcome is not Outcome.KEPT_OUT:
            self._elites[elite.cell] = elite
            self._qd_score += gained
            self._rank(elite, held)
        return Placement(
            outcome=outcome, island=self.island, cell=elite.cell, score=elite.score, gained=gained
        )

    def _rank(self, elite: Elite, held: Elite | None) -> None:
        """Keep the best in order.

        Whoever takes a cell is better than who held it: none that fell off the end is missed.
        """
        if held is not None:
            self._top = [each for each in self._top if each is not held]
        at = bisect_left(self._top, -elite.score, key=lambda each: -each.score)
        while at < len(self._top) and self._top[at].score == elite.score:
            at += 1  # among equals, the older first
        self._top.insert(at, elite)
        del self._top[TOP:]
