"""The proposer that needs no model: templates, and mutations of their parameters."""

import random

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Brief, Proposal, Step
from kernelsmith.errors import UsageError
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.mutation import mutated
from kernelsmith.propose.rules.statistics import Statistics
from kernelsmith.propose.rules.templates import BACKENDS, Template, template_for


class RulesProposer:
    """Writes what its templates know; anything else is a rejection that says what is missing.

    Deterministic: the same brief after the same steps gives the same source.
    """

    name = "rules"

    def __init__(self, backend: str) -> None:
        if backend not in BACKENDS:
            raise UsageError(f"rules write for {' and '.join(BACKENDS)}, not for {backend!r}")
        self._backend = backend
        self._templates: dict[Task, Template | str] = {}
        self._known: dict[Task, Statistics] = {}

    async def propose(self, brief: Brief) -> Proposal:
        """Write one candidate, or say what the rules do not know."""
        template = self._template(brief.task)
        if isinstance(template, str):
            return self._rejected(template)
        if brief.parent is None:
            chosen = template.space.seed(brief.number, brief.seed)
            return self._written(template, chosen, f"seed {brief.number}: {_listed(chosen)}")
        parent = template.own(brief.parent.candidate.source)
        if parent is None:
            return self._rejected("rules change what rules wrote; the parent is by someone else")
        inspirations = [template.own(each.candidate.source) for each in brief.inspirations]
        chosen, note = mutated(
            template.space,
            parent,
            evaluation=brief.parent.evaluation,
            others=[each for each in inspirations if each is not None],
            known=self._known.get(brief.task, Statistics()),
            rng=random.Random(f"{brief.seed}:{brief.number}"),
        )
        return self._written(template, chosen, note)

    def learn(self, step: Step) -> None:
        """Count how each value of each parameter did."""
        template = self._template(step.brief.task)
        if isinstance(template, str) or step.candidate is None:
            return
        chosen = template.own(step.candidate.source)
        if chosen is not None:
            known = self._known.get(step.brief.task, Statistics())
            self._known[step.brief.task] = known.with_step(step, chosen)

    async def close(self) -> None:
        """Nothing is held open."""

    def _template(self, task: Task) -> Template | str:
        """The task's template, or the reason why there is none."""
        if task not in self._templates:
            try:
                self._templates[task] = template_for(task, self._backend)
            except NotRecognised as error:
                self._templates[task] = f"{error}; configure a model with --model"
        return self._templates[task]

    def _written(self, template: Template, chosen: dict[str, str], note: str) -> Proposal:
        return Proposal(source=template.source(chosen), proposer=self.name, note=note)

    def _rejected(self, why: str) -> Proposal:
        return Proposal(source=None, rejection=why, proposer=self.name)


def _listed(chosen: dict[str, str]) -> str:
    return ", ".join(f"{name} {value}" for name, value in chosen.items())
