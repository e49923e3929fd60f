"""Settings: presets, TOML in and out, and mistakes named by their key."""

from dataclasses import replace

import pytest

from kernelsmith.errors import UsageError
from kernelsmith.propose.models import ModelConfig
from kernelsmith.run.config import (
    PRESETS,
    Budget,
    ProposerSpec,
    RunConfig,
    dump_config,
    load_config,
    parse_config,
    preset,
)
from kernelsmith.search.config import SearchConfig


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_being_written_and_read(name):
    assert parse_config(dump_config(preset(name))) == preset(name)


def test_everything_survives_being_written_and_read():
    config = RunConfig(
        seed=7,
        budget=Budget(steps=3, usd=1.5, tokens=10**6, seconds=60.0, target_speedup=2.5),
        search=SearchConfig(policy="refine", dimensions=("score", "launches")),
        proposer=ProposerSpec(
            kind="llm",
            models=(
                ModelConfig(name='odd "name"\n\\\x7fé', base_url="http://localhost:1/v1"),
                ModelConfig(name="b", weight=2.0, usd_per_million_in=0.1),
            ),
        ),
    )
    assert parse_config(dump_config(config)) == config


def test_the_papers_preset_takes_forty_steps_and_the_thorough_one_stops_early():
    assert preset("paper").budget.steps == 40
    assert preset("thorough").budget.steps == 512
    assert preset("thorough").budget.stale_steps is not None


def test_a_sweep_judges_each_candidate_once_and_its_best_twice():
    sweep = preset("sweep")
    assert (sweep.effort, sweep.confirm_effort) == ("glance", "quick")
    assert not sweep.remeasure.champions
    assert not sweep.remeasure.gain
    assert sweep.remeasure.final == 1


def test_a_file_is_laid_upon_a_preset_key_by_key():
    config = parse_config('preset = "quick"\n[budget]\nusd = 2\n')
    assert config.budget == replace(preset("quick").budget, usd=2.0)
    assert config.effort == "quick"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("concurency = 2", "no setting 'concurency'; did you mean 'concurrency'?"),
        ("[budget]\nstep = 2", "no setting 'budget.step'; did you mean 'steps'?"),
        ("[budget]\nsteps = 2.5", "budget.steps is a whole number; got 2.5"),
        ("[budget]\nusd = true", "budget.usd is a number; got True"),
        ('seed = "x"', "seed is a whole number; got 'x'"),
        ("budget = 3", "budget is a table; got 3"),
        ("[search]\ndimensions = 3", "search.dimensions is a list; got 3"),
        ("[[proposer.models]]\nname = 3", r"proposer.models\[0\].name is a text; got 3"),
        ("[budget]\nusd = -1", "budget: usd is above 0 or left out; got -1"),
        ('[search]\npolicy = "x"', "search: no policy 'x'"),
        ('[proposer]\nkind = "llm"', "proposer: the proposer 'llm' needs at least one model"),
        ("[budget", "not TOML: "),
        ('[prompt]\nform = "x"', "prompt.form is one of whole, diff; got 'x'"),
        ('preset = "x"', "no preset 'x'; known are paper, quick, sweep, thorough"),
        ('effort = "x"', "settings: effort is one of glance, quick, usual, thorough"),
    ],
)
def test_a_mistake_is_named_in_one_line(text, says):
    with pytest.raises(UsageError, match=says) as caught:
        parse_config(text)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read .*none.toml: No such file"):
        load_config(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("x = 1")
    with pytest.raises(UsageError, match=r"bad.toml: no setting 'x'"):
        load_config(tmp_path / "bad.toml")
