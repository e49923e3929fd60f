"""Journals become samples, for any backend."""

import asyncio
from dataclasses import replace

import pytest
from training_parts import DEVICE, a_sample, a_task, judged, null_runs

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal
from kernelsmith.errors import UsageError
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL, Judges, start
from kernelsmith.training.data.rows import row_of
from kernelsmith.training.data.sample import Stage
from kernelsmith.training.data.steps import (
    difficulty_of,
    family_in,
    journals_in,
    read_samples,
    samples_of,
)
from kernelsmith.training.forms.form import form_named

CUDA = 'SOURCE = """__global__ void add(float* x) {}"""\nclass ModelNew: pass\n'
MACA = 'SOURCE = """__global__ void add_mc(float* x) {}"""\nclass ModelNew: pass\n'


class Ports:
    """First hands out the CUDA program that is known to be right, then its MACA version."""

    name = "porter"

    async def propose(self, brief):
        source = CUDA if brief.parent is None else MACA
        return Proposal(source=source, proposer=self.name, note="port the kernel to MACA")

    def learn(self, step):
        pass

    async def close(self):
        pass


class Approving:
    """Knows two programs: for backends whose hardware is not here."""

    async def evaluate(self, task, candidate, *, baseline=None):
        speed = {CUDA: 1.5, MACA: 2.0}
        over = 1.0 if baseline is None else speed[baseline.source]
        found = judged(speed[candidate.source] / over, task=task.name)
        return replace(found, candidate=candidate.id)


def test_cuda_to_maca_steps_become_samples(tmp_path):
    task = Task(name="add", source="class Model: pass")
    config = RunConfig(backend="maca", concurrency=1, budget=Budget(steps=2))
    judge = Approving()
    run = start(
        task, tmp_path / "run", config, proposer=Ports(),
        judges=Judges(evaluator=judge, confirmer=judge),
        device=DEVICE,
    )  # fmt: skip
    asyncio.run(run.go())
    first, port = samples_of(read(tmp_path / "run" / JOURNAL), Stage.COLD_START)
    assert first.is_first
    assert not port.is_first
    assert port.gain.value == pytest.approx(2.0 / 1.5, rel=0.05)
    row = row_of(port, form_named("diff", "maca"))
    assert row.backend == "maca"
    assert "add_mc" in row.completion
    assert "add(float* x)" in row.prompt[-1].content
    assert row.completion.count("SEARCH") == 1


def test_every_judged_step_of_a_run_becomes_one_sample(tmp_path):
    null_runs(tmp_path, count=2, steps=12)
    samples = read_samples([tmp_path], Stage.COLD_START)
    for path in journals_in([tmp_path]):
        recorded = read(path)
        told = [s for s in recorded.steps if s.evaluation and s.placement.outcome != "duplicate"]
        own = [each for each in samples if each.run == recorded.header.run]
        assert [each.brief.number for each in own] == [s.brief.number for s in told]


def test_descendants_share_the_lineage_of_their_first_ancestor(tmp_path):
    null_runs(tmp_path, count=1, steps=12)
    samples = read_samples([tmp_path], Stage.COLD_START)
    by_id = {each.candidate.id: each for each in samples}
    grown = [each for each in samples if not each.is_first]
    assert grown
    for each in grown:
        parent = by_id[each.brief.parent.candidate.id]
        assert (each.lineage, each.depth) == (parent.lineage, parent.depth + 1)


def test_the_expert_stage_takes_the_annotated_centres_and_forty_steps_only(tmp_path):
    null_runs(tmp_path, count=2, steps=45)
    chosen = read_samples([tmp_path], Stage.EXPERT, centres=["e1"])
    assert {each.task.name for each in chosen} == {"e1"}
    assert max(each.brief.number for each in chosen) < 40


def test_a_folder_without_runs_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"no run in .*journal\.jsonl"):
        read_samples([tmp_path], Stage.COLD_START)


def test_what_a_task_file_declares_goes_before_guesses():
    source = 'FAMILY = "scan"\nDIFFICULTY = 3\nclass Model: pass\n'
    task = Task(name="softmax", source=source)
    assert (family_in(task), difficulty_of(task)) == ("scan", 3)
    assert family_in(a_task("softmax")) == "attention"


def test_more_and_heavier_operators_make_a_task_harder():
    light = "class Model:\n    def forward(self, x):\n        return x.exp()\n"
    heavy = (
        "class Model:\n    def __init__(self):\n        self.a = nn.Linear(2, 2)\n"
        "        self.c = nn.Conv2d(1, 1, 1)\n    def forward(self, x):\n"
        "        return self.a(x).relu().sum().mean().softmax(-1)\n"
    )
    assert difficulty_of(Task(name="a", source=light)) == 1
    assert difficulty_of(Task(name="b", source=heavy)) == 3


def test_a_sample_needs_a_judged_step():
    unjudged = replace(a_sample().step, candidate=None, evaluation=None)
    with pytest.raises(ValueError, match="was not judged"):
        replace(a_sample(), step=unjudged)
