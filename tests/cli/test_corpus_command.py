import json

import pytest

from kernelsmith.cli.main import main

MODULES = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.layer = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return x + torch.relu(self.layer(self.norm(x)))


class Same(nn.Module):
    def forward(self, x):
        return x
"""


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repo"
    folder.mkdir()
    (folder / "blocks.py").write_text(MODULES)
    (folder / "LICENSE").write_text("MIT License")
    return folder


def test_a_folder_becomes_a_published_corpus_in_one_command(repository, tmp_path, capsys):
    corpus = tmp_path / "corpus"
    against = tmp_path / "nothing"
    against.mkdir()
    command = ["corpus", "all", str(corpus), str(repository), "-j", "1", "--json",
               "--against", f"folder:{against}"]  # fmt: skip
    assert main(command) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["stages"]["run"]["kept"] == 1
    assert said["stages"]["run"]["reasons"] == {"returns its input": 1}
    row = json.loads((corpus / "published" / "corpus.jsonl").read_text())
    assert row["class_name"] == "Block"
    assert row["licence"] == "MIT"
    assert row["family"] == "matmul"


def test_a_stage_before_its_time_is_one_line(tmp_path, capsys):
    assert main(["corpus", "run", str(tmp_path / "corpus")]) == 2
    assert "run 'kernelsmith corpus extract' first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["harvest", "C"], "name at least one source"),
        (["harvest", "C", "nowhere"], "none of the sources could be opened"),
        (["harvest", "C", "--list", "none.txt"], "no file 'none.txt'"),
        (["status", "C"], "holds no corpus"),
        (["import", "C", "nowhere", "--by", "me"], "was not exported by this command"),
        (["extract", "C", "-j", "0"], "--processes is 1 or more"),
    ],
)
def test_bad_requests_are_one_line_and_status_two(tmp_path, capsys, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    assert main(["corpus", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
