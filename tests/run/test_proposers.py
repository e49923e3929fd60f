"""Who writes candidates, from what the config says; and the one function that does it all."""

import pytest
from run_parts import TASK, a_config, a_run, gone, steps_of

from kernelsmith.api import optimize
from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig
from kernelsmith.propose.replay import write_jsonl
from kernelsmith.run.canonical import canonical
from kernelsmith.run.config import Budget, ProposerSpec
from kernelsmith.run.journal import read
from kernelsmith.run.proposers import asks_compiler, make_proposer
from kernelsmith.run.start import JOURNAL


def replaying(path, **more):
    return a_config(proposer=ProposerSpec(kind="replay", path=str(path)), **more)


def test_a_run_is_replayed_from_its_folder_to_the_same_end(tmp_path):
    first = gone(a_run(tmp_path / "a"))
    second = optimize(TASK, tmp_path / "b", config=replaying(tmp_path / "a"))
    assert second.best == first.best
    a, b = (canonical(read(tmp_path / name / JOURNAL)) for name in "ab")
    assert a == b


def test_proposals_in_a_file_are_replayed_too(tmp_path):
    gone(a_run(tmp_path / "a", budget=Budget(steps=5)))
    proposals = [step.proposal for step in steps_of(tmp_path / "a")]
    write_jsonl(tmp_path / "p.jsonl", proposals)
    config = replaying(tmp_path / "p.jsonl", budget=Budget(steps=5))
    assert optimize(TASK, tmp_path / "b", config=config).steps == 5
    assert [step.proposal for step in steps_of(tmp_path / "b")] == proposals


def test_a_recording_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read a recording from .*none"):
        make_proposer(replaying(tmp_path / "none"), tmp_path)


def test_models_and_agents_are_opened_by_name(tmp_path):
    models = (ModelConfig(name="m", base_url="http://localhost:1/v1"),)
    llm = a_config(proposer=ProposerSpec(kind="llm", models=models))
    assert make_proposer(llm, tmp_path).name == "llm"
    agent = a_config(proposer=ProposerSpec(kind="agent"))
    assert make_proposer(agent, tmp_path).name == "agent"


@pytest.mark.parametrize(("steps", "asks"), [(12, False), (13, True)])
def test_only_longer_runs_begin_with_the_compiler(steps, asks):
    config = a_config(proposer=ProposerSpec(kind="rules"), budget=Budget(steps=steps))
    assert asks_compiler(config) is asks
    agent = a_config(proposer=ProposerSpec(kind="agent"), budget=Budget(steps=steps))
    assert not asks_compiler(agent)
