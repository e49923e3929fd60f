"""``show`` and ``diff``: a run read back, and one line for what cannot be read."""

import json
import os
import pty
import subprocess

import pytest
from run_recordings import a_recording, a_task, command, expect_one_line, run

from kernelsmith.domain.codec import loads

HOSTILE = "y + x  # us: 4 \x1b]0;owned\x07[red]not markup[/red]"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    recording = a_recording(
        folder, "x + y  # us: 10", "x - y", None, "y + x  # us: 8", "x +", HOSTILE, "y + x  # us: 9"
    )
    done = run(
        "optimize", a_task(folder), "--backend", "null", "--proposer", f"replay:{recording}",
        "--policy", "refine", "--concurrency", "1", "--out", folder / "run",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_a_run_at_a_glance(ran):
    done = run("show", ran)
    assert done.returncode == 0
    for words in ("add on simulated clock", "5.00x [", "confirmed", "7 of 7: 4 passed", "idea 5"):
        assert words in done.stdout


def test_a_run_as_json(ran):
    found = json.loads(run("show", ran, "--json").stdout)
    assert found["schema"] == "run/1"
    assert (found["steps"], found["of"], found["best_step"]) == (7, 7, 5)
    assert found["lineage"] == [0, 3, 5]
    assert found["confirmed"] is True
    assert found["verdicts"] == {"passed": 4, "wrong": 1, "build_failed": 1, "rejected": 1}


def test_a_run_is_found_by_its_journal_too(ran):
    assert run("show", ran / "journal.jsonl").returncode == 0


def test_a_step_in_full(ran):
    done = run("show", ran, "--step", 3)
    for words in ("step 3 of add", "parent: ", "by big-model: idea 3", "y + x  # us: 8", "PASSED",
                  "beside its parent: 1.2"):  # fmt: skip
        assert words in done.stdout


def test_a_rejected_step_says_why(ran):
    assert "rejected: no code in the reply" in run("show", ran, "--step", 2).stdout


def test_a_step_as_json_is_the_step(ran):
    step = loads(run("show", ran, "--step", 1, "--json").stdout)
    assert step.brief.number == 1
    assert step.candidate.source == "x - y"


@pytest.mark.parametrize("words", [("show", "--step", "5"), ("diff", "parent", "best")])
def test_a_candidate_cannot_steer_the_terminal(ran, words):
    verb, *rest = words
    done = run(verb, ran, *rest)
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert "\x07" not in done.stdout
    assert "[red]not markup[/red]" in done.stdout


def test_the_report_can_be_written_anew(ran):
    (ran / "report.html").unlink()
    done = run("show", ran, "--report")
    assert done.stdout.strip() == str(ran / "report.html")
    assert (ran / "report.html").exists()


def test_a_diff_is_unified_and_names_both(ran):
    done = run("diff", ran, "0", "3")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("--- step 0, ")
    assert lines[1].startswith("+++ step 3, ")
    assert lines[-2:] == ["-x + y  # us: 10", "+y + x  # us: 8"]


def test_candidates_are_found_by_the_start_of_their_ids(ran):
    step = loads(run("show", ran, "--step", 3, "--json").stdout)
    by_id = run("diff", ran, "first", step.candidate.id[:7])
    assert by_id.stdout == run("diff", ran, "0", "3").stdout


def test_the_same_twice_is_no_difference(ran):
    done = run("diff", ran, "best", "5")
    assert done.returncode == 0
    assert done.stdout == ""
    assert "are the same" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere"], "no run 'nowhere'"),
        (["show", "{run}/.."], "runs in it: run"),
        (["show", "{run}", "--step", "7"], "no step 7; this run has 7 steps, counted from 0"),
        (["show", "{run}", "--step", "-1"], "no step -1"),
        (["diff", "nowhere", "0", "1"], "no run 'nowhere'"),
        (["diff", "{run}", "0", "99"], "no step 99"),
        (["diff", "{run}", "0", "2"], "step 2 wrote no candidate: no code in the reply"),
        (["diff", "{run}", "0", "abc"], "no candidate 'abc'"),
        (["diff", "{run}", "0", "zzzzzz"], "no candidate 'zzzzzz'"),
    ],
)
def test_a_bad_request_is_one_line(ran, arguments, words):
    expect_one_line(run(*(each.replace("{run}", str(ran)) for each in arguments)), 2, words)


def test_a_damaged_journal_is_one_line(tmp_path):
    (tmp_path / "journal.jsonl").write_text("what is this\nand this\n")
    expect_one_line(run("show", tmp_path), 2, "journal.jsonl")


def test_a_run_in_which_nothing_passed_has_no_best(tmp_path):
    run(
        "optimize", a_task(tmp_path), "--backend", "null", "--out", tmp_path / "run",
        "--proposer", f"replay:{a_recording(tmp_path, 'x - y')}",
    )  # fmt: skip
    assert "nothing passed" in run("show", tmp_path / "run").stdout
    expect_one_line(run("diff", tmp_path / "run", "first", "best"), 2, "there is no best")


def test_a_terminal_sees_a_panel_that_cleans_up_after_itself(tmp_path):
    words = command(
        "optimize", a_task(tmp_path), "--backend", "null", "--out", tmp_path / "run",
        "--proposer", f"replay:{a_recording(tmp_path, 'x - y', 'y + x  # us: 10')}",
    )  # fmt: skip
    ours, theirs = pty.openpty()
    going = subprocess.Popen(
        words, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"},
    )  # fmt: skip
    os.close(theirs)
    out = going.communicate(timeout=120)[0]
    drawn = b""
    while chunk := _read(ours):
        drawn += chunk
    os.close(ours)
    said = drawn.decode()
    assert going.returncode == 0
    assert "2.00x the speed of eager" in out
    assert "add on null, evolve with replay" in said
    assert "2 of 2" in said
    assert said.count("\x1b[?25l") == said.count("\x1b[?25h") == 1  # the cursor is given back


def _read(fd):
    try:
        return os.read(fd, 65536)
    except OSError:  # the other side is closed
        return b""
