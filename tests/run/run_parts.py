"""Small parts for runs in tests: a task, a proposer that is a function of the brief, a run."""

import asyncio
import random
from dataclasses import replace

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal, Usage
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.simulated import DEVICE, SimulatedEvaluator
from kernelsmith.run.start import JOURNAL, Judges, resume, start

TASK = Task(name="add", source="x + y  # us: 100", entry="expression")


class Writer:
    """Writes what a brief's seed says: right ones of all speeds, wrong ones, broken ones, none."""

    name = "writer"

    def __init__(self, *, usage=None, delay=0.0):
        self.asked, self.learned = [], []
        self._usage, self._delay = usage or Usage(), delay

    async def propose(self, brief):
        self.asked.append(brief.number)
        if self._delay:
            await asyncio.sleep(random.random() * self._delay)
        return replace(self.proposal(brief), usage=self._usage)

    def proposal(self, brief):
        rng = random.Random(f"{brief.seed} {brief.number}")
        kind = rng.random()
        if kind < 0.1:
            return Proposal(source=None, rejection="no code in the reply", proposer=self.name)
        if kind < 0.2:
            source = f"x - y  # {brief.number}"
        elif kind < 0.3:
            source = f"x +  # {brief.number}"
        else:
            best = 100.0
            if brief.parent is not None and brief.parent.evaluation.timing is not None:
                best = 100 / brief.parent.evaluation.timing.speedup.value
            source = f"y + x  # us: {best * rng.uniform(0.8, 1.1):.1f}"
        return Proposal(source=source, proposer=self.name, reply=f"```\n{source}\n```" * 3)

    def learn(self, step):
        self.learned.append(step.brief.number)

    async def close(self):
        pass


class Sources(Writer):
    """Hands out given sources, by number of the ask; the last one again and again."""

    def __init__(self, *sources, **more):
        super().__init__(**more)
        self._sources = sources

    def proposal(self, brief):
        source = self._sources[min(brief.number, len(self._sources) - 1)]
        return Proposal(source=source, proposer=self.name)


class Counting(SimulatedEvaluator):
    """Remembers whom it judged, and takes its time."""

    def __init__(self, *, delay=0.0):
        super().__init__()
        self.judged, self._delay = [], delay

    async def evaluate(self, task, candidate, *, baseline=None):
        if self._delay:
            await asyncio.sleep(random.random() * self._delay)
        self.judged.append((candidate.id, None if baseline is None else baseline.id))
        return await super().evaluate(task, candidate, baseline=baseline)


def a_config(**changes):
    usual = dict(backend="null", concurrency=4, budget=Budget(steps=40), grace_s=5.0)
    return RunConfig(**{**usual, **changes})


def a_run(folder, *, proposer=None, evaluator=None, confirmer=None, task=TASK, **more):
    evaluator = evaluator or SimulatedEvaluator()
    watch = more.pop("watch", None)
    shapes_of = more.pop("shapes_of", None)
    return start(
        task, folder, a_config(**more), proposer=proposer or Writer(), device=DEVICE, watch=watch,
        judges=Judges(
            evaluator=evaluator, confirmer=confirmer or evaluator, shapes_of=shapes_of
        ),
    )  # fmt: skip


def gone(run):
    """Go to the end, and return the result."""
    return asyncio.run(run.go())


def resumed(folder, *, proposer=None, evaluator=None, confirmer=None, **more):
    evaluator = evaluator or SimulatedEvaluator()
    return resume(
        folder, proposer_of=lambda recorded: proposer or Writer(),
        judges=Judges(evaluator=evaluator, confirmer=confirmer or evaluator), **more,
    )  # fmt: skip


def steps_of(folder):
    return read(folder / JOURNAL).steps
