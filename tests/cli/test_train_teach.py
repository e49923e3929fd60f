"""``kernelsmith train teach``: one command for many steps; Ctrl-C and the same command go on."""

import json
import os
import signal
import threading

import pytest

from kernelsmith.cli.main import main
from kernelsmith.run.journal import read


def a_suite(folder, count=4):
    folder.mkdir()
    for index in range(count):
        (folder / f"e{index}.py").write_text(f"x * 1 + y * {index} + 0 + z * 1")
    return folder


def teach(*words):
    return main(["train", "teach", *(str(word) for word in words), "--backend", "null"])


def test_it_says_what_it_made_and_at_what_pace(tmp_path, capsys):
    suite, out = a_suite(tmp_path / "tasks"), tmp_path / "out"
    assert teach(suite, "--out", out, "--steps", 8) == 0
    said = capsys.readouterr().out
    assert "of 4 tasks in" in said
    assert "a minute" in said
    noted = [json.loads(line) for line in (out / "progress.jsonl").read_text().splitlines()]
    assert said.startswith(f"{sum(each['judged'] for each in noted)} judged steps")
    assert teach(suite, "--out", out, "--steps", 8) == 0
    assert "; 0 new in" in capsys.readouterr().out


def test_an_interrupt_is_heard_and_the_same_command_goes_on(tmp_path, capsys):
    suite, out = a_suite(tmp_path / "tasks", 120), tmp_path / "out"
    asked = threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT))
    asked.start()
    before = signal.getsignal(signal.SIGINT)
    assert teach(suite, "--out", out, "--lanes", 1) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert "the same command goes on" in capsys.readouterr().err
    assert len(list(out.glob("*/journal.jsonl"))) < 120
    assert teach(suite, "--out", out) == 0
    steps = [len(read(path).steps) for path in out.glob("*/journal.jsonl")]
    assert steps == [12] * 120


def test_its_time_may_be_limited(tmp_path, capsys):
    suite, out = a_suite(tmp_path / "tasks", 120), tmp_path / "out"
    assert teach(suite, "--out", out, "--lanes", 1, "--max-seconds", "0.3") == 0
    assert "the same command goes on" in capsys.readouterr().err
    assert len(list(out.glob("*/journal.jsonl"))) < 120


@pytest.mark.parametrize("words", [("nowhere",), ("tasks", "again")])
def test_mistakes_are_one_line_and_the_users(words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_suite(tmp_path / "tasks")
    a_suite(tmp_path / "again")
    assert teach(*words, "--out", tmp_path / "out") == 2
    [said] = capsys.readouterr().err.strip().splitlines()
    assert "nowhere" in said or "two folders hold a task 'e0'" in said
