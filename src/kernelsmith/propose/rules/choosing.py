"""What to write next: a start nobody has tried, or the most promising variant near the parent."""

import logging
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.trajectory import Brief, Exemplar
from kernelsmith.propose.header import body
from kernelsmith.propose.rules import guidance
from kernelsmith.propose.rules.crossover import crossings
from kernelsmith.propose.rules.diagnosis import Diagnosis, diagnosed
from kernelsmith.propose.rules.exactness import Exactness, off_as_tf32, to_mend
from kernelsmith.propose.rules.families import Families, Variant, failed
from kernelsmith.propose.rules.family import Family
from kernelsmith.propose.rules.graph import UNFORESEEN, NotRecognised
from kernelsmith.propose.rules.mutation import Move, made_exact, moves, stepped_back
from kernelsmith.propose.rules.space import Parameters
from kernelsmith.propose.rules.statistics import Key, Statistics, Trial, key_of

logger = logging.getLogger(__name__)
_NEAR = 32
"""Variants around the parent that the model ranks."""
_CROSSED = 6
_WHO_WORKS = {"form", "option", "library", "layout", "product", "convolution"}
"""Parameters that say what is left to the library; all others are schedules."""
_SAME_WORK = {("convolution", "float32"): ("convolution", "library")}
"""Choices that leave to the library what others do."""
_STARTS = 8
"""Untried starts that the model ranks beside them."""
_ANOTHER = "another start than the parent"
_FROM_BEST = "from the best of our own"
_EARLY = 4
"""Briefs of a run that are starts, unless what they would go on from has failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of a run when a brief is answered."""

    trials: tuple[Trial, ...] = ()
    bodies: frozenset[str] = frozenset()
    """Programs that were tried, by whomever."""
    pending: tuple[tuple[str, Key], ...] = ()
    """What briefs before this one have written whose outcome nobody knows yet: family, choice."""
    budget: float | None = None
    """How far off a row may be, as the judge measured it; absent while it has measured nothing."""

    @property
    def written(self) -> frozenset[tuple[str, Key]]:
        """Every family and choice that was judged, or will be."""
        return frozenset((each.family, each.chosen) for each in self.trials) | {*self.pending}

    def of(self, family: str) -> Statistics:
        """The counts of one family; what is being judged is no news, and not to be tried again."""
        pending = (Trial(family=family, chosen=key) for name, key in self.pending if name == family)
        return Statistics.of([*(each for each in self.trials if each.family == family), *pending])

    def tried(self, variant: Variant) -> bool:
        """Whether exactly this choice was judged, or will be."""
        return (variant.name, key_of(variant.chosen)) in self.written

    @property
    def best(self) -> Trial | None:
        """The fastest that passed."""
        timed = [each for each in self.trials if each.gain is not None]
        return max(timed, key=lambda each: each.gain or 0.0, default=None)

    def disowned(self, variant: Variant) -> bool:
        """Whether one was that leaves as much to the library, and too much."""
        own = _shares_of_work(variant.chosen.items())
        return any(
            each.disowned and each.family == variant.name and _shares_of_work(each.chosen) == own
            for each in self.trials
        )


def budget_of(evaluation: Evaluation) -> float | None:
    """The tightest budget of an evaluation's workloads."""
    return min((each.budget for each in evaluation.accuracy), default=None)


