"""Winners judged again: which hold, which do not, and which nobody can say."""

import asyncio
import json
from dataclasses import replace

import pytest
from bench_parts import NullSuite, a_plan, a_recording, quiet

from kernelsmith.bench.job import task_hash
from kernelsmith.bench.ledger import RECORDS, read
from kernelsmith.bench.protocol import carried_out
from kernelsmith.bench.record import Beside
from kernelsmith.bench.verify import Standing, held, verified
from kernelsmith.domain.device import Device
from kernelsmith.domain.timing import Ratio


@pytest.fixture
def out(tmp_path):
    recording = a_recording(tmp_path / "one.jsonl")
    carried_out(a_plan(recording, limit=2), tmp_path / "out", quiet, suite=NullSuite())
    return tmp_path / "out"


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
    from kernelsmith.bench.final import Exam, Examiner
    from kernelsmith.bench.verify import task_of
    from kernelsmith.domain.candidate import Candidate

    source = results.source_of(record)
    candidate = Candidate(backend="null", source=source)
    examining = Examiner(Exam(backend="null")).examine(task_of(results, record), candidate, None)
    found = held(elsewhere, asyncio.run(examining))
    assert found.standing is Standing.PASSES
    assert found.said == "recorded on another (cuda)"
