"""``kernelsmith bench audit``: what was found before, whatever happened to its file since."""

import json

import pytest

from kernelsmith.cli.main import main

CUDA = 'source = "__global__ void f() {}"\nclass ModelNew:\n    pass\n'
"""Without a GPU nothing is judged, and nothing is waited for."""


REFERENCE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(16, 16)]
"""
RIGHT = """
import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        return torch.clamp(x, min=0) + torch.clamp(x, min=0)
"""
LOUD = RIGHT.replace("import torch.nn", "torch.backends.cudnn.benchmark = True\nimport torch.nn")
LOUD = LOUD.replace("min=0", "min=1")  # what is wrong takes no time to measure
FAILS = RIGHT.replace("return torch", f"assert False, '{'long ' * 60}the end'; return torch")


@pytest.fixture
def audit(tmp_path, capsys):
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for number in (1, 2):
        (kernels / f"level_1_problem_{number}.py").write_text(CUDA)

    def run():
        # nothing is judged, so the answer is not yes
        assert main(["bench", "audit", str(kernels), "--out", str(tmp_path / "out"), "--json"]) == 2
        said = capsys.readouterr()
        return json.loads(said.out)["counts"], said.err

    return run


def lines(tmp_path):
    return (tmp_path / "out" / "audit.jsonl").read_text().splitlines()


@pytest.mark.parametrize("line", ["[1]", "null", "[" * 200_000, '{"schema": "audit/1"}', '"x"'])
def test_a_line_that_is_no_finding_is_named_and_skipped(audit, tmp_path, line):
    audit()
    path = tmp_path / "out" / "audit.jsonl"
    path.write_text(f"{line}\n{path.read_text()}")
    counts, said = audit()
    assert counts == {"unjudged": 2}
    assert f"{path}:1: " in said
    assert len(lines(tmp_path)) == 3  # and no kernel was judged again


def test_a_claim_that_is_no_number_is_not_read_back(audit, tmp_path):
    audit()
    path = tmp_path / "out" / "audit.jsonl"
    path.write_text(path.read_text().replace('"claim": null', '"claim": Infinity', 1))
    assert "no measurement is Infinity" in audit()[1]
    assert len(lines(tmp_path)) == 3


def test_a_torn_line_does_not_swallow_the_next_finding(audit, tmp_path):
    audit()
    path = tmp_path / "out" / "audit.jsonl"
    path.write_text(path.read_text().rstrip("\n")[:-30])
    assert f"{path}:2: not JSON" in audit()[1]
    assert len(lines(tmp_path)) == 3
    assert audit()[0] == {"unjudged": 2}
    assert len(lines(tmp_path)) == 3  # the torn one was judged again, once


def test_bytes_that_are_no_text_spoil_their_line_only(audit, tmp_path):
    audit()
    path = tmp_path / "out" / "audit.jsonl"
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes())
    assert f"{path}:1: not JSON" in audit()[1]


def test_what_could_not_be_judged_is_tried_again_and_what_was_is_not(tmp_path, capsys):
    kernels, suite, out = tmp_path / "kernels", tmp_path / "suite", tmp_path / "out"
    (suite / "level1").mkdir(parents=True)
    (suite / "level1" / "7_relu.py").write_text(REFERENCE)
    kernels.mkdir()
    for name, source in (("a", LOUD), ("b", FAILS)):
        (kernels / f"level_1_problem_7_{name}.py").write_text(source)
    words = ["bench", "audit", str(kernels), "--out", str(out), "--effort", "quick"]
    assert main(words) == 2
    assert "2 not judged: no reference came with it" in capsys.readouterr().out

    words += ["--suite", f"kernelbench:{suite}"]
    assert main(words) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "1 refused, 1 fails" in said
    assert "run all the same: wrong" in said
    written = lines(tmp_path)
    assert len(written) == 4
    assert "the end" in said

    assert main(words) == 1
    assert "1 refused, 1 fails" in capsys.readouterr().out
    assert lines(tmp_path) == written


def test_an_audit_whose_time_is_over_says_how_many_it_did_not_look_at(audit, tmp_path, capsys):
    words = ["bench", "audit", str(tmp_path / "kernels"), "--out", str(tmp_path / "cut")]
    assert main([*words, "--budget-seconds", "1e-9", "--json"]) == 2
    said = capsys.readouterr()
    body = json.loads(said.out)
    assert (body["kernels"], body["not_looked_at"]) == ([], 2)
    assert "--budget-seconds 1e-09" in body["command"]
    assert "2 were not looked at" in said.err


def test_one_is_not_taken_for_eleven(audit, tmp_path, capsys):
    (tmp_path / "kernels" / "level_1_problem_11.py").write_text(CUDA)
    words = ["bench", "audit", str(tmp_path / "kernels"), "--out", str(tmp_path / "few"), "--json"]
    for word, count in (("1.py", 1), ("problem_1*", 2), ("level_1_problem_2.py", 1)):
        assert main([*words, "--only", word]) == 2
        assert len(json.loads(capsys.readouterr().out)["kernels"]) == count


def test_what_cannot_be_read_is_named_and_the_rest_is_audited(audit, tmp_path, monkeypatch):
    monkeypatch.setattr("kernelsmith.bench.published.folder._SIZE", 1 << 20)
    kernels = tmp_path / "kernels"
    (kernels / "large.py").write_text("#" * (1 << 21))
    (kernels / "set.jsonl").write_text('{"code": "import cupy"}\n{"code":\n[1]\n')
    (kernels / "broken.json").write_text('{\n"code":\n')
    counts, said = audit()
    assert counts == {"unjudged": 3}
    assert "large.py: has 2 MB, and more than 1 MB are not read" in said
    assert "set.jsonl:2: is not JSON" in said
    assert "set.jsonl:3: is not JSON: no object" in said
    assert said.count("broken.json") == 1
    named = json.loads((tmp_path / "out" / "audit.json").read_text())["unread"]
    assert [each["where"] for each in named] == [
        "broken.json", "large.py", "set.jsonl:2", "set.jsonl:3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--only", "*_1.py", "--only", "nothing"], "is called 'nothing'"),
        (["--level", "9"], "is of level '9'; there are 1"),
        (["--out", "file"], "cannot write file"),
        (["--out", "file/below"], "cannot write file/below"),
    ],
)
def test_an_audit_that_cannot_be_done_is_one_line(audit, tmp_path, monkeypatch, capsys, more, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    assert main(["bench", "audit", "kernels", *more]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


def test_a_limit_counts_what_can_be_judged_and_names_what_it_left_out(audit, tmp_path, capsys):
    kernels = tmp_path / "kernels"  # with two of CUDA, and nothing here that runs them
    for name in "abc":
        (kernels / f"{name}.py").write_text(REFERENCE + FAILS)
    (kernels / "aa.py").write_text(FAILS)  # brings no reference
    words = ["bench", "audit", str(kernels), "--effort", "quick", "--json"]
    out = ["--out", str(tmp_path / "few")]
    assert main([*words, "--limit", "2", *out]) == 1
    said = capsys.readouterr()
    body = json.loads(said.out)
    found = {each["id"]: each["opinion"] for each in body["kernels"]}
    assert (found.pop("a.py"), found.pop("b.py")) == ("fails", "fails")
    assert len(found) == 3  # aa.py and two of CUDA
    assert set(found.values()) == {"unjudged"}
    assert body["left_out"] == ["c.py"]
    told = "--limit 2 takes the first, by path and row, that can be judged here; 1 left out: c.py"
    assert told in said.err
    assert main([*words, "--limit", "3", *out]) == 1
    assert json.loads(capsys.readouterr().out)["left_out"] == []
