"""Winners judged again: which hold, which do not, and which nobody can say."""

import asyncio
import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from bench_parts import NullSuite, a_plan, a_recording, quiet

from kernelsmith.bench.final import Exam, Examiner, Finding
from kernelsmith.bench.job import task_hash
from kernelsmith.bench.ledger import RECORDS, read
from kernelsmith.bench.protocol import carried_out
from kernelsmith.bench.record import Beside
from kernelsmith.bench.verify import Standing, held, task_of, verified
from kernelsmith.cli.main import main
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.timing import Ratio


@pytest.fixture
def out(tmp_path):
    recording = a_recording(tmp_path / "one.jsonl")
    carried_out(a_plan(recording, limit=2), tmp_path / "out", quiet, suite=NullSuite())
    return tmp_path / "out"


def examined(results, record):
    """A winner judged again, whatever was recorded."""
    candidate = Candidate(backend="null", source=results.source_of(record))
    examining = Examiner(Exam(backend="null")).examine(task_of(results, record), candidate, None)
    return asyncio.run(examining)


def an_evaluation(results, record):
    return examined(results, record).evaluation


def again(folder):
    results = read(folder)
    return list(verified(results, results.records))


def change(folder, **fields):
    """Rewrite the records with other fields, as a careless hand would."""
    lines = [json.loads(line) for line in (folder / RECORDS).read_text().splitlines()]
    changed = [{**line, **fields} if line["kind"] == "record" else line for line in lines]
    (folder / RECORDS).write_text("".join(json.dumps(line) + "\n" for line in changed))


def test_winners_hold_where_nothing_has_changed(out):
    found = again(out)
    assert [each.standing for each in found] == [Standing.HOLDS, Standing.HOLDS]
    assert found[0].now == found[0].was


def test_a_claim_that_was_too_high_is_seen(out):
    high = {"value": 9.0, "low": 8.9, "high": 9.1}
    change(out, beside=[{"baseline": "eager", "device": high}])
    found = again(out)
    assert [each.standing for each in found] == [Standing.SLOWER, Standing.SLOWER]
    assert found[0].now.value == pytest.approx(1.98, abs=0.02)


def test_a_winner_whose_file_was_changed_is_not_judged(out):
    winner = read(out).records[0].winner
    (out / winner.path).write_text("x + y  # us: 1")
    found = again(out)
    assert found[0].standing is Standing.UNKNOWN
    assert "was changed after it was judged" in found[0].said
    assert found[1].standing is Standing.HOLDS


def test_a_task_whose_file_was_changed_is_not_judged(out):
    record = read(out).records[0]
    path = out / "tasks" / f"{record.task}.json"
    path.write_text(path.read_text().replace("x + y", "x * y"))
    assert "was changed after it was judged" in again(out)[0].said


def test_a_task_that_is_gone_is_named(out):
    (out / "tasks" / f"{read(out).records[0].task}.json").unlink()
    assert "the task is not at" in again(out)[0].said


def test_a_winner_that_fails_now_is_seen(out):
    results = read(out)
    record = results.records[0]
    task = NullSuite(source="x - y  # us: 100")
    entry = next(iter(task.entries()))
    from kernelsmith.domain.codec import dumps

    digest = task_hash(entry.task)
    (out / "tasks" / f"{digest}.json").write_text(dumps(entry.task))
    change(out, task=digest)
    found = again(out)[0]
    assert (found.key, found.standing) == (record.key, Standing.FAILS)
    assert "wrong" in found.said


def test_speed_is_held_against_speed_on_the_same_device_only(out):
    results = read(out)
    record = results.records[0]
    elsewhere = replace(
        record,
        device=Device(kind="cuda", name="another"),
        beside=(Beside(baseline="eager", device=Ratio(value=9.0, low=8.9, high=9.1)),),
    )
    found = held(elsewhere, examined(results, record))
    assert found.standing is Standing.PASSES
    assert found.said == "recorded on another (cuda)"


def beside(**ratios):
    return tuple(
        Beside(baseline=name, device=Ratio(value=value, low=value * 0.99, high=value * 1.01))
        for name, value in ratios.items()
    )


