"""A model in a folder as a run's proposer, with and without an adapter that learns as it goes."""

import asyncio
from dataclasses import replace

import pytest
from training_parts import a_task, null_runs

from kernelsmith.errors import UsageError
from kernelsmith.run.canonical import canonical
from kernelsmith.run.config import Budget, ProposerSpec, Remeasure, RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL, resume, start
from kernelsmith.training.adapters import FOLDER
from kernelsmith.training.data.build import Recipe, build
from kernelsmith.training.recipes.config import SftConfig, TinySize
from kernelsmith.training.recipes.model import tiny
from kernelsmith.training.recipes.sft import train_sft
from kernelsmith.training.serve.folder import NOTE, described, hash_of
from kernelsmith.training.serve.student import Student

TASK = a_task("long", "-(-x) * 1 * 1 + y * 1 * 1 + 0 + 0 + z * 1 + 0")
SIZE = TinySize(vocabulary=320, width=32, layers=1, heads=2, context=256)
SFT = SftConfig(steps=60, batch=16, learning_rate=1e-2, max_length=256, save_every=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What ``train sft`` leaves: a model that has learnt a little."""
    runs = tmp_path_factory.mktemp("runs")
    null_runs(runs, count=6, steps=20)
    rows = build([runs], Recipe()).sft
    return train_sft(rows, *tiny(rows, SIZE), SFT, tmp_path_factory.mktemp("sft")).model


def a_config(folder, steps, adapt=None):
    # One step in flight: what a student answers depends on its weights when it is asked, and
    # those on how many steps were told by then.
    return RunConfig(
        backend="null", budget=Budget(steps=steps), concurrency=1,
        remeasure=Remeasure(champions=False, gain=False, final=0),
        proposer=described(ProposerSpec(kind="student", path=str(folder), adapt=adapt)),
    )  # fmt: skip


def begun(place, config):
    student = Student(config, place)
    asyncio.run(start(TASK, place, config, proposer=student).go())
    return student


def gone_on(place, config):
    student = Student(config, place, known=read(place / JOURNAL).adapted)
    run = resume(place, proposer_of=lambda _: student, budget=config.budget)
    asyncio.run(run.go())
    return student


def test_a_folder_says_how_its_model_is_asked_and_which_weights_it_has(folder):
    spec = described(ProposerSpec(kind="student", path=str(folder)))
    assert spec.form == "typed"
    assert spec.weights == hash_of(folder)
    assert (folder / NOTE).is_file()


def test_a_student_writes_the_candidates_of_a_run(folder, tmp_path):
    begun(tmp_path, a_config(folder, 12))
    recorded = read(tmp_path / JOURNAL)
    passed = [step for step in recorded.steps if step.passed]
    assert len(passed) >= 3
    assert {step.proposal.proposer for step in recorded.steps} == {folder.name}
    assert recorded.adapted == {}


def test_an_adapting_run_that_was_left_goes_on_to_the_same_weights_and_steps(folder, tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    begun(whole, a_config(folder, 10, adapt=1))
    begun(parts, a_config(folder, 5, adapt=1))
    before = read(parts / JOURNAL).adapted
    again = gone_on(parts, a_config(folder, 10, adapt=1))
    one, other = read(whole / JOURNAL), read(parts / JOURNAL)
    assert 1 <= len(before) < len(other.adapted), "both parts learnt something"
    assert other.adapted == one.adapted
    assert canonical(other) == canonical(one)
    new = len(other.adapted) - len(before)
    assert len(again.losses) == 4 * new, "what was learnt before is taken from disk"


def test_adapting_changes_what_is_proposed(folder, tmp_path):
    begun(tmp_path / "still", a_config(folder, 10))
    begun(tmp_path / "adapts", a_config(folder, 10, adapt=1))
    still, adapts = read(tmp_path / "still" / JOURNAL), read(tmp_path / "adapts" / JOURNAL)
    first = min(adapts.adapted)
    said = [[step.proposal.reply for step in each.steps] for each in (still, adapts)]
    assert said[0][: first + 1] == said[1][: first + 1]
    assert said[0] != said[1]


def test_an_update_that_was_not_written_down_is_made_again(folder, tmp_path):
    config = a_config(folder, 6, adapt=1)
    begun(tmp_path, config)
    journal = tmp_path / JOURNAL
    known = read(journal).adapted
    last = max(known)
    lines = journal.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(f'{{"adapted": {last},'.encode())]
    assert len(kept) == len(lines) - 1
    journal.write_bytes(b"".join(kept))  # killed between the step and the update
    gone_on(tmp_path, config)
    assert read(journal).adapted == known


def test_adapters_that_are_gone_or_changed_are_not_made_up(folder, tmp_path):
    begun(tmp_path, a_config(folder, 6, adapt=1))
    last = max(read(tmp_path / JOURNAL).adapted)
    path = tmp_path / FOLDER / f"step-{last}.safetensors"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(UsageError, match="not what the journal says"):
        gone_on(tmp_path, a_config(folder, 9, adapt=1))
    path.unlink()
    with pytest.raises(UsageError, match=f"adapter of step {last} is gone"):
        gone_on(tmp_path, a_config(folder, 9, adapt=1))


def test_a_run_is_not_gone_on_with_by_another_model(folder, tmp_path):
    config = a_config(folder, 4)
    other = replace(config, proposer=replace(config.proposer, weights="0" * 32))
    with pytest.raises(UsageError, match="not the one that the run began with"):
        Student(other, tmp_path)
