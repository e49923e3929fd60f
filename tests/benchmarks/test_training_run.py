"""The benchmark of training: stages in order, each once, and none begun without time for it."""

import re
from dataclasses import replace

import pytest
from benchmarks.training_figure import rewards
from benchmarks.training_run import go_through, options, stages

MODELS = ["base", "sft", "sft+grpo(best)", "sft+grpo(all)", "sft+grpo(initial)"]


@pytest.fixture
def todo(tmp_path):
    return stages(options().parse_args(["--work", str(tmp_path)]))


def finished(stage):
    stage.done.parent.mkdir(parents=True)
    stage.done.write_text("{}")


def test_every_model_is_trained_before_it_is_measured(todo):
    names = [each.name for each in todo]
    assert names == [
        "sft", "grpo best", "grpo all", "grpo initial", *(f"measure {each}" for each in MODELS)
    ]  # fmt: skip
    assert len({each.done for each in todo}) == len(todo)


def test_all_reinforcements_begin_from_the_same_imitation_and_share_their_evaluations(todo):
    said = [" ".join(each.arguments) for each in todo if each.name.startswith("grpo")]
    assert len({each.partition("--model ")[2].partition(" --out")[0] for each in said}) == 1
    assert len({each.partition("--store ")[2].partition(" ")[0] for each in said}) == 1


def test_what_is_done_is_not_done_again_and_nothing_begins_without_time(todo, capsys):
    for each in todo[:-1]:
        finished(each)
    assert go_through(todo, lambda: 1.0) == ({}, "")
    said = capsys.readouterr().err
    assert said.startswith("measure sft+grpo(initial): no time left")


def test_a_stage_that_fails_ends_the_run_with_its_own_words(todo):
    odd = replace(todo[0], arguments=("sft", "--no-such-option"))
    took, failure = go_through([odd, *todo[1:]], lambda: 60.0)
    assert re.search(r"sft failed: .*required: --data", failure)
    assert list(took) == ["sft"]


def test_the_picture_has_a_line_for_each_selection_and_none_of_what_is_no_reward(tmp_path):
    points = [{"step": 1.0, "mean_reward": 0.5}, {"step": 2.0, "mean_reward": 0.7}]
    out = tmp_path / "rewards.svg"
    rewards({"sft": [{"step": 1.0, "loss": 2.0}], "grpo-best": points, "grpo-all": points}, out)
    drawn = out.read_text()
    assert len(re.findall(r'<path [^>]*class="c\d"', drawn)) == 2
    assert "best, mean 0.60" in drawn
    assert "sft" not in drawn
    assert drawn.startswith("<svg xmlns=")


def test_without_reinforcement_there_is_no_picture(tmp_path):
    rewards({"sft": [{"step": 1.0, "loss": 2.0}]}, tmp_path / "rewards.svg")
    assert not any(tmp_path.iterdir())
