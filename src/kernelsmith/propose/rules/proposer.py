"""The proposer that needs no model: what its families write, seeded, mutated, crossed, learnt."""

import asyncio
import math
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Proposal, Step
from kernelsmith.errors import UsageError
from kernelsmith.propose.header import body
from kernelsmith.propose.rules import guidance
from kernelsmith.propose.rules.choosing import Chooser, Known, budget_of
from kernelsmith.propose.rules.compiler.shelf import Shelf
from kernelsmith.propose.rules.exactness import off_as_tf32
from kernelsmith.propose.rules.families import (
    Families,
    Finder,
    FindFamilies,
    Variant,
    at_hand,
)
from kernelsmith.propose.rules.maca.family import BACKENDS as PORTED
from kernelsmith.propose.rules.statistics import Trial, key_of
from kernelsmith.propose.rules.templates import BACKENDS

_LEAST_OWN = 0.05
"""Of the time, below which a refusal is the fault of what was left to the library."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """What became of one brief."""

    number: int
    source: str | None
    ours: bool
    """Whether the rules wrote it."""
    gain: float | None
    failed: bool
    disowned: bool
    tf32: bool = False
    budget: float | None = None


class RulesProposer:
    """Writes what its families know; anything else is a rejection that says what is missing.

    Deterministic: the same briefs after the same steps give the same sources. Where ``in_flight``
    is given, only steps count that were told when the brief was asked for, so that neither the
    order in which work finishes nor a resumed journal changes what is written; of later ones, and
    of what is being judged, it counts what was written. ``hurried`` is for runs of a few steps: the
    compiler is asked only where nothing else is known. What it says is kept on the ``shelf``; where
    it runs kernels on a GPU, it takes turns by the ``lock``.
    """

    name = "rules"

    def __init__(
        self, backend: str, *, families: FindFamilies | None = None, in_flight: int | None = None,
        hurried: bool = False, shelf: Shelf | None = None, lock: Path | None = None,
    ) -> None:  # fmt: skip
        if backend not in (*BACKENDS, *PORTED):
            raise UsageError(
                f"rules write for {' and '.join(BACKENDS)}, and for {', '.join(PORTED)} where a "
                f"task brings a CUDA kernel along; not for {backend!r}"
            )
        self._backend, self._in_flight = backend, in_flight
        self._given, self._asks = families, Finder(shelf=shelf, lock=lock)
        self._hurried = hurried
        self._families: dict[tuple[Task, Device | None], Future[Families]] = {}
        self._told: dict[Task, list[_Told]] = {}
        self._drafts: dict[Task, dict[int, Future[str | None]]] = {}
        self._owners: dict[tuple[Task, str], Variant | None] = {}
        self._finding = threading.Lock()

    async def propose(self, brief: Brief) -> Proposal:
        """Write one candidate, or say what the rules do not know.

        Those asked for before are written first: no two write the same.
        """
        told = tuple(self._told.get(brief.task, ()))
        drafts = self._drafts.setdefault(brief.task, {})
        before = {number: each for number, each in drafts.items() if number < brief.number}
        draft = drafts[brief.number] = Future()
        # Whoever waits for it and is cancelled must not cancel it for all others.
        draft.set_running_or_notify_cancel()
        try:
            families = await asyncio.wrap_future(self._found(brief.task, brief.device))
            written = {number: await asyncio.wrap_future(each) for number, each in before.items()}
            found = await asyncio.to_thread(self._proposed, brief, told, written, families)
            draft.set_result(found.source)
            return found
        finally:
            if not draft.done():
                draft.set_result(None)

    def recall(self, brief: Brief, proposal: Proposal) -> None:
        """Take note of what was written before a run was interrupted, and is not told yet."""
        if proposal.proposer == self.name:
            draft: Future[str | None] = Future()
            draft.set_result(proposal.source)
            self._drafts.setdefault(brief.task, {})[brief.number] = draft

    def learn(self, step: Step) -> None:
        """Note what became of a step; it is made sense of when the next brief comes."""
        evaluation = step.evaluation
        timing = evaluation.timing if evaluation is not None else None
        draft = self._drafts.get(step.brief.task, {}).pop(step.brief.number, None)
        told = _Told(
            number=step.brief.number,
            source=step.candidate.source if step.candidate is not None else None,
            ours=draft is not None or step.proposal.proposer == self.name,
            gain=math.log(timing.speedup.value) if timing is not None else None,
            failed=evaluation is not None and not step.passed,
            disowned=evaluation is not None and _is_disowned(evaluation),
            tf32=evaluation is not None and off_as_tf32(evaluation),
            budget=budget_of(evaluation) if evaluation is not None else None,
        )
        self._told.setdefault(step.brief.task, []).append(told)

    async def close(self) -> None:
        """Nothing is held open."""

    def _proposed(
        self, brief: Brief, told: tuple[_Told, ...], drafts: Mapping[int, str | None],
        families: Families,
    ) -> Proposal:  # fmt: skip
        known = self._known(brief, told, drafts, families)
        draft = Chooser(families, brief, known).drafted()
        if isinstance(draft, str):
            why = f"{draft}; configure a model with --model"
            return Proposal(source=None, rejection=why, proposer=self.name)
        note = draft.note
        if len(told) >= guidance.ENOUGH and not guidance.is_available():
            note += "; by counts alone, scikit-learn is not installed"
        return Proposal(source=draft.source, proposer=self.name, note=note)

    def _found(self, task: Task, device: Device | None) -> "Future[Families]":
        """The task's families on a device: found once, while all who ask wait.

        In a thread that nobody waits for at the end: whoever interrupts a run has not to sit out
        a compiler.
        """
        with self._finding:
            if (task, device) not in self._families:
                found: Future[Families] = Future()
                found.set_running_or_notify_cancel()
                self._families[task, device] = found
                work = (found, self._finder(device), task, self._backend)
                threading.Thread(target=_find_into, args=work, daemon=True).start()
            return self._families[task, device]

    def _finder(self, device: Device | None) -> FindFamilies:
        if self._given is not None:
            return self._given
        asks = replace(self._asks, device=device)
        return partial(at_hand, find=asks) if self._hurried else asks

    def _known(
        self, brief: Brief, told: tuple[_Told, ...], drafts: Mapping[int, str | None],
        families: Families,
    ) -> Known:  # fmt: skip
        later: tuple[_Told, ...] = ()
        if self._in_flight is not None:
            told, later = _as_of(brief, told, last=brief.number - self._in_flight)
        trials = []
        for each in told:
            owner = self._owner(brief.task, each.source, families) if each.source else None
            if owner is not None:
                trials.append(
                    Trial(
                        family=owner.name,
                        chosen=key_of(owner.chosen),
                        gain=each.gain,
                        failed=each.failed,
                        number=each.number,
                        tf32=each.tf32 and bool(owner.family.space.rounding(owner.chosen)),
                        disowned=each.disowned,
                    )
                )
        # Told or not by now: what was written before this brief was asked for is the same.
        own = {each.number: each.source for each in later if each.ours} | dict(drafts)
        flying = [own[number] for number in sorted(own) if number < brief.number]
        owners = [self._owner(brief.task, each, families) for each in flying if each]
        return Known(
            trials=tuple(trials),
            bodies=frozenset(body(each) for each in (*(t.source for t in told), *flying) if each),
            pending=tuple((each.name, key_of(each.chosen)) for each in owners if each is not None),
            budget=min((each.budget for each in told if each.budget is not None), default=None),
        )

    def _owner(self, task: Task, source: str, families: Families) -> Variant | None:
        if (task, source) not in self._owners:
            self._owners[task, source] = families.owner(source)
        return self._owners[task, source]


def _find_into(found: "Future[Families]", find: FindFamilies, task: Task, backend: str) -> None:
    try:
        found.set_result(find(task, backend))
    except BaseException as error:  # belongs to those who wait
        found.set_exception(error)


def _as_of(
    brief: Brief, told: tuple[_Told, ...], *, last: int
) -> tuple[tuple[_Told, ...], tuple[_Told, ...]]:
    """What was told when a brief was asked for, and what came later.

    Up to ``last``, and all that the brief shows: a run that had come to an end and goes on shows
    more than what is in flight would leave.
    """
    parent = [] if brief.parent is None else [brief.parent]
    shown = {e.candidate.source for e in (*parent, *brief.inspirations, *brief.failures)}
    found: list[_Told] = []
    later: list[_Told] = []
    for each in told:
        (found if each.number <= last or each.source in shown else later).append(each)
        shown.discard(each.source or "")  # the same once more may have come later
    return tuple(found), tuple(later)


def _is_disowned(evaluation: Evaluation) -> bool:
    """Whether it was refused because the library did the work."""
    coverage = evaluation.coverage
    return (
        evaluation.verdict is Verdict.CHEATED and coverage is not None and coverage.own < _LEAST_OWN
    )
