"""The whole loop on real kernels: rules teach, the processor judges, a small model learns."""

import json
from pathlib import Path

import pytest

from kernelsmith.cli.main import main
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.run.journal import read

SMALL = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {}


def get_inputs():
    return [torch.randn(256, 512)]


def get_init_inputs():
    return []
"""
PAIR = {"soft": "torch.softmax(x, dim=-1)", "logs": "x - torch.logsumexp(x, dim=-1, keepdim=True)"}
TASKS = ("softmax", "rms_norm", "logsumexp", "l2_normalize")
CONFIG = """
[sft]
steps = 250
batch = 16
learning_rate = 3e-3
max_length = 512
save_every = 250

[grpo]
steps = 2
prompts = 2
group = 4
learning_rate = 1e-4
max_new_tokens = 48
save_every = 2

[tiny]
vocabulary = 640
width = 64
layers = 2
"""


def losses_in(folder):
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [found["loss"] for line in lines if "loss" in (found := json.loads(line))]


def test_the_whole_loop_runs_on_two_small_kernels_that_are_built_and_timed(tmp_path, capsys):
    """Some 40 s of processor time, most of it for builds and for judges that start."""
    (tmp_path / "tasks").mkdir()
    for name, words in PAIR.items():
        (tmp_path / "tasks" / f"{name}.py").write_text(SMALL.format(words))
    config = CONFIG.replace("250", "80").replace("prompts = 2", "prompts = 1")
    config = config.replace("steps = 2\n", "steps = 1\n").replace("group = 4", "group = 8")
    (tmp_path / "config.toml").write_text(config)
    words = ["--backend", "cpu", "--config", str(tmp_path / "config.toml"), "--held-out", "soft"]
    more = ["--teacher-steps", "3", "--student-steps", "1", "--samples", "1", "--select", "all",
            "--in-flight", "1", "--json", "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(["train", "cycle", str(tmp_path / "tasks"), *words, *more]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == ["base", "sft", "sft+grpo(all)"]
    taught = read(tmp_path / "out" / "teacher" / "logs" / "journal.jsonl").steps
    judged = [step.evaluation for step in taught if step.evaluation is not None]
    assert {each.judge for each in judged} == {JUDGE}
    assert any(each.verdict is Verdict.PASSED and each.timing for each in judged)
    round_ = tmp_path / "out" / "round-1"
    losses = losses_in(round_ / "sft")
    assert losses[-1] < losses[0] / 3
    answers = (round_ / "grpo-all" / "answers.jsonl").read_text().splitlines()
    passed = [said for line in answers if (said := json.loads(line))["outcome"] == "passed"]
    assert passed, "it was trained on these very questions"
    assert all(each["reward"] is not None for each in passed)


@pytest.mark.slow
def test_a_model_learns_typed_edits_of_real_kernels(tmp_path, capsys):
    (tmp_path / "config.toml").write_text(CONFIG)
    tasks = Path(__file__).parents[2] / "tasks"
    only = [word for task in TASKS for word in ("--only", task)]
    words = ["--backend", "cpu", "--config", str(tmp_path / "config.toml"), *only, "--json"]
    more = ["--held-out", "rms_norm", "--teacher-steps", "8", "--student-steps", "3",
            "--samples", "1", "--select", "top-k", "--out", str(tmp_path / "out")]  # fmt: skip
    assert main(["train", "cycle", str(tasks), *words, *more]) == 0
    base, sft, rl = json.loads(capsys.readouterr().out)
    assert base["correct"]["value"] == 0.0
    assert [sft["name"], rl["name"]] == ["sft", "sft+grpo(top-k)"]
    answers = (tmp_path / "out" / "round-1" / "grpo-top-k" / "answers.jsonl").read_text()
    outcomes = [json.loads(line)["outcome"] for line in answers.splitlines()]
    assert outcomes.count("passed") >= len(outcomes) / 4, "edits of tasks that it was trained on"
    losses = losses_in(tmp_path / "out" / "round-1" / "sft")
    assert losses[-1] < losses[0] / 3
