"""From trials to advantages, and to the numbers of the curves."""

from dataclasses import replace

import pytest
from training_parts import judged

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import UsageError
from kernelsmith.training.page import write_page
from kernelsmith.training.recipes.config import GrpoConfig, load_config, preset
from kernelsmith.training.recipes.scoring import forget_answers, note_answers, score
from kernelsmith.training.reward.trial import Trial

CONFIG = replace(preset("trial").grpo, group=2, reward="paper")


def passed(speedup, **more):
    return Trial(parent=judged(1.0), evaluation=judged(speedup, **more))


def test_groups_are_compared_by_themselves():
    trials = [passed(1.0), passed(3.0), passed(10.0), Trial(lost="gone")]
    scored = score(trials, CONFIG, seed=0)
    assert scored.rewards[:3] == pytest.approx((1.0, 3.0, 10.0))
    assert scored.advantages == pytest.approx((-2.0, 2.0, 0.0, 0.0))
    assert scored.metrics["lost"] == 0.25
    with pytest.raises(ValueError, match="no whole groups"):
        score(trials[:3], CONFIG, seed=0)


def test_numbers_count_what_they_say():
    trials = [passed(2.0), Trial(rejection="no"), Trial(evaluation=judged(None, Verdict.CHEATED)),
              Trial(evaluation=judged(None, Verdict.WRONG))]  # fmt: skip
    found = score(trials, CONFIG, seed=0).metrics
    shares = {name: found[name] for name in ("correct", "readable", "cheated", "faster")}
    assert shares == {"correct": 0.25, "readable": 0.75, "cheated": 0.25, "faster": 0.25}
    assert found["gain"] == pytest.approx(2.0)


def test_rejected_for_laziness_an_answer_still_counts_in_its_groups_baseline():
    trials = [passed(3.0, own=0.0), passed(1.0, own=1.0)]
    plain = score(trials, CONFIG, seed=0)
    guarded = score(trials, replace(CONFIG, profiling_rejection=True), seed=0)
    assert guarded.advantages == (0.0, plain.advantages[1])
    assert guarded.advantages[1] < 0


def test_what_a_model_wrote_is_text_on_the_page(tmp_path):
    trial = Trial(rejection="<b>no</b>")
    note_answers(tmp_path, 1, ["t"], ["<script>alert(1)</script>"], [trial], [0.0])
    note_answers(tmp_path, 2, ["t"], ["later"], [trial], [0.0])
    page = write_page(tmp_path, "A <title>").read_text()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    forget_answers(tmp_path, after=1)
    assert "later" not in (tmp_path / "answers.jsonl").read_text()


def test_a_config_is_read_and_its_mistakes_are_named(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('[grpo]\nreward = "interval"\nturns = 3\n')
    assert load_config(path).grpo.turns == 3
    for text, why in (
        ("[grpo]\ngroup = 1\n", "at least two answers"),
        ('[grpo]\nreward = "gold"\n', "no reward 'gold'"),
        ("[grpo]\nstep = 3\n", "no setting 'grpo.step'"),
        ("[grpo\n", "is not TOML"),
    ):
        path.write_text(text)
        with pytest.raises(UsageError, match=why):
            load_config(path)
    with pytest.raises(UsageError, match="above 0"):
        GrpoConfig(temperature=0.0)
