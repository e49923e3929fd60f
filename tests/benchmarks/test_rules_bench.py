"""One run of the rules' benchmark gives a bench's tables, too."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks.rules_bench import joined, records_of
from benchmarks.rules_numbers import references

from kernelsmith.bench.ledger import read
from kernelsmith.bench.record import Missing, Record
from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task

ROOT = Path(__file__).parents[2]
DEVICE = {
    "kind": "cuda", "name": "some GPU", "cores": None, "versions": {"torch": "2"}, "sandbox": "all",
}  # fmt: skip
KEYS = ("level1/1", "level1/2", "level1/3", "level1/4")


def a_ratio(value):
    return {"said": "passed", "ratio": value, "low": value * 0.99, "high": value * 1.01}


def a_step(value):
    return {"seconds": 1.0, **(a_ratio(value) if value else {"said": "wrong", "message": "off"})}


def a_record(*ratios, **more):
    best = max((each for each in ratios if each), default=None)
    number = ratios.index(best) if best else None
    said = {"said": "none passed", "best": None}
    if best:
        said = {"said": "passed", "best": a_ratio(best) | {"number": number, "confirmed": True}}
    return {"task": "1_Some", "steps": list(map(a_step, ratios)), "compile": {}} | said | more


def converted(records):
    entries = {
        key: Entry(id=f"kernelbench/{key}", level="level 1", task=Task(name="1_Some", source="x"))
        for key in KEYS[:3]
    }
    entries[KEYS[3]] = Absent(id=f"kernelbench/{KEYS[3]}", reason="draws numbers", level="level 1")
    found = list(records_of({"device": DEVICE, "records": records}, entries))
    made = {(e.entrant, e.entry.rpartition("/")[2]): e for e in found if isinstance(e, Record)}
    return made, {(e.entrant, e.entry.rpartition("/")[2]): e.reason for e in found
                  if isinstance(e, Missing)}  # fmt: skip


def test_rules_compilers_and_references_are_entrants_of_one_table():
    column = {"how": "entrant", "message": "", **a_ratio(1.5), "pairs": 3}
    made, missing = converted(
        {"level1/1": a_record(1.2, None, 2.0, compile={"default": column}, reference=a_ratio(1.0))}
    )
    assert {entrant for entrant, _ in made} == {"rules", "compile", "eager"}
    rules = made["rules", "1"]
    assert rules.speedup().value == 2.0
    assert (rules.best_step, rules.confirmed, rules.steps) == (2, True, 3)
    assert [each and each.value for each in rules.best_by_step()] == [1.2, 1.2, 2.0]
    assert rules.points[1].verdict is Verdict.WRONG
    assert made["compile", "1"].over().tests == 3
    assert missing["", "2"] == "not measured yet"
    assert missing["", "4"] == "draws numbers"


def test_a_compiler_that_was_a_baseline_only_has_no_verdict():
    turned = {"how": "judge", "message": "", **a_ratio(1.5)}
    plain = {"how": "plain", "why_plain": "no sandbox", **a_ratio(1.5)}
    made, missing = converted(
        {"level1/1": a_record(1.2, compile={"default": turned, "max-autotune": plain})}
    )
    assert set(made) == {("rules", "1")}
    assert "nobody looked" in missing["compile", "1"]
    assert "no sandbox" in missing["max-autotune", "1"]


def test_what_other_files_have_of_the_same_tasks_is_joined_and_replaces_nothing():
    column = {"how": "entrant", "message": "", **a_ratio(1.5), "pairs": 3}
    records = {
        "level1/1": a_record(1.2, compile={"default": column}, reference=a_ratio(1.01)),
        "level1/2": a_record(1.1, compile={"default": column}),
    }
    other = {"default": column | a_ratio(9.0), "max-autotune": column | a_ratio(1.7)}
    alone = {"task": "1_Some", **a_ratio(0.99), "pairs": [0.98, 1.0], "labels": {"robust": ""}}
    autotune = {"level1/1": a_record(compile=other), "level1/3": a_record(compile=other)}
    files = [
        {"benchmark": "autotune", "device": DEVICE, "records": autotune},
        {"benchmark": "references", "device": DEVICE,
         "records": {"level1/1": alone, "level1/2": alone}},
    ]  # fmt: skip
    body = joined({"device": DEVICE, "records": records}, files)
    made, missing = converted(body["records"])
    assert made["compile", "1"].speedup().value == 1.5
    assert made["max-autotune", "1"].speedup().value == 1.7
    assert made["eager", "1"].speedup().value == 1.01
    assert made["eager", "2"].speedup().value == 0.99
    assert made["eager", "2"].over().tests == 2
    assert missing["", "3"] == "not measured yet"
    assert "max-autotune" not in records["level1/1"]["compile"]


def test_files_of_another_machine_are_not_joined():
    newer = DEVICE | {"versions": {"torch": "3", "kernel": "6"}}
    with pytest.raises(ValueError, match="is of some GPU, torch 3, not of some GPU, torch 2"):
        joined({"device": DEVICE, "records": {}},
               [{"benchmark": "autotune", "device": newer, "records": {}}])  # fmt: skip


def test_what_is_wrong_is_a_record_without_a_ratio_and_what_was_lost_is_missing():
    wrong = {"how": "entrant", "said": "wrong", "message": "2e-3 off"}
    lost = {"said": "no answer", "message": "after 400 s", "steps": [], "compile": {}}
    made, missing = converted(
        {"level1/1": a_record(None, compile={"default": wrong}), "level1/2": lost}
    )
    assert made["compile", "1"].verdict is Verdict.WRONG
    assert made["compile", "1"].beside == ()
    assert made["rules", "1"].verdict is Verdict.WRONG
    assert missing["rules", "2"] == "no answer: after 400 s"


def test_references_are_counted_by_their_own_column_or_as_older_records_had_it():
    found = references(
        {
            "level1/1": a_record(2.0, reference=a_ratio(1.001)),
            "level1/2": a_record(2.0, reference=a_ratio(1.2)),
            "level1/3": a_record(2.0, reference={"said": "wrong", "message": "off"}),
            "level1/5": a_record(2.0, compile={"default": {"how": "judge", "message": "",
                                                           **a_ratio(1.3)}}),
        }
    )  # fmt: skip
    assert (found["passed"], found["timed"], found["interval contains 1"]) == (3, 2, 1)
    assert found["not"] == {"level1/3": "off"}


def test_the_committed_results_become_a_folder_that_bench_reads_and_never_twice(tmp_path):
    checkout = tmp_path / "KernelBench" / "level1"
    checkout.mkdir(parents=True)
    task = (ROOT / "tasks" / "softmax.py").read_text()
    (checkout / "1_Square_matrix_multiplication_.py").write_text(task)
    command = [
        sys.executable, "-m", "benchmarks.rules_bench", "benchmarks/results/rules-h200.json",
        "--suite", f"kernelbench:{tmp_path}", "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    record = next(each for each in read(tmp_path / "out").records if each.entrant == "rules")
    assert record.speedup().value > 3
    assert (tmp_path / "out" / "report.html").is_file()
    assert json.loads((tmp_path / "out" / "results.json").read_text())
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "name a new folder" in done.stderr
