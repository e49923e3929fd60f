"""A task's run goes on in another session, with nothing lost and nothing that does not belong."""

import asyncio
import dataclasses
import json
from pathlib import Path

import pytest
from benchmarks.gpu_ledger import NOT_NOW
from benchmarks.rules import for_later
from benchmarks.rules_runs import Runs, ended, folder_for

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal
from kernelsmith.propose.replay import ReplayProposer
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.simulated import DEVICE, SimulatedEvaluator
from kernelsmith.run.start import JOURNAL, Judges
from kernelsmith.run.stopping import Stop

TASK = Task(name="add", source="x + y  # us: 100", entry="expression")
STEPS = 20


class Slow(ReplayProposer):
    """Takes a while over each of its proposals."""

    def __init__(self, takes_s: float) -> None:
        sources = [f"y + x  # us: {90 - each}" for each in range(STEPS)]
        super().__init__([Proposal(source=each, proposer="replay") for each in sources])
        self._takes_s = takes_s

    async def propose(self, brief):
        await asyncio.sleep(self._takes_s)
        return await super().propose(brief)


def some_runs(folder: Path, *, takes_s: float = 0.0, **changes) -> Runs:
    settings = {"steps": STEPS, "seed": 0, "task": TASK, "device": DEVICE} | changes
    config = RunConfig(
        backend="null", concurrency=1, grace_s=5.0, seed=settings["seed"],
        budget=Budget(steps=settings["steps"]),
    )  # fmt: skip
    judge = SimulatedEvaluator()
    return Runs(
        task=settings["task"], folder=folder, config=config, device=settings["device"],
        proposer=lambda: Slow(takes_s), watch=lambda progress: None,
        judges=Judges(evaluator=judge, confirmer=judge),
    )  # fmt: skip


def numbers_in(folder: Path) -> list[int]:
    return [each.brief.number for each in read(folder / JOURNAL).steps]


def test_a_run_that_is_cut_short_is_gone_on_with_and_ends_as_if_it_had_not_been(tmp_path):
    folder = tmp_path / "run"
    first = ended(some_runs(folder, takes_s=0.1).begun(), 1.2)  # all of them take two seconds
    assert first.stop is Stop.INTERRUPTED
    done = numbers_in(folder)
    assert 0 < len(done) < STEPS

    runs = some_runs(folder)
    assert len(runs.known().steps) == len(done)
    second = ended(runs.begun(), 60.0)
    assert second.stop is Stop.STEPS
    assert second.confirmed
    assert numbers_in(folder) == list(range(STEPS))

    whole = ended(some_runs(tmp_path / "whole").begun(), None)
    assert second.best.candidate.id == whole.best.candidate.id


def test_a_run_goes_on_with_a_larger_budget(tmp_path):
    runs = some_runs(tmp_path / "run", steps=3)
    assert ended(runs.begun(), None).steps == 3
    more = dataclasses.replace(runs.config, budget=Budget(steps=5))
    assert ended(runs.again(more), None).stop is Stop.STEPS
    assert numbers_in(tmp_path / "run") == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"device": dataclasses.replace(DEVICE, name="another clock")},
        {"task": dataclasses.replace(TASK, source="x + y + 0  # us: 100")},
    ],
    ids=["seed", "device", "task"],
)
def test_what_does_not_belong_to_the_run_is_put_aside_and_kept(tmp_path, changes):
    folder = tmp_path / "run"
    ended(some_runs(folder, steps=2).begun(), None)
    kept = (folder / JOURNAL).read_bytes()

    other = some_runs(folder, steps=4, **changes)
    assert other.known() is None
    ended(other.begun(), None)
    assert (tmp_path / "run.1" / JOURNAL).read_bytes() == kept
    assert len(numbers_in(folder)) == 4


def test_figures_of_another_judge_are_not_gone_on_with(tmp_path):
    folder = tmp_path / "run"
    ended(some_runs(folder, steps=2).begun(), None)
    journal = folder / JOURNAL
    header, *rest = journal.read_text().split("\n")
    said = json.loads(header)
    versions = next(each for each in _mappings(said) if "versions" in each)
    assert some_runs(folder).known() is not None

    versions["versions"] = json.loads(json.dumps(versions["versions"]).replace("judge", "juror"))
    journal.write_text("\n".join([json.dumps(said), *rest]))
    assert some_runs(folder).known() is None


def test_a_run_without_a_folder_leaves_nothing_behind(tmp_path):
    with folder_for("level1/3", "") as folder:
        ended(some_runs(folder, steps=1).begun(), None)
        assert (folder / JOURNAL).is_file()
    assert not folder.exists()
    with folder_for("level1/3", str(tmp_path)) as folder:
        assert folder == tmp_path / "level1-3"


def test_a_task_that_brings_no_step_in_all_its_time_is_not_begun_for_ever():
    some = {"steps": [{}, {}], "before": 1}
    assert for_later(some, whole=True)["said"] == NOT_NOW
    none = {"steps": [{}], "before": 1}
    assert for_later(none, whole=False)["said"] == NOT_NOW
    assert for_later(none, whole=True)["said"] == "no answer"


def _mappings(value):
    if isinstance(value, dict):
        yield value
        for each in value.values():
            yield from _mappings(each)
