"""Files of records: written to last, read whatever happened to them, merged over machines."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from bench_records import DEVICE, a_point, a_record, failed, ratio, won

from kernelsmith.bench.ledger import RECORDS, Ledger, merge, parsed, read, written
from kernelsmith.bench.record import Archive, Beside, Fault, Missing, Rules, WorkloadRatio
from kernelsmith.cli.main import main
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Label, LabelName
from kernelsmith.errors import UsageError

OTHER = replace(DEVICE, name="elsewhere")


@pytest.fixture
def file(tmp_path):
    return tmp_path / RECORDS


def put(path, *values):
    with Ledger(path) as ledger:
        ledger.append(*values)


def test_a_record_comes_back_as_it_was_written():
    workload = WorkloadRatio(workload="big", speedup=ratio(2.0), us=3.5, baseline_us=7.0)
    record = a_record(
        beside=(
            Beside(baseline="eager", device=ratio(2.0), call=ratio(1.5), mean=ratio(1.6),
                   tests=100, workloads=(workload,)),
            Beside(baseline="compile", trouble="ü"),
        ),
        labels=(Label(name=LabelName.NOISY, reason="wide"),), own=0.25,
        archive=Archive(cells=3, coverage=0.01, qd_score=2.5),
        rules=Rules(steps=40, policy="evolve", early_stop=10, preset="paper"),
        winner=won("x", "winners/x.py"), versions=(("python", "3.11"),),
        points=(a_point(0, gain=ratio(1.1), usd=0.1, tokens=7, proposer="m"),),
    )  # fmt: skip
    assert parsed(written(record)) == record


def test_what_is_missing_comes_back_too():
    value = Missing(entry="suite/two", reason="needs einops", level="level 3")
    assert parsed(written(value)) == value


def test_what_was_missing_before_faults_were_written_down_is_still_read():
    value = Missing(entry="suite/two", entrant="rules", reason="it died", fault=Fault.OURS)
    assert parsed(written(value)) == value
    before = written(value).replace(', "fault": "ours"', "")
    assert parsed(before) == replace(value, fault=None)


def test_corrupt_lines_are_reported_by_number_and_nothing_else_is_lost(file):
    put(file, a_record(entry="suite/one"), a_record(entry="suite/two"))
    lines = file.read_text().splitlines()
    odd = ['{"schema": "bench/9"}', lines[1][: len(lines[1]) // 2], "[1]", '{"schema": "bench/1"}']
    file.write_text("\n".join([lines[0], *odd, lines[1], ""]))
    found = read(file)
    assert [record.entry for record in found.records] == ["suite/one", "suite/two"]
    assert [each.line for each in found.corrupt] == [2, 3, 4, 5]
    assert str(found.corrupt[0]) == f"{file}:2: its schema is 'bench/9', not 'bench/1'; skipped"


def test_a_file_made_from_records_is_one_line_that_names_the_records(file, tmp_path):
    put(file, a_record())
    made, alone = tmp_path / "results.json", tmp_path / "alone" / "results.json"
    made.write_text(json.dumps({"schema": "bench-results/1", "overall": [1, 2]}, indent=1))
    alone.parent.mkdir()
    alone.write_text(made.read_text())
    for paths, said in (
        ([made], f"no line of {str(made)!r} is a record .*hand in {str(file)!r}"),
        ([file, made], f"hand in {str(file)!r}"),
        ([alone], "hand in a bench's folder, or its records.jsonl"),
    ):
        with pytest.raises(UsageError, match=said) as error:
            read(*paths)
        assert "\n" not in str(error.value)


def test_a_file_of_another_name_with_one_record_is_read(file, tmp_path):
    put(file, a_record())
    other = tmp_path / "mine.jsonl"
    other.write_text("{torn\n" + file.read_text())
    found = read(other)
    assert (len(found.records), len(found.corrupt)) == (1, 1)


def test_bytes_that_are_no_text_spoil_their_line_only(file):
    put(file, a_record())
    file.write_bytes(b"\xff\xfe\x00\n" + file.read_bytes())
    found = read(file)
    assert len(found.records) == 1
    assert [each.line for each in found.corrupt] == [1]


@pytest.mark.parametrize(
    ("was", "spoiled"),
    [
        ('"usd": 0.5', '"usd": Infinity'),
        ('"usd": 0.5', '"usd": 1e999'),
        ('"usd": 0.5', f'"usd": 1{"0" * 400}'),
        ('"tokens": 100', f'"tokens": 1{"0" * 400}'),
        ('"seconds": 3.0', '"seconds": NaN'),
        ('"usd": null', '"usd": -Infinity'),
    ],
)
def test_a_number_that_is_none_spoils_its_line_only(file, was, spoiled):
    put(file, a_record(entry="suite/one"), a_record(entry="suite/two"))
    first, second = file.read_text().splitlines()
    assert was in first
    file.write_text(f"{first.replace(was, spoiled, 1)}\n{second}\n")
    found = read(file)
    assert [record.entry for record in found.records] == ["suite/two"]
    assert [each.line for each in found.corrupt] == [1]
    assert "no measurement is" in found.corrupt[0].reason


@pytest.mark.parametrize("depth", [500, 200_000])
def test_a_line_that_is_nested_without_end_spoils_nothing_else(file, depth):
    put(file, a_record())
    deep = f'{{"schema": "bench/1", "kind": "record", "entry": {"[" * depth}{"]" * depth}}}'
    file.write_text(f"{'[' * depth}\n{deep}\n{file.read_text()}")
    found = read(file)
    assert len(found.records) == 1
    assert [each.line for each in found.corrupt] == [1, 2]
    assert all(len(each.reason) < 400 for each in found.corrupt)


def test_a_field_of_a_later_version_is_named(file):
    put(file, a_record())
    file.write_text(file.read_text().replace('"kind": "record"', '"kind": "record", "new": 1'))
    assert "has no field new" in read(file).corrupt[0].reason


def test_a_line_torn_by_a_crash_does_not_swallow_the_next(file):
    put(file, a_record(entry="suite/one"))
    with file.open("a") as torn:
        torn.write('{"schema": "bench/1", "kind": "rec')
    put(file, a_record(entry="suite/two"))
    found = read(file)
    assert [record.entry for record in found.records] == ["suite/one", "suite/two"]
    assert [each.line for each in found.corrupt] == [2]


def test_the_last_record_for_a_key_wins(file):
    put(file, failed(), a_record(entry="suite/two"), a_record())
    found = read(file)
    assert [(each.entry, each.passed) for each in found.records] == [
        ("suite/two", True), ("suite/one", True),
    ]  # fmt: skip


def test_seeds_and_entrants_are_kept_apart(file):
    put(file, a_record(), a_record(seed=1), a_record(entrant="compile"))
    assert len(read(file).done) == 3


def test_two_machines_files_merge_and_their_devices_stay_apart(tmp_path):
    here, there, both = tmp_path / "here", tmp_path / "there", tmp_path / "both"
    for folder, device in ((here, DEVICE), (there, OTHER)):
        source = f"# {device.name}"
        path = f"winners/{device.name}.py"
        (folder / "winners").mkdir(parents=True)
        (folder / path).write_text(source)
        put(folder / RECORDS, a_record(device=device, winner=won(source, path)))
    put(there / RECORDS, a_record(entry="suite/two", device=OTHER))
    put(here / RECORDS, Missing(entry="suite/two", entrant="rules", reason="too large"))
    merge([here, there], both)
    found = read(both)
    assert [(each.entry, each.device.name) for each in found.records] == [
        ("suite/one", "nowhere"), ("suite/one", "elsewhere"), ("suite/two", "elsewhere"),
    ]  # fmt: skip
    assert found.missing == ()
    assert found.source_of(found.records[1]) == "# elsewhere"


def test_what_one_file_says_and_the_next_says_otherwise_is_named(tmp_path):
    put(tmp_path / "a" / RECORDS, a_record(task="h1"), a_record(entry="suite/two", task="h"))
    put(tmp_path / "b" / RECORDS, a_record(task="h2"), failed(entry="suite/two", task="h"))
    found = read(tmp_path / "a", tmp_path / "b")
    assert [(each.key.entry, each.is_other_task) for each in found.replaced] == [
        ("suite/one", True), ("suite/two", False),
    ]  # fmt: skip
    assert str(found.replaced[0]) == (
        f"rules on suite/one seed 0, nowhere (null): the record in {tmp_path / 'a' / RECORDS} is "
        f"about another version of the task and gave way to the one in {tmp_path / 'b' / RECORDS}"
    )
    again = tmp_path / "c" / RECORDS
    put(again, a_record(task="h2"))
    assert read(tmp_path / "b", again).replaced == ()  # it says the same


def test_merging_says_how_many_gave_way_and_which(tmp_path, capsys):
    put(tmp_path / "a" / RECORDS, a_record(task="h1"), a_record(entry="suite/two", task="h"))
    put(tmp_path / "b" / RECORDS, failed(entry="suite/two", task="h"), a_record(task="h2"))
    both = tmp_path / "both"
    assert main(["bench", "merge", str(both), str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("2 records, 0 without, 2 gave way to others")
    other, same = said.err.splitlines()
    assert "suite/one" in other  # of another task: named first
    assert "another version of the task" in other
    assert "suite/two" in same


def test_going_on_with_a_bench_replaces_nothing_that_is_worth_a_word(file):
    put(file, a_record(task="h1"), a_record(task="h2"))
    assert read(file).replaced == ()


def test_a_task_that_was_judged_later_is_not_missing_any_more(file):
    put(file, Missing(entry="suite/one", reason="needs einops"),
        Missing(entry="suite/two", reason="needs einops"))  # fmt: skip
    put(file, a_record(entry="suite/one"))
    assert [each.entry for each in read(file).missing] == ["suite/two"]


def test_a_job_that_failed_on_a_new_version_of_its_task_is_missing_beside_the_old_record(file):
    gone = Missing(entry="suite/one", entrant="rules", reason="out of memory", task="new")
    put(file, a_record(task="old"), gone)
    assert [each.reason for each in read(file).missing] == ["out of memory"]
    put(file, a_record(task="new"))
    assert read(file).missing == ()


@pytest.mark.parametrize("path", ["../../outside.py", "/tmp/outside.py", "a/../../b.py", ""])
def test_a_winner_that_lies_elsewhere_is_no_winner(file, path):
    put(file, a_record(winner=won("x", "winners/x.py")))
    file.write_text(file.read_text().replace("winners/x.py", path))
    assert "lies below its records" in read(file).corrupt[0].reason


def test_a_task_is_named_by_a_word_and_not_by_a_path(file):
    put(file, a_record(task="h1"))
    file.write_text(file.read_text().replace('"h1"', '"../../h1"'))
    assert "one word" in read(file).corrupt[0].reason


def test_merging_never_writes_over_results(tmp_path):
    put(tmp_path / RECORDS, a_record())
    with pytest.raises(UsageError, match="exists already"):
        merge([tmp_path], tmp_path)


def test_files_without_a_record_are_not_merged(tmp_path, capsys):
    (tmp_path / RECORDS).write_text("torn\n")
    into = tmp_path / "both"
    assert main(["bench", "merge", str(into), str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert "nothing to merge" in said
    assert f"{RECORDS}:1: not JSON" in said
    assert not into.exists()


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_tables_that_cannot_be_written_are_one_line(file, tmp_path, place, capsys):
    put(file, a_record())
    (tmp_path / "file").write_text("")
    assert main(["bench", "show", str(file), "--out", str(tmp_path / place)]) == 2
    assert f"cannot write {tmp_path / place}" in capsys.readouterr().err


def test_a_winner_that_was_edited_is_not_taken_for_the_one_that_was_judged(tmp_path):
    put(tmp_path / RECORDS, a_record(winner=won("fast", "best.py")))
    (tmp_path / "best.py").write_text("faster")
    found = read(tmp_path)
    with pytest.raises(UsageError, match="was changed after it was judged"):
        found.source_of(found.records[0])


def test_a_winner_that_is_no_text_any_more_is_not_read(tmp_path):
    put(tmp_path / RECORDS, a_record(winner=won("fast", "best.py")))
    (tmp_path / "best.py").write_bytes(b"\xff\xfe")
    found = read(tmp_path)
    with pytest.raises(UsageError, match="was changed after it was judged"):
        found.source_of(found.records[0])


def test_results_that_are_not_there_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"no results at .*records\.jsonl"):
        read(tmp_path)


def test_only_one_bench_writes_a_file(file):
    with Ledger(file):
        code = f"from kernelsmith.bench.ledger import Ledger; from pathlib import Path; Ledger(Path({str(file)!r}))"  # noqa: E501
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "another bench writes" in done.stderr


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        Ledger(tmp_path / "taken" / RECORDS)


def test_a_line_lasts_when_append_returns(file):
    with Ledger(file) as ledger:
        ledger.append(a_record(device=Device(kind="null", name="x")))
        assert len(read(file).records) == 1
        assert os.stat(file).st_size > 0
