"""Both recipes train a tiny real model; interrupted ones come to the same weights."""

import shutil
from dataclasses import replace

import pytest
import torch
from training_parts import null_runs

from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.run.simulated import JUDGE, SimulatedEvaluator
from kernelsmith.training.data.build import Recipe, build
from kernelsmith.training.forms.algebra import rewritten
from kernelsmith.training.forms.form import form_named
from kernelsmith.training.recipes.config import Lora, SftConfig, TinySize, preset
from kernelsmith.training.recipes.distance import divergence
from kernelsmith.training.recipes.episodes import (
    next_brief,
    roll_out,
    train_episodes,
    trainer_for,
)
from kernelsmith.training.recipes.grpo import train_grpo
from kernelsmith.training.recipes.judging import Judging, Opened
from kernelsmith.training.recipes.model import load, save, surprise, tiny
from kernelsmith.training.recipes.sft import train_sft
from kernelsmith.training.recipes.store import Store
from kernelsmith.training.recipes.watching import read_metrics
from kernelsmith.training.reward.mismatch import Correction

SIZE = TinySize(vocabulary=320, width=64, layers=2, heads=4, context=256)
SFT = SftConfig(steps=90, batch=16, learning_rate=5e-3, max_length=256, save_every=90)
SHORT = SftConfig(steps=12, batch=16, learning_rate=5e-3, max_length=256, save_every=5)
GRPO = replace(preset("trial").grpo, steps=4, prompts=2, group=4, max_new_tokens=6, save_every=2)
"""Recipes whose rows are few enough for several passes: an interruption falls into a later one."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    null_runs(folder, count=6, steps=20)
    return build([folder], Recipe())


@pytest.fixture(scope="module")
def imitated(built, tmp_path_factory):
    """A model that has learnt to imitate, its folder, and how that went."""
    out = tmp_path_factory.mktemp("sft")
    done = train_sft(built.sft, *tiny(built.sft, SIZE), SFT, out)
    return done


@pytest.fixture
def judging():
    with Judging(Opened(evaluator=SimulatedEvaluator()), form_named("typed", "null")) as opened:
        yield opened


def weights(path):
    return load(path)[0].state_dict()


def same(one, other):
    return all(torch.equal(one[name], other[name]) for name in one)


def test_imitation_lowers_the_loss_and_leaves_a_model_and_a_page(imitated, built):
    assert imitated.losses[-1] < imitated.losses[0] / 3
    page = (imitated.model.parent / "index.html").read_text()
    assert "Supervised training" in page
    assert page.count("<svg") >= 1
    model, tokens = load(imitated.model)
    fresh, _ = tiny(built.sft, SIZE, seed=9)
    rows = built.sft[:8]
    learnt = sum(surprise(model, tokens, row) for row in rows)
    assert learnt < sum(surprise(fresh, tokens, row) for row in rows) / 2


def test_an_interrupted_imitation_comes_to_the_same_weights(built, tmp_path):
    whole = train_sft(built.sft, *tiny(built.sft, SIZE), SHORT, tmp_path / "whole")
    parts = tmp_path / "parts"
    stopped = train_sft(built.sft, *tiny(built.sft, SIZE), SHORT, parts, stop_at=7)
    assert (stopped.model, stopped.steps) == (None, 7)
    again = train_sft(built.sft, *tiny(built.sft, SIZE, seed=5), SHORT, parts)
    assert again.steps == SHORT.steps
    assert same(weights(again.model), weights(whole.model))
    assert again.losses == whole.losses
    shutil.rmtree(again.model)  # killed between its last step and its end
    finished = train_sft(built.sft, *tiny(built.sft, SIZE, seed=5), SHORT, parts)
    assert finished.losses == whole.losses
    assert same(weights(finished.model), weights(whole.model))


def test_an_interrupted_reinforcement_comes_to_the_same_weights(built, imitated, judging, tmp_path):
    few = built.rl[:3]
    whole = train_grpo(few, *load(imitated.model), judging, GRPO, tmp_path / "whole")
    parts = tmp_path / "parts"
    stopped = train_grpo(few, *load(imitated.model), judging, GRPO, parts, stop_at=2)
    assert (stopped.model, stopped.steps) == (None, 2)
    again = train_grpo(few, *load(imitated.model), judging, GRPO, parts)
    assert same(weights(again.model), weights(whole.model))
    assert not same(weights(whole.model), weights(imitated.model))
    finished = train_grpo(few, *load(imitated.model), judging, GRPO, parts)
    assert same(weights(finished.model), weights(whole.model)), "no step too many"
    metrics = read_metrics(parts)
    steps = [each["step"] for each in metrics if "mean_reward" in each]
    assert steps == [1, 2, 3, 4]
    assert all(0 <= each["correct"] <= 1 for each in metrics if "correct" in each)
    moved = [each["kl"] for each in metrics if "kl" in each]
    assert moved[0] == pytest.approx(0.0, abs=1e-6), "the first answers are the first policy's"
    assert moved[-1] > 1e-6
    unbroken = [each["kl"] for each in read_metrics(tmp_path / "whole") if "kl" in each]
    assert moved == pytest.approx(unbroken), "a resumed training knows where it began"
    page = (parts / "index.html").read_text()
    for name in ("reward", "loss", "length of answers", "entropy", "distance to the first policy"):
        assert f"<h2>{name}</h2><figure>" in page
    answers = (parts / "answers.jsonl").read_text().splitlines()
    assert len(answers) == GRPO.steps * GRPO.prompts * GRPO.group


def test_episodes_of_turns_train_and_resume_to_the_same_weights(built, imitated, judging, tmp_path):
    config = replace(
        GRPO, steps=2, prompts=1, turns=3, advantage="trloo", save_every=1,
        correction=Correction(low=0.99, high=1.01),
    )  # fmt: skip
    whole = train_episodes(built.rl, *load(imitated.model), judging, config, tmp_path / "whole")
    parts = tmp_path / "parts"
    stopped = train_episodes(built.rl, *load(imitated.model), judging, config, parts, stop_at=1)
    assert stopped.model is None
    again = train_episodes(built.rl, *load(imitated.model), judging, config, parts)
    assert same(weights(again.model), weights(whole.model))
    assert not same(weights(again.model), weights(imitated.model))
    first, last = read_metrics(parts)
    assert first["kl"] == pytest.approx(0.0, abs=1e-6) != last["kl"] > 1e-6
    page = (parts / "index.html").read_text()
    for name in ("reward", "loss", "length of answers", "entropy", "distance to the first policy"):
        assert f"<h2>{name}</h2><figure>" in page
    assert abs(last["mismatch"]) < 1e-3, "the trainer samples itself, so both sides agree"
    assert last["dropped"] == 0.0


def test_an_episode_improves_what_passed_and_shows_what_failed(built, imitated, judging):
    model, tokens = load(imitated.model)
    torch.manual_seed(0)
    brief = built.rl[0].asked
    config = replace(GRPO, turns=3, group=8)
    episodes = roll_out(model, tokens, brief, judging, config)
    assert len(episodes) == 8
    for episode in episodes:
        assert 1 <= len(episode.turns) <= 3
        for turn in episode.turns[:-1]:
            assert turn.trial.evaluation is not None, "only judged answers are followed by a turn"
    passed = [t.trial for e in episodes for t in e.turns if t.trial.correct]
    assert passed, "the imitated model gets something right"
    following = next_brief(brief, passed[0])
    assert following.parent.candidate.source == passed[0].source


@pytest.mark.parametrize("turns", [1, 2])
def test_an_adapter_leaves_the_base_as_it_is(built, imitated, judging, tmp_path, turns):
    config = replace(
        GRPO, steps=2, turns=turns, lora=Lora(rank=2, alpha=4), learning_rate=1e-2, save_every=1
    )
    train = trainer_for(config)
    whole = train(built.rl, *load(imitated.model), judging, config, tmp_path / "whole")
    parts = tmp_path / "parts"
    assert train(built.rl, *load(imitated.model), judging, config, parts, stop_at=1).model is None
    done = train(built.rl, *load(imitated.model), judging, config, parts)
    assert same(weights(done.model), weights(whole.model))
    moved = [each["kl"] for each in read_metrics(parts) if "kl" in each]
    assert moved[0] == pytest.approx(0.0, abs=1e-6) != moved[1] > 1e-6
    assert (done.model / "adapter_model.safetensors").stat().st_size < 200_000
    assert not (done.model / "model.safetensors").exists()
    assert not same(weights(done.model), weights(imitated.model)), "loaded, it is merged"


def test_mismatch_is_corrected_in_one_turn_too(built, imitated, judging, tmp_path):
    strict = replace(GRPO, steps=1, correction=Correction(low=1.0, high=1.0))
    assert trainer_for(GRPO) is train_grpo
    trainer_for(strict)(built.rl, *load(imitated.model), judging, strict, tmp_path)
    [found] = read_metrics(tmp_path)
    assert found["turns"] == 1.0
    assert found["dropped"] > 0.0, "no two sums of the same numbers are exactly alike"


def test_where_the_first_policy_is_not_kept_the_page_says_so(built, imitated, judging, tmp_path):
    config = replace(GRPO, steps=1, watch_kl=False)
    train_grpo(built.rl, *load(imitated.model), judging, config, tmp_path)
    assert not any("kl" in each for each in read_metrics(tmp_path))
    assert "not measured: no reference model was loaded" in (tmp_path / "index.html").read_text()


def test_the_estimated_distance_is_the_divergence_on_average():
    now, first = (torch.tensor(each).log() for each in ((0.7, 0.2, 0.1), (0.2, 0.3, 0.5)))
    exact = (now.exp() * (now - first)).sum()
    assert (now.exp() * divergence(now, first)).sum() == pytest.approx(float(exact))


class Unreliable:
    """Loses every other evaluation."""

    def __init__(self):
        self.asked = 0
        self._judge = SimulatedEvaluator()

    async def evaluate(self, task, candidate, *, baseline=None):
        self.asked += 1
        if self.asked % 2:
            raise EvaluationLost("the judge went away")
        return await self._judge.evaluate(task, candidate, baseline=baseline)


def test_lost_evaluations_do_not_stop_training(built, imitated, tmp_path):
    with Judging(Opened(evaluator=Unreliable()), form_named("typed", "null")) as judging:
        train_grpo(built.rl, *load(imitated.model), judging, GRPO, tmp_path)
    assert any(each.get("lost", 0) > 0 for each in read_metrics(tmp_path))


def test_the_same_answer_is_judged_once(built, judging):
    brief = built.rl[0].asked
    edit = "unit 0" if "* 1" in brief.parent.candidate.source else "zero 0"
    trials = judging.wait([judging.submit(brief, edit) for _ in range(5)])
    assert len({trial.evaluation for trial in trials}) == 1
    spent = judging.spent()
    assert (spent.answers, spent.judged) == (
        5,
        min(1, sum(t.evaluation is not None for t in trials)),
    )


def test_training_needs_something_to_train_on(built, judging, tmp_path):
    model, tokens = tiny(built.sft, SIZE)
    with pytest.raises(UsageError, match="no question"):
        train_grpo([], model, tokens, judging, GRPO, tmp_path)
    corrected = replace(GRPO, correction=Correction())
    with pytest.raises(UsageError, match="train_episodes has one"):
        train_grpo(built.rl, model, tokens, judging, corrected, tmp_path)
    with pytest.raises(UsageError, match="leave beta out"):
        train_episodes(built.rl, model, tokens, judging, replace(GRPO, beta=0.1), tmp_path)
    with pytest.raises(UsageError, match="no row has an answer"):
        train_sft(built.rl, model, tokens, SFT, tmp_path)
    with pytest.raises(UsageError, match="no model in"):
        load(tmp_path / "nothing")


def test_a_tiny_tokenizer_writes_any_text(built, tmp_path):
    model, tokens = tiny(built.sft, SIZE)
    save(model, tokens, tmp_path)
    _, again = load(tmp_path)
    for text in ("x * 1", "ein Übermaß\n\t→ 漢字", "<|user|> is no mark in text"):
        assert again.decode(again(text)["input_ids"], skip_special_tokens=False) == text


def test_evaluations_that_were_paid_for_are_kept_on_disk(built, tmp_path):
    path, brief = tmp_path / "known.jsonl", built.rl[0].asked
    edit = next(iter(rewritten(brief.parent.candidate.source)))[0]
    form = form_named("typed", "null")
    counted = []
    for _ in range(2):
        store = Store(path, judge=JUDGE)
        opened = Opened(evaluator=SimulatedEvaluator())
        with Judging(opened, form, store=store) as judging:
            [trial] = judging.wait([judging.submit(brief, edit)])
            counted.append((trial.evaluation.candidate, judging.spent().judged))
    assert [judged for _, judged in counted] == [1, 0]
    assert counted[0][0] == counted[1][0]
    other = Store(path, judge="another judge")
    assert len(other) == 0, "evaluations by different judges do not compare"
    other.close()
