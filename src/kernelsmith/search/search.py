"""Search: hands out briefs and learns from what became of them."""

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Exemplar, Outcome, Placement, Role
from kernelsmith.errors import UsageError
from kernelsmith.search.archive import Archive, Elite
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.descriptors import VERSION, Cell
from kernelsmith.search.draw import Draw
from kernelsmith.search.failures import Kept, most_promising, newest, remember
from kernelsmith.search.islands import home, migrate
from kernelsmith.search.policies import POLICIES
from kernelsmith.search.score import grade, score


class Search:
    """One task's population and the policy that draws from it.

    What is known depends on the tells alone, and they come in the order of the asks. What ``ask``
    answers depends on seed, number, what was told and what is in flight: a run in which ask n
    follows tell n - k, for a fixed k, is the same run every time. Asking and telling cost the same
    however many were told.
    """

    def __init__(
        self,
        task: Task,
        *,
        backend: str,
        config: SearchConfig,
        seed: int,
        device: Device | None = None,
    ) -> None:
        self.task = task
        self.backend = backend
        self.config = config
        self.seed = seed
        self.device = device
        self._policy = POLICIES[config.policy]
        count = config.islands if self._policy.has_islands else 1
        self._islands = tuple(
            Archive(island=island, dimensions=config.dimensions) for island in range(count)
        )
        self._asked = self._told = 0
        self._in_flight: dict[int, CandidateId | None] = {}
        self._children: Counter[CandidateId] = Counter()
        self._waiting: Counter[CandidateId] = Counter()
        self._judged: dict[CandidateId, Evaluation] = {}
        self._failures: Kept = OrderedDict()
        self._promising: list[Exemplar] = []
        self._champion: Elite | None = None
        self._head: Elite | None = None
        self._passed: list[Elite] = []
        self._atlas: dict[Cell, float] = {}
        self._qd_score = 0.0
        self._history = hashlib.sha256()

    def ask(self) -> Brief:
        """Return the next brief. Any number may be in flight."""
        number = self._asked
        island = home(number, len(self._islands))
        draw = Draw(self.seed, number)
        choice = self._policy.choose(self, island, draw)
        failures: tuple[Exemplar, ...] = ()
        if choice.shows_failures:
            failures = newest(self._failures, self.config.failures, but=choice.parent)
        parent = None if choice.parent is None else choice.parent.evaluation.candidate
        self._asked += 1
        self._in_flight[number] = parent
        if parent is not None:
            self._waiting[parent] += 1
        return Brief(
            number=number,
            task=self.task,
            backend=self.backend,
            island=island,
            seed=draw.proposer_seed,
            parent=choice.parent,
            inspirations=choice.inspirations,
            failures=failures,
            device=self.device,
        )

    def tell(
        self,
        brief: Brief,
        candidate: Candidate | None,
        evaluation: Evaluation | None,
        *,
        rejection: str = "",
        lost: str = "",
    ) -> Placement:
        """Learn what became of a brief, and say what was done with the candidate.

        Exactly one thing is told: an evaluation of the candidate, a ``rejection`` (there is no
        candidate), why it was ``lost``, or, without any of these, a candidate that is known
        already. A brief of an earlier process may be told without having been asked for here.

        Raises:
            UsageError: The tell is out of order, or says nothing or two things.
        """
        id = None if candidate is None else candidate.id
        _check_tell(id, evaluation, rejection=rejection, lost=lost)
        if brief.number != self._told:
            raise UsageError(
                f"tells are applied in the order of the asks: number {self._told} is next, "
                f"got number {brief.number}"
            )
        if brief.island >= len(self._islands):
            raise UsageError(
                f"the brief is of island {brief.island}; this search has {len(self._islands)}"
            )
        known = None if id is None else self._judged.get(id)
        if id is not None and known is None and evaluation is None and not lost:
            raise UsageError(f"candidate {id} was never judged; tell its evaluation")
        self._settle(brief)
        if candidate is None:
            placement = Placement(outcome=Outcome.REJECTED, island=brief.island)
        elif known is not None:
            placement = Placement(
                outcome=Outcome.DUPLICATE, island=brief.island, score=score(known)
            )
        elif evaluation is None:
            placement = Placement(outcome=Outcome.LOST, island=brief.island)
        else:
            placement = self._place(brief.island, candidate, evaluation)
        line = f"{brief.number} {id} {placement.outcome} {placement.cell} {placement.score!r}\n"
        self._history.update(line.encode())
        if self._told % self.config.migration_every == 0:
            migrate(self._islands, migrants=self.config.migrants)
        return placement

    def known(self, id: CandidateId) -> Evaluation | None:
        """Return the evaluation of a candidate that was told already: judge nothing twice."""
        return self._judged.get(id)

    @property
    def best(self) -> Exemplar | None:
        """The best of the run: no other is better beyond the noise of both."""
        return None if self._champion is None else self._champion.as_exemplar(Role.TOP)

    @property
    def asked(self) -> int:
        """Briefs handed out or told; the next ask has this number."""
        return self._asked

    @property
    def told(self) -> int:
        """Tells applied; the next one must have this number."""
        return self._told

    @property
    def coverage(self) -> float:
        """Share of all cells that are occupied on any island."""
        return len(self._atlas) / self._islands[0].capacity

    @property
    def qd_score(self) -> float:
        """Sum over cells of the best score on any island; it never falls."""
        return self._qd_score

    def cells(self) -> Iterator[tuple[int, Cell, Exemplar]]:
        """All elites with island and cell, for reports."""
        for archive in self._islands:
            for elite in archive:
                yield archive.island, elite.cell, elite.as_exemplar(Role.TOP)

    @property
    def islands(self) -> Sequence[Archive]:
        """The archives, by island."""
        return self._islands

    @property
    def champion(self) -> Elite | None:
        """``best``, for policies."""
        return self._champion

    @property
    def head(self) -> Elite | None:
        """The last that passed and was not worse than the head before it, beyond noise."""
        return self._head

    @property
    def passed(self) -> Sequence[Elite]:
        """All that passed, if the policy draws from them."""
        return self._passed

    @property
    def promising(self) -> Sequence[Exemplar]:
        """What can be mended as long as nothing has passed."""
        return self._promising

    def children(self, id: CandidateId) -> int:
        """How often a candidate was a parent, briefs in flight included."""
        return self._children[id] + self._waiting[id]

    def rebin(self, dimensions: Sequence[str]) -> None:
        """Give all archives other dimensions and insert every occupant anew."""
        self.config = replace(self.config, dimensions=tuple(dimensions))
        for archive in self._islands:
            archive.rebin(self.config.dimensions)
        self._atlas.clear()
        self._qd_score = 0.0
        for archive in self._islands:
            for elite in archive:
                self._chart(elite.cell, elite.score)

    def fingerprint(self) -> str:
        """Hash everything that was told and everything that is held, for replay tests."""
        digest = self._history.copy()
        digest.update(f"{VERSION} {self.seed} {self._told} {self.config}\n".encode())
        for archive in self._islands:
            for elite in sorted(archive, key=lambda each: each.cell):
                held = f"{archive.island} {elite.cell} {elite.id} {elite.score!r} {elite.migrant}\n"
                digest.update(held.encode())
        ids = [each.evaluation.candidate for each in (*self._failures.values(), *self._promising)]
        heads = [each.id for each in (self._champion, self._head) if each is not None]
        digest.update(f"{ids} {heads} {sorted(self._children.items())}".encode())
        return digest.hexdigest()

    def _settle(self, brief: Brief) -> None:
        """Count the brief as told: its parent has one more child, and none waiting."""
        self._told += 1
        self._asked = max(self._asked, self._told)
        waiting = self._in_flight.pop(brief.number, None)
        if waiting is not None:
            self._waiting[waiting] -= 1
            if not self._waiting[waiting]:
                del self._waiting[waiting]
        if brief.parent is not None:
            self._children[brief.parent.evaluation.candidate] += 1

    def _place(self, island: int, candidate: Candidate, evaluation: Evaluation) -> Placement:
        self._judged[evaluation.candidate] = evaluation
        placement = self._islands[island].add(candidate, evaluation)
        if evaluation.verdict is not Verdict.PASSED:
            self._note_failure(candidate, evaluation)
            return placement
        assert placement.cell is not None
        assert placement.score is not None
        self._chart(placement.cell, placement.score)
        elite = Elite(
            candidate=candidate, evaluation=evaluation, grade=grade(evaluation), cell=placement.cell
        )
        self._promising.clear()
        if self._policy.keeps_all:
            self._passed.append(elite)
        if self._head is None or not self._head.grade.improves_on(elite.grade):
            self._head = elite
        if self._champion is None or elite.grade.improves_on(self._champion.grade):
            self._champion = elite
            return replace(placement, is_best=True)
        return placement

    def _note_failure(self, candidate: Candidate, evaluation: Evaluation) -> None:
        failure = Exemplar(
            role=Role.FAILURE, candidate=candidate, evaluation=evaluation, score=score(evaluation)
        )
        remember(self._failures, failure, limit=self.config.failures_kept)
        if self._champion is None:
            parent = replace(failure, role=Role.PARENT)
            self._promising = most_promising(self._promising, parent)

    def _chart(self, cell: Cell, score: float) -> None:
        before = self._atlas.get(cell, 0.0)
        if score > before:
            self._atlas[cell] = score
            self._qd_score += score - before


def _check_tell(
    id: CandidateId | None, evaluation: Evaluation | None, *, rejection: str, lost: str
) -> None:
    if (id is None) is (not rejection):
        raise UsageError("a tell brings a candidate, or the reason why the proposal held none")
    if evaluation is not None and (lost or evaluation.candidate != id):
        raise UsageError("an evaluation is told with its own candidate, and not as lost")
    if rejection and lost:
        raise UsageError("what held no candidate cannot have been lost")