def _shares_of_work(chosen: Iterable[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return frozenset(_SAME_WORK.get(each, each) for each in chosen if each[0] in _WHO_WORKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A candidate's text, and what it tries."""

    source: str
    note: str


class Chooser:
    """Answers one brief. Deterministic: brief, families and what is known decide."""

    def __init__(self, families: Families, brief: Brief, known: Known) -> None:
        self._families, self._brief, self._known = families, brief, known
        self._rng = random.Random(f"{brief.seed}:{brief.number}")
        self._reasons = list(families.reasons)
        shown = [*brief.inspirations, *brief.failures]
        shown += [brief.parent] if brief.parent is not None else []
        self._bodies = known.bodies | {body(each.candidate.source) for each in shown}
        self._exactness = Exactness.of(known.trials, families.spaces)

    def drafted(self) -> Draft | str:
        """The next candidate, or in one line why there is none."""
        found = self._made_exact()
        if found is None and self._brief.parent is not None:
            found = self._from_parent()
        return found or self._started(walk=True) or self._nothing()

    def _made_exact(self) -> Draft | None:
        """The step back from what was off as TF32 is, before all else: it is nearly right."""
        known = self._known
        for trial in to_mend(known.trials, self._families.spaces, known.written):
            family = self._families.named(trial.family)
            move = made_exact(family.space, dict(trial.chosen))
            if (draft := self._moved(family, move)) is not None:
                return draft
        return None

    def _moved(self, family: Family, move: Move | None) -> Draft | None:
        if move is None:
            return None
        return self._written(Variant(family=family, chosen=move.chosen), move.note)

    def _from_parent(self) -> Draft | None:
        parent = self._brief.parent
        assert parent is not None
        owner = self._families.owner(parent.candidate.source)
        if owner is None:
            return self._beside_another()
        if parent.evaluation.verdict is not Verdict.PASSED:
            return self._mended(owner, parent)
        early = self._brief.number < _EARLY
        if (early or self._brief.number % 2) and len(self._known.trials) < guidance.ENOUGH:
            # Another start often gains more than another block size; take turns.
            started = self._started(why=_ANOTHER)
            if started is not None:
                return started
        return self._near(owner, diagnosed(parent.evaluation, self._brief.device))

    def _mended(self, owner: Variant, parent: Exemplar) -> Draft | None:
        """After a failure: back to what is exact, else another start, else any neighbour."""
        verdict, space = parent.evaluation.verdict, owner.family.space
        backs = [made_exact(space, owner.chosen)] if off_as_tf32(parent.evaluation) else []
        for back in (*backs, stepped_back(space, owner.chosen, verdict)):
            if (draft := self._moved(owner.family, back)) is not None:
                return draft
        started = self._started(why=f"another start after {verdict}")
        return started or self._near(owner, Diagnosis())

    def _beside_another(self) -> Draft | None:
        """The parent is by someone else: a family not yet tried, else the best that is known."""
        why = "the parent is by someone else"
        tried = {each.family for each in self._known.trials}
        fresh = self._started(why=why, but=tried)
        best = self._best
        if fresh is not None or best is None:
            return fresh or self._started(walk=True, why=why)
        return self._near(best, Diagnosis(), why=f"{why}, so {_FROM_BEST}")

    @property
    def _best(self) -> Variant | None:
        """The fastest of our own, so far."""
        best = self._known.best
        if best is None:
            return None
        return Variant(family=self._families.named(best.family), chosen=dict(best.chosen))

    def _started(
        self, *, walk: bool = False, why: str = "", but: Iterable[str] = ()
    ) -> Draft | None:
        """The first start that nobody has tried or is trying."""
        left_out = set(but)
        starts = self._families.starts(self._exactness)
        if walk:
            starts = chain(starts, self._families.walk(self._brief.seed))
        found = (
            draft
            for each in starts
            if each.name not in left_out
            and (draft := self._written(each, self._words(each, why))) is not None
        )
        return next(found, None)

    def _near(self, owner: Variant, diagnosis: Diagnosis, why: str = "") -> Draft | None:
        """A variant near the owner's: the model's choice, or the draw's while it knows nothing."""
        others = self._inspirations(owner)
        drawn = self._around(owner, diagnosis, others)
        if len(drawn) > 1 and others and self._rng.random() < 0.15:
            drawn.insert(0, drawn.pop())  # now and then a crossing goes before
        for variant, note in self._ranked(owner, drawn) or drawn:
            told = "; ".join(each for each in (why, note) if each)
            draft = self._written(variant, told)
            if draft is not None:
                return draft
        return None

    def _around(
        self, owner: Variant, diagnosis: Diagnosis, others: Sequence[Parameters] = ()
    ) -> list[tuple[Variant, str]]:
        """Variants that change a little of the owner's, or take something from others."""
        known = self._known.of(owner.name)
        near = [
            *moves(owner.family.space, owner.chosen, diagnosis=diagnosis, others=others,
                   known=known, rng=self._rng, count=_NEAR),
            *crossings(owner.family.space, owner.chosen, others, known=known, rng=self._rng,
                       count=_CROSSED),
        ]  # fmt: skip
        return [(Variant(family=owner.family, chosen=each.chosen), each.note) for each in near]

    def _ranked(
        self, owner: Variant, drawn: Sequence[tuple[Variant, str]]
    ) -> list[tuple[Variant, str]] | None:
        """By what the model expects; none while it knows too little.

        What is near the best of all and untried starts are among them: a search offers parents of
        all kinds, and near a slow one little is fast.
        """
        pool, best = [*drawn], self._best
        if best is not None and (best.name, best.chosen) != (owner.name, owner.chosen):
            around = self._around(best, Diagnosis())
            pool += [(each, f"{_FROM_BEST}: {note}") for each, note in around]
        starts = [
            each for each in self._families.starts(self._exactness) if not self._known.tried(each)
        ]
        pool += [(each, self._words(each, _ANOTHER)) for each in starts[:_STARTS]]
        points = [guidance.Point(family=each.name, chosen=key_of(each.chosen)) for each, _ in pool]
        expected = guidance.expected(self._known.trials, points, self._families.spaces)
        if expected is None:
            return None
        order = sorted(range(len(pool)), key=lambda at: (-expected[at].promise, at))
        return [
            (
                pool[at][0],
                f"{pool[at][1]}; {expected[at].speedup:.2f}x is expected after "
                f"{expected[at].measured} measurements",
            )
            for at in order
        ]

    def _inspirations(self, owner: Variant) -> list[dict[str, str]]:
        found = [
            self._families.owner(each.candidate.source)
            for each in self._brief.inspirations
            if each.evaluation.verdict is Verdict.PASSED
        ]
        return [each.chosen for each in found if each is not None and each.name == owner.name]

    def _written(self, variant: Variant, note: str) -> Draft | None:
        """The candidate, unless it cannot be written or its program is known."""
        if self._known.tried(variant):
            return None
        if not self._exactness.allows(variant.family.space, variant.chosen):
            self._reasons.append(f"{variant.name} in TF32 is further off than the judge allows")
            return None
        if self._is_too_coarse(variant):
            self._reasons.append(f"{variant.name} would be further off than the judge allows")
            return None
        if self._known.disowned(variant):
            self._reasons.append(f"{variant.name} leaves nearly all of the work to the library")
            return None
        try:
            source = variant.family.source(variant.chosen)
        except NotRecognised as error:
            self._reasons.append(str(error))
            return None
        except UNFORESEEN as error:
            logger.warning("%s cannot be written", variant.name, exc_info=error)
            self._reasons.append(failed(error))
            return None
        return None if body(source) in self._bodies else Draft(source=source, note=note)

    def _is_too_coarse(self, variant: Variant) -> bool:
        """Whether its error fits no budget that was measured; unmeasured, nothing coarse fits."""
        expected = variant.family.space.error(variant.chosen)
        parent = self._brief.parent
        shown = None if parent is None else budget_of(parent.evaluation)
        known = [each for each in (self._known.budget, shown) if each is not None]
        return expected > min(known, default=0.0)

    def _words(self, variant: Variant, why: str = "") -> str:
        space = variant.family.space
        listed = space.differing(variant.chosen) or "its defaults"
        words = variant.family.words(variant.chosen).removesuffix(".")
        said = f"{space.template}: {words[:1].lower()}{words[1:]} ({listed})"
        return f"{why}; {said}" if why else said

    def _nothing(self) -> str:
        reasons = list(dict.fromkeys(self._reasons))
        if not self._families.members or not self._known.trials:
            return "; ".join(reasons) or "the rules know no family for this task"
        return f"all variants that rules can write were tried: {len(self._known.trials)}"
