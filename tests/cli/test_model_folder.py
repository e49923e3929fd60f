"""``optimize --model FOLDER`` and its mistakes; what needs no trained model runs without one."""

import json
import subprocess
import sys

import pytest
from run_recordings import a_task, expect_one_line

from kernelsmith.cli.choices import config_from
from kernelsmith.cli.main import main, parser

MISSING = """
import sys
for name in ("peft", "safetensors", "tokenizers", "transformers", "trl"):
    sys.modules[name] = None  # as Python sees a package that is not installed
from kernelsmith.cli.choices import config_from
from kernelsmith.cli.main import main, parser
sys.exit(main(sys.argv[1:]))
"""


def a_folder(path):
    """What looks like a model until somebody loads it."""
    path.mkdir()
    (path / "config.json").write_text('{"model_type": "llama"}')
    (path / "model.safetensors").write_bytes(b"no weights at all")
    return path


def without_the_extra(*words):
    return subprocess.run(
        [sys.executable, "-c", MISSING, *map(str, words)], capture_output=True, text=True,
        check=False, timeout=300,
    )  # fmt: skip


def test_without_the_extra_one_line_says_what_to_install(tmp_path):
    words = ("optimize", a_task(tmp_path), "--backend", "null", "--out", tmp_path / "run")
    done = without_the_extra(*words, "--model", a_folder(tmp_path / "model"))
    expect_one_line(done, 2, "pip install 'kernelsmith[train]'")
    assert "a model in a folder needs " in done.stderr
    assert not (tmp_path / "run").exists()


def test_training_without_the_extra_says_the_same(tmp_path):
    done = without_the_extra("train", "serve", a_folder(tmp_path / "model"))
    expect_one_line(done, 2, "pip install 'kernelsmith[train]'")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--model", "./nowhere"], "no such folder"),
        (["--model", "."], "neither config.json nor adapter_config.json"),
        (["--model", "/nowhere", "--model", "/nowhere/else"], "asked alone"),
        (["--proposer", "student"], "name it: --model FOLDER"),
        (["--proposer", "student", "--model", "m", "--base-url", "http://a/v1"], "served from"),
        (["--adapt"], "--model FOLDER"),
        (["--adapt", "--model", "m", "--base-url", "http://127.0.0.1:9/v1"], "--model FOLDER"),
    ],
)
def test_a_bad_folder_is_one_line_and_the_users(words, why, tmp_path, monkeypatch, capsys):
    pytest.importorskip("trl", reason="the extra train is not installed")
    monkeypatch.chdir(tmp_path)
    assert here("optimize", a_task(tmp_path), "--backend", "null", *words) == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert why in said


def test_weights_that_cannot_be_read_are_the_users(tmp_path, capsys):
    pytest.importorskip("trl", reason="the extra train is not installed")
    words = ("--backend", "null", "--out", tmp_path / "run", "--model")
    assert here("optimize", a_task(tmp_path), *words, a_folder(tmp_path / "model")) == 2
    [said] = capsys.readouterr().err.strip().splitlines()[-1:]
    assert "cannot load a model" in said


def test_a_run_remembers_its_model_and_resumes_with_no_other(tmp_path, capsys):
    pytest.importorskip("trl", reason="the extra train is not installed")
    model, out = a_random_model(tmp_path / "model"), tmp_path / "run"
    words = ("--backend", "null", "--out", out, "--model", model, "--adapt", "--steps", 3)
    assert here("optimize", a_task(tmp_path), *words, "--json") == 1, "random weights name no edit"
    assert json.loads(capsys.readouterr().out)["steps"] == 3
    header = json.loads((out / "journal.jsonl").read_text().splitlines()[0])
    said = header["config"]["proposer"]
    assert (said["kind"], said["form"], said["adapt"]) == ("student", "typed", 2)
    assert len(said["weights"]) == 32
    assert here("resume", out, "--steps", 5) == 1
    assert "0 times to its own good steps" in capsys.readouterr().out
    (model / "model.safetensors").write_bytes(b"another model")
    assert here("resume", out, "--steps", 6) == 2
    assert "not the one that the run began with" in capsys.readouterr().err


def test_a_file_may_name_the_folder_and_how_its_model_is_asked(tmp_path):
    pytest.importorskip("trl", reason="the extra train is not installed")
    folder, file = a_folder(tmp_path / "model"), tmp_path / "run.toml"
    file.write_text(f'[proposer]\nkind = "student"\npath = "{folder}"\nform = "diff"\nadapt = 5\n')
    spec = config_from(parser().parse_args(["optimize", "t.py", "--config", str(file)])).proposer
    assert (spec.kind, spec.form, spec.adapt) == ("student", "diff", 5)
    words = ["optimize", "t.py", "--model", str(folder), "--base-url", "http://127.0.0.1:9/v1"]
    assert config_from(parser().parse_args(words)).proposer.kind == "llm", "the endpoint's name"


def here(*words):
    """The command in this process: what a model needs takes seconds to import."""
    return main([str(word) for word in words])


def a_random_model(path):
    from kernelsmith.training.recipes.config import TinySize
    from kernelsmith.training.recipes.model import save, tiny

    save(*tiny([], TinySize(vocabulary=300, width=32, layers=1, heads=2, context=128)), path)
    return path
