"""``kernelsmith bench audit``: what was found before, whatever happened to its file since."""

import json

import pytest

from kernelsmith.cli.main import main

CUDA = 'source = "__global__ void f() {}"\nclass ModelNew:\n    pass\n'
"""Without a GPU nothing is judged, and nothing is waited for."""


@pytest.fixture
def audit(tmp_path, capsys):
    kernels = tmp_path / "kernels"
    kernels.mkdir()
    for number in (1, 2):
        (kernels / f"level_1_problem_{number}.py").write_text(CUDA)

    def run():
        assert main(["bench", "audit", str(kernels), "--out", str(tmp_path / "out"), "--json"]) == 0
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
