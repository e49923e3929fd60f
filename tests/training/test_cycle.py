"""The whole loop on a tiny real model, over expressions that a simulated clock judges.

On real kernels, judged for real, it is in ``test_cycle_cpu.py``.
"""

import json
from dataclasses import replace

import pytest
from training_parts import null_runs, null_tasks

from kernelsmith.errors import UsageError
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.training.cycle import Cycle, CycleConfig, Parts
from kernelsmith.training.data.build import Recipe
from kernelsmith.training.evolve import quick_run
from kernelsmith.training.forms.algebra import AlgebraTeacher
from kernelsmith.training.recipes.config import TrainConfig, preset
from kernelsmith.training.recipes.judging import Opened
from kernelsmith.training.recipes.watching import read_metrics

TRIAL = preset("trial")
SHORT = TrainConfig(
    sft=replace(TRIAL.sft, steps=70, learning_rate=5e-3),
    grpo=replace(TRIAL.grpo, steps=2, prompts=2, save_every=2),
    tiny=replace(TRIAL.tiny, vocabulary=320),
)


def a_cycle(folder, said=None, **changes):
    usual = dict(backend="null", train=SHORT, teacher_steps=20, student_steps=6, samples=2,
                 run=quick_run(), recipe=Recipe(held_out=("e0", "e3")))  # fmt: skip
    parts = Parts(
        teacher=lambda task, place: AlgebraTeacher(),
        evaluator=lambda: Opened(evaluator=SimulatedEvaluator()),
    )
    config = CycleConfig(**{**usual, **changes})
    said = [] if said is None else said
    return Cycle(folder, null_tasks(), config, parts, said.append)


@pytest.fixture(scope="module")
def cycled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cycle")
    said = []
    return folder, a_cycle(folder, said).go(), said


def test_a_cycle_ends_in_a_table_of_before_and_after(cycled):
    folder, skills, _ = cycled
    assert [each.name for each in skills] == ["base", "sft", "sft+grpo(best)"]
    base, *trained = skills
    assert base.correct.value == 0.0, "random weights name no edit"
    assert all(each.correct.value > 0.3 for each in trained)
    assert all(each.best.value > base.best.value for each in trained)
    table = (folder / "round-1" / "table.md").read_text()
    assert table.count("\n") == 5
    assert json.loads((folder / "round-1" / "table.json").read_text())[0]["name"] == "base"


def test_its_loss_falls_and_its_rewards_come_from_the_simulated_judge(cycled):
    folder, _, _ = cycled
    losses = [each["loss"] for each in read_metrics(folder / "round-1" / "sft") if "loss" in each]
    assert losses[-1] < losses[0] / 4
    answers = (folder / "round-1" / "grpo-best" / "answers.jsonl").read_text().splitlines()
    assert {json.loads(each)["outcome"].split(":")[0] for each in answers} & {"passed", "wrong"}


def test_held_out_tasks_are_in_no_training_row(cycled):
    folder, _, _ = cycled
    data = folder / "round-1" / "data"
    for name in ("sft.jsonl", "rl.jsonl"):
        tasks = {json.loads(line)["task"] for line in (data / name).read_text().splitlines()}
        assert tasks
        assert not tasks & {"e0", "e3"}
    assert "e0, e3" in (data / "card.md").read_text()


def test_a_finished_cycle_does_nothing_again(cycled):
    folder, skills, _ = cycled
    said = []
    again = a_cycle(folder, said).go()
    assert not [each for each in said if each.startswith(("imitate", "reinforce", "["))]
    assert [each.correct for each in again] == [each.correct for each in skills]


@pytest.mark.slow
def test_another_round_goes_on_learning_from_new_journals(cycled, tmp_path):
    folder, _, _ = cycled
    null_runs(tmp_path, count=5, steps=16)
    skills = a_cycle(folder).go(add=[tmp_path])
    assert (folder / "round-2" / "table.md").is_file()
    assert skills[0].correct.value > 0.3, "it begins with what was trained"
    assert json.loads((folder / "round-2" / "added.json").read_text()) == [str(tmp_path.resolve())]


@pytest.mark.slow
def test_all_five_models_of_the_comparison_can_be_trained_in_one_cycle(tmp_path):
    train = replace(SHORT, sft=TRIAL.sft, grpo=replace(TRIAL.grpo, steps=8))
    cycle = a_cycle(tmp_path, train=train, selections=("best", "all", "initial"), teacher_steps=40)
    skills = cycle.go()
    names = ["base", "sft", "sft+grpo(best)", "sft+grpo(all)", "sft+grpo(initial)"]
    assert [each.name for each in skills] == names
    assert all(each.best.value > 1.0 for each in skills[1:])


def test_one_task_cannot_be_held_out(tmp_path):
    parts = Parts(teacher=lambda *_: AlgebraTeacher(), evaluator=lambda: None)
    config = CycleConfig(backend="null", train=SHORT)
    with pytest.raises(UsageError, match="at least two"):
        Cycle(tmp_path, null_tasks(1), config, parts, print)


def test_where_no_step_is_a_best_one_others_are_reinforced_and_it_is_said(tmp_path):
    said: list[str] = []

    def selected(**changes):
        cycle = a_cycle(tmp_path, said, teacher_steps=1, **changes)
        runs = [cycle._teach()]
        place = tmp_path / "round-1"
        place.mkdir(exist_ok=True)
        return cycle._selections(place, cycle._data(place, runs), runs)

    with pytest.raises(UsageError, match="'best' has no step"):
        selected()
    assert selected(instead=("top-k", "initial")) == ["initial"]
    assert "no step of the teacher is one of 'best': 'initial' instead" in said
    assert selected() == ["initial"], "the choice is the round's, whoever goes on with it"
