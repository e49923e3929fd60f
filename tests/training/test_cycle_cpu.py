"""The whole loop on real kernels: rules teach, the processor judges, a small model learns."""

import json
from pathlib import Path

import pytest

from kernelsmith.cli.main import main

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
    metrics = (tmp_path / "out" / "round-1" / "sft" / "metrics.jsonl").read_text().splitlines()
    losses = [found["loss"] for line in metrics if "loss" in (found := json.loads(line))]
    assert losses[-1] < losses[0] / 3
