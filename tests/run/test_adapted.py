"""A proposer that changes its own weights: their hashes are in the journal, each once."""

import asyncio

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL, resume, start

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")


class Learner:
    """Changes its weights after every second step; they are the number of steps it saw."""

    name = "learner"

    def __init__(self):
        self.seen = 0

    async def propose(self, brief):
        return Proposal(source=f"y + x  # us: {15 - brief.number}", proposer=self.name)

    def learn(self, step):
        self.seen += 1
        return f"weights {self.seen}" if self.seen % 2 == 0 else None

    async def close(self):
        pass


def config(steps):
    return RunConfig(backend="null", budget=Budget(steps=steps))


def test_changed_weights_are_written_down_after_the_step_that_changed_them(tmp_path):
    asyncio.run(start(TASK, tmp_path, config(5), proposer=Learner()).go())
    assert read(tmp_path / JOURNAL).adapted == {1: "weights 2", 3: "weights 4"}


def test_a_resumed_run_writes_them_once(tmp_path):
    asyncio.run(start(TASK, tmp_path, config(5), proposer=Learner()).go())
    run = resume(tmp_path, proposer_of=lambda _: Learner(), budget=Budget(steps=8))
    asyncio.run(run.go())
    text = (tmp_path / JOURNAL).read_text()
    assert text.count('{"adapted": ') == 4
    assert read(tmp_path / JOURNAL).adapted == {n: f"weights {n + 1}" for n in (1, 3, 5, 7)}


def test_most_proposers_have_none(tmp_path):
    class Fixed(Learner):
        def learn(self, step):
            return None

    asyncio.run(start(TASK, tmp_path, config(4), proposer=Fixed()).go())
    assert read(tmp_path / JOURNAL).adapted == {}