def test_speed_is_held_against_whatever_it_was_recorded_over(out):
    results = read(out)
    record = results.records[0]
    examined = Finding(evaluation=an_evaluation(results, record), beside=beside(compile=1.2))
    said = {was: held(replace(record, beside=beside(compile=was)), examined) for was in (1.2, 1.5)}
    assert {was: each.standing for was, each in said.items()} == {
        1.2: Standing.HOLDS, 1.5: Standing.SLOWER,
    }  # fmt: skip
    assert (said[1.5].baseline, said[1.5].was.value, said[1.5].now.value) == ("compile", 1.5, 1.2)
    both = held(replace(record, beside=beside(compile=9.0, eager=1.9)), Finding(
        evaluation=an_evaluation(results, record), beside=beside(eager=1.9)))  # fmt: skip
    assert (both.baseline, both.standing) == ("eager", Standing.HOLDS)


def test_a_baseline_that_cannot_be_measured_here_is_said(out):
    change(out, beside=[{"baseline": "compile", "device": {"value": 2.0, "low": 1.9, "high": 2.1}}])
    (found, _) = again(out)
    assert (found.standing, found.baseline, found.now) == (Standing.PASSES, "compile", None)
    assert found.said
    assert "recorded on" not in found.said


def verify(folder, *words):
    return main(["bench", "verify", str(folder), *words])


def test_where_all_hold_the_exit_status_says_so_and_each_has_a_line(out, capsys):
    assert verify(out) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:4] for line in lines[:2]] == [
        ["replay:one", "nulls/t0", "#0", "holds"], ["replay:one", "nulls/t1", "#0", "holds"],
    ]  # fmt: skip
    assert lines[2] == "2 holds of 2"


def test_a_claim_that_was_too_high_is_the_kernels_fault(out, capsys):
    change(out, beside=[{"baseline": "eager", "device": {"value": 9.0, "low": 8.9, "high": 9.1}}])
    assert verify(out) == 1
    assert "2 slower of 2" in capsys.readouterr().out


def test_a_winner_that_was_changed_is_no_success(out, capsys):
    (out / read(out).records[0].winner.path).write_text("x + y  # us: 1")
    assert verify(out) == 2
    said = capsys.readouterr().out
    assert "was changed after it was judged" in said
    assert "1 holds, 1 unknown of 2" in said


def test_where_nothing_can_be_judged_nothing_is_verified(out, capsys):
    change(out, backend="nosuch")
    assert verify(out, "--json") == 2
    winners = json.loads(capsys.readouterr().out)["winners"]
    assert [each["standing"] for each in winners] == ["unknown", "unknown"]
    assert not any(each["is_lost"] for each in winners)


@pytest.mark.parametrize("word", ["t1", "nulls/t1", "*/t1", "nulls/*1"])
def test_winners_are_chosen_as_tasks_are(out, word, capsys):
    assert verify(out, "--only", word) == 0
    assert "1 holds of 1" in capsys.readouterr().out


def test_a_word_that_means_no_winner_is_refused(out, capsys):
    assert verify(out, "--only", "t1", "--only", "t9") == 2
    assert "no task of these results is called 't9'" in capsys.readouterr().err


RELU = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x.relu()
def get_inputs():
    return [torch.rand(64, 64)]
"""


@pytest.mark.slow
def test_ctrl_c_ends_a_judgement_and_loses_no_row(tmp_path):
    (tmp_path / "set").mkdir()
    for name in ("a", "b"):
        (tmp_path / "set" / f"{name}.py").write_text(RELU)
    suite, out = f"folder:{tmp_path / 'set'}", tmp_path / "out"
    asked = ["--entrant", "eager", "--effort", "quick", "--backend", "cpu", "--out", str(out)]
    assert main(["bench", suite, *asked]) == 0
    next((out / "winners" / "eager" / "set").glob("a-*")).write_text("")
    command = [sys.executable, "-m", "kernelsmith.cli.main", "bench", "verify", str(out)]
    process = subprocess.Popen(
        [*command, "--effort", "thorough"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    first = process.stdout.readline()  # the row of the one that was changed, before the next ends
    while "set/b" not in process.stderr.readline():
        pass
    process.send_signal(signal.SIGINT)
    rest, errors = process.communicate(timeout=60)
    assert "unknown" in first
    assert rest.strip() == "1 unknown of 2"
    assert errors.strip().splitlines()[-1] == "kernelsmith: stopped"
    assert "Traceback" not in errors
    assert process.returncode == 130
