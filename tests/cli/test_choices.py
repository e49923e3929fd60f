"""From options to a configuration, and how a suite shares one budget."""

from pathlib import Path

import pytest

from kernelsmith.cli.choices import MODEL, config_from, notes_on
from kernelsmith.cli.main import parser
from kernelsmith.cli.suite import fitting, share, tasks_in
from kernelsmith.errors import UsageError
from kernelsmith.run.config import Budget, ProposerSpec, RunConfig
from kernelsmith.run.result import Result
from kernelsmith.run.stopping import Stop


def chosen(*words):
    args = parser().parse_args(["optimize", "task.py", *words])
    config = config_from(args)
    return config, list(notes_on(config, args))


@pytest.fixture(autouse=True)
def _no_gpu_and_no_model(monkeypatch):
    monkeypatch.setenv("KERNELSMITH_TRITON", "interpreter")
    monkeypatch.delenv(MODEL, raising=False)


def test_without_a_model_the_rules_write_and_that_is_said_in_one_line():
    config, notes = chosen()
    assert config.proposer.kind == "rules"
    (said,) = [note for note in notes if "rules" in note]
    assert "no model is configured" in said
    assert "--model NAME --base-url URL" in said


def test_rules_by_request_need_no_explanation():
    assert not any("rules" in note for note in chosen("--proposer", "rules")[1])


def test_a_gpu_makes_triton_the_default(monkeypatch):
    assert chosen()[0].backend == "cpu"
    monkeypatch.setenv("KERNELSMITH_TRITON", "gpu")
    assert chosen()[0].backend == "triton"
    assert chosen("--backend", "cpu")[0].backend == "cpu"


def test_a_model_makes_it_the_proposer():
    config, notes = chosen("--model", "m", "--base-url", "http://localhost:8000/v1")
    assert config.proposer.kind == "llm"
    (model,) = config.proposer.models
    assert (model.name, model.base_url) == ("m", "http://localhost:8000/v1")
    assert not any("rules" in note for note in notes)


def test_a_model_may_be_named_by_the_environment(monkeypatch):
    monkeypatch.setenv(MODEL, "m")
    assert [model.name for model in chosen()[0].proposer.models] == ["m"]


def test_models_share_an_endpoint_or_have_one_each():
    one, two = "http://a:1/v1", "http://b:2/v1"
    names = ("--model", "m", "--model", "n")
    shared = chosen(*names, "--base-url", one)[0].proposer.models
    assert [model.base_url for model in shared] == [one, one]
    each = chosen(*names, "--base-url", one, "--base-url", two)[0].proposer.models
    assert [model.base_url for model in each] == [one, two]
    assert [model.base_url for model in chosen(*names)[0].proposer.models] == [None, None]


PRICED = """
preset = "paper"
seed = 7
[[proposer.models]]
name = "m"
base_url = "http://a:1/v1"
temperature = 0.9
usd_per_million_in = 1.0
usd_per_million_out = 2.0
[proposer]
kind = "llm"
"""
"""A file as docs/running.md shows one; tables may come in any order."""


def test_a_model_that_an_option_names_is_as_the_file_says(tmp_path):
    (tmp_path / "run.toml").write_text(PRICED)
    words = ("--config", str(tmp_path / "run.toml"), "--model", "m", "--model", "n")
    one, other = chosen(*words)[0].proposer.models
    assert (one.temperature, one.usd_per_million_out, one.base_url) == (0.9, 2.0, "http://a:1/v1")
    assert (other.name, other.usd_per_million_out) == ("n", None)
    (moved, _) = chosen(*words, "--base-url", "http://b:2/v1")[0].proposer.models
    assert (moved.temperature, moved.base_url) == (0.9, "http://b:2/v1")


def test_money_is_watched_only_where_it_can_be_counted(tmp_path):
    (tmp_path / "run.toml").write_text(PRICED)
    priced = chosen("--config", str(tmp_path / "run.toml"), "--budget-usd", "3")[0]
    assert priced.budget.usd == 3.0
    with pytest.raises(UsageError, match="needs the price of 'n'"):
        chosen("--model", "n", "--budget-usd", "3")
    assert chosen("--proposer", "rules", "--budget-usd", "3")[0].budget.usd == 3.0


def test_every_limit_of_the_budget_has_an_option():
    words = ("--steps", "7", "--target", "2.5", "--budget-usd", "3", "--budget-tokens", "1000")
    budget = chosen(*words, "--budget-seconds", "60")[0].budget
    assert (budget.steps, budget.target_speedup, budget.usd) == (7, 2.5, 3.0)
    assert (budget.tokens, budget.seconds) == (1000, 60.0)


def a_result(**spent):
    usual = {"tokens": 0, "usd": None, "elapsed_s": 0.0}
    return Result(
        folder=Path("runs/add"), stop=Stop.STEPS, steps=5, best=None, confirmed=False,
        **{**usual, **spent},
    )  # fmt: skip


def test_a_suite_shares_what_is_left_evenly():
    whole = Budget(steps=5, usd=10.0, tokens=1000, seconds=100.0)
    assert share(whole, [], 4) == Budget(steps=5, usd=2.5, tokens=250, seconds=25.0)
    done = [a_result(usd=1.0, tokens=700, elapsed_s=10.0)]
    assert share(whole, done, 3) == Budget(steps=5, usd=3.0, tokens=100, seconds=30.0)


def test_a_suite_ends_when_something_is_used_up():
    assert share(Budget(usd=1.0), [a_result(usd=1.0)], 1) is None
    assert share(Budget(), [a_result(usd=1.0, tokens=10**9)], 1) == Budget()


@pytest.mark.parametrize(
    ("backend", "kept", "said"),
    [
        ("cpu", ["deep/broken", "plain"], "left out for the backend 'cpu': tasks that bring a"),
        ("triton", ["deep/broken", "plain"], "left out for the backend 'triton': tasks"),
        ("maca", ["cuda/port"], "left out for the backend 'maca': tasks that bring no CUDA"),
        ("null", ["cuda/port", "deep/broken", "plain"], ""),
    ],
)
def test_a_suite_takes_the_tasks_that_fit_the_backend(tmp_path, backend, kept, said):
    texts = {"plain": "x = 1", "cuda/port": 'CUDA = """kernel"""', "deep/broken": "no python"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    found, line = fitting(tasks_in(tmp_path), RunConfig(backend=backend))
    assert [name for name, _ in found] == kept
    assert line.startswith(said)
    assert bool(line) is bool(said)


def test_a_folder_of_tasks_with_cuda_kernels_alone_is_taken_as_it_is(tmp_path):
    (tmp_path / "port.py").write_text('CUDA = "kernel"')
    assert fitting(tasks_in(tmp_path), RunConfig()) == ([("port", tmp_path / "port.py")], "")


def test_whoever_writes_freely_takes_all_tasks_where_kernels_are_ported(tmp_path):
    (tmp_path / "port.py").write_text('CUDA = "kernel"')
    (tmp_path / "plain.py").write_text("x = 1")
    config = RunConfig(backend="cuda", proposer=ProposerSpec(kind="agent"))
    assert len(fitting(tasks_in(tmp_path), config)[0]) == 2


def test_captures_are_kept_unless_fresh_ones_are_asked_for():
    assert chosen()[0].keep_captures
    assert not chosen("--fresh-captures")[0].keep_captures
