"""``kernelsmith train``: the stages one by one, as a user goes through them, and their mistakes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernelsmith.cli.main import main
from kernelsmith.cli.train_verbs import _tasks
from kernelsmith.run.config import RunConfig

pytest.importorskip("trl", reason="the extra train is not installed")

EXPRESSIONS = ("x * 1 + y * 1 + 0", "x * y + x * z + 0", "-(-x) * 1 + y", "(x + 0) * 1 + y * 1")
SMALL = """
[sft]
steps = 45
batch = 16
learning_rate = 5e-3
max_length = 256
save_every = 45

[grpo]
steps = 2
prompts = 2
group = 4
learning_rate = 3e-4
max_new_tokens = 6
save_every = 1

[tiny]
vocabulary = 320
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Null tasks, a small config, and one whole cycle over them."""
    folder = tmp_path_factory.mktemp("train")
    (folder / "tasks").mkdir()
    for index, source in enumerate(EXPRESSIONS):
        (folder / "tasks" / f"e{index}.py").write_text(source)
    (folder / "small.toml").write_text(SMALL)
    words = ["--backend", "null", "--config", str(folder / "small.toml"), "--held-out", "e3"]
    more = ["--teacher-steps", "16", "--student-steps", "4", "--samples", "2"]
    out = ["--out", str(folder / "cycle")]
    assert main(["train", "cycle", str(folder / "tasks"), *words, *more, *out]) == 0
    return folder


def run(*words):
    return main(["train", *(str(word) for word in words)])


def test_a_cycle_prints_its_table(place, capsys):
    words = ["--backend", "null", "--config", place / "small.toml", "--held-out", "e3", "--json"]
    more = ["--teacher-steps", "16", "--student-steps", "4", "--samples", "2"]
    assert run("cycle", place / "tasks", *words, *more, "--out", place / "cycle") == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == ["base", "sft", "sft+grpo(best)"]


def test_the_stages_run_one_by_one(place, capsys):
    data = place / "data"
    assert run("data", place / "cycle" / "teacher", "--out", data, "--held-out", "e3") == 0
    assert "to imitate" in capsys.readouterr().out
    model = place / "cycle" / "round-1" / "sft" / "model"
    config = ("--config", place / "small.toml")
    grpo = ("grpo", "--data", data, "--model", model, "--out", place / "grpo", *config)
    assert run(*grpo, "--reward", "interval", "--advantage", "trloo") == 0
    assert "2 steps ->" in capsys.readouterr().out
    pairs = (f"sft={model}", f"rl={place / 'grpo' / 'model'}")
    assert run("measure", "--data", data, "--model", pairs[0], "--model", pairs[1],
               "--samples", "1", "--out", place / "measured", "--max-tokens", "6") == 0  # fmt: skip
    table = capsys.readouterr().out
    assert "| sft |" in table
    assert "| rl |" in table


def test_an_adapting_run_ends_with_its_best_score(place, capsys):
    model = place / "cycle" / "round-1" / "sft" / "model"
    words = ("--model", model, "--backend", "null", "--steps", "8", "--every", "1")
    assert run("adapt", place / "tasks" / "e0.py", *words, "--out", place / "adapted") == 0
    assert "best score" in capsys.readouterr().out


def test_what_was_made_can_be_exported_and_imported(place, capsys):
    data = place / "cycle" / "round-1" / "data"
    assert run("export", "--data", data, "--out", place / "verl", "--verl") == 0
    assert "launch.sh" in capsys.readouterr().out
    assert run("export", "--data", data, "--out", place / "pub", "--published") == 0
    capsys.readouterr()
    files = (place / "pub" / "rl.parquet", place / "pub" / "sft.parquet")
    assert run("import", *files, "--backend", "null", "--out", place / "imported") == 0
    said = capsys.readouterr().out
    assert "0 left out" in said
    assert "--judge" not in said


def test_import_says_what_needs_judge_and_judging_makes_it_ready_for_reinforcement(place, capsys):
    rows = [json.loads(line) for line in (place / "cycle/round-1/data/rl.jsonl").open()]
    briefs = [json.loads(row["brief"]) for row in rows]
    records = [
        {
            "prompt": row["prompt"],
            "extra_info": {"parent_code": brief["parent"]["candidate"]["source"]},
            "reward_model": {"ground_truth": {"reference_code": brief["task"]["source"]}},
        }
        for row, brief in zip(rows, briefs, strict=True)
    ]
    (place / "theirs.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    out = place / "theirs"
    words = ("import", place / "theirs.jsonl", "--backend", "null", "--out", out)
    assert run(*words) == 0
    assert f"{len(rows)} of {len(rows)} questions are about" in capsys.readouterr().out
    model = place / "cycle" / "round-1" / "sft" / "model"
    grpo = ("grpo", "--data", out, "--model", model, "--out", place / "none")
    assert run(*grpo) == 2
    assert "train import --judge" in capsys.readouterr().err
    assert run(*words, "--judge") == 0
    assert "parent 1 of" in capsys.readouterr().err
    assert run(*words, "--judge") == 0
    said = capsys.readouterr()
    assert "parent 1 of" not in said.err, "what was judged is not judged again"
    assert "--judge" not in said.out


def test_the_other_verbs_load_nothing_that_training_needs():
    heavy = "{'torch', 'trl', 'transformers', 'datasets', 'pyarrow', 'peft'}"
    code = f"import sys, kernelsmith.cli.main; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["data", "nowhere", "--out", "x"], "no run in 'nowhere'"),
        (["sft", "--data", "nowhere", "--out", "x"], "cannot read rows"),
        (["sft", "--data", "x", "--out", "x", "--preset", "huge"], "no preset 'huge'"),
        (["export", "--data", "x", "--out", "x"], "--verl or --published"),
        (["cycle", "nowhere", "--out", "x"], "no folder 'nowhere'"),
        (["weights", "gpt", "a.whl", "--out", "x"], "no weights 'gpt'"),
        (["import", "a.csv", "--out", "x"], "no .jsonl, .json or .parquet"),
        (["serve", "nowhere"], "no model in"),
    ],
)
def test_mistakes_are_one_line_and_the_users(words, why, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", *words]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert "Traceback" not in said


CUDA = Path(__file__).parents[2] / "tasks" / "cuda" / "l2_normalize.py"


def test_a_cycle_leaves_out_tasks_that_are_there_to_be_ported(tmp_path, capsys):
    plain = CUDA.parents[1] / "l2_normalize.py"
    for folder, source in ((tmp_path, plain), (tmp_path / "cuda", CUDA)):
        folder.mkdir(exist_ok=True)
        (folder / "l2_normalize.py").write_text(source.read_text())
    (tmp_path / "softmax.py").write_text((plain.parent / "softmax.py").read_text())
    chosen = _tasks(tmp_path, RunConfig(backend="cpu"), ["l2_normalize", "softmax"])
    assert [each.name for each in chosen] == ["l2_normalize", "softmax"]
    assert "bring a CUDA kernel along" in capsys.readouterr().err


def test_two_tasks_of_one_name_are_refused_before_anything_runs(tmp_path, capsys):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "e1.py").write_text("x + y  # us: 20")
    said = run("cycle", tmp_path, "--backend", "null", "--out", tmp_path / "cycle")
    assert said == 2
    assert "two tasks 'e1'" in capsys.readouterr().err
    assert not (tmp_path / "cycle").exists()
