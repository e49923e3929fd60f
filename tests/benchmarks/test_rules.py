"""The benchmark of the rules: metrics, choice of tasks, and one task all the way."""

import ast
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from benchmarks.report import without_paths
from benchmarks.rules_capture import Store
from benchmarks.rules_figure import curve, per_task, tables
from benchmarks.rules_numbers import (
    ON_A_PROCESSOR,
    best_within,
    is_degenerate,
    metrics,
    summarise,
)
from benchmarks.rules_process import bounded
from benchmarks.rules_tasks import Chosen, in_turns, of_folder, of_kernelbench
from rules_small_task import TASK

from kernelsmith.bench.compiled import MODES, compiling
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.guards.static import inspect_source

ROOT = Path(__file__).parents[2]


def a_ratio(value, spread=0.01):
    return {"ratio": value, "low": value * (1 - spread), "high": value * (1 + spread)}


def a_record(*ratios, compiled=None, **more):
    steps = [{"said": "passed", **a_ratio(r)} if r else {"said": "wrong"} for r in ratios]
    passed = [step for step in steps if "ratio" in step]
    beside = {"default": {"said": "passed", **a_ratio(compiled)}} if compiled else {}
    best = max(passed, key=lambda each: each["ratio"], default=None)
    return {"task": "some", "steps": steps, "compile": beside, "best": best, **more}


def test_what_is_slower_than_eager_or_failed_counts_as_nothing_in_the_average():
    found = metrics([a_ratio(3.0), a_ratio(0.5), None, a_ratio(1.0)])
    assert found["average"] == pytest.approx((3.0 + 1.0) / 4)
    assert found["correctness"] == 0.75
    assert found["fast1"] == 0.25


def test_the_geometric_mean_keeps_eager_where_nothing_passed():
    found = metrics([a_ratio(4.0), a_ratio(0.5), None])
    assert found["geomean"] == pytest.approx(math.exp((math.log(4) + math.log(0.5)) / 3))
    assert found["median"] == 1.0


def test_a_win_inside_its_noise_is_not_sure():
    found = metrics([a_ratio(1.005, spread=0.02), a_ratio(1.5)])
    assert (found["fast1"], found["fast1_sure"]) == (1.0, 0.5)


def test_levels_are_averaged_as_the_paper_does():
    records = {"level1/1": a_record(2.0), "level1/3": a_record(4.0), "level2/1": a_record(8.0)}
    found = summarise(records)["rules"]["all"]
    assert found["level1"]["average"] == pytest.approx(3.0)
    assert found["mean of levels"]["average"] == pytest.approx(5.5)


def test_degenerate_tasks_are_reported_apart():
    odd = a_record(9.0)
    odd["steps"][0]["labels"] = {"degenerate": "constant output"}
    assert is_degenerate(odd)
    found = summarise({"level1/1": odd, "level1/3": a_record(2.0)})
    assert found["rules"]["without degenerate"]["level1"]["average"] == pytest.approx(2.0)
    assert found["degenerate"] == ["level1/1"]


def test_gain_grows_with_evaluations_and_never_shrinks():
    record = a_record(1.2, None, 1.1, 3.0, 2.0, 2.5)
    assert [best_within(record, n)["ratio"] for n in (1, 3, 4, 6)] == [1.2, 1.2, 3.0, 3.0]
    points = summarise({"level1/1": record})["evaluations"]
    assert list(points) == ["1", "5", "6"], "the last count too, whatever it is"
    assert points["5"]["level1"]["average"] == pytest.approx(3.0)


def test_the_compiler_stands_beside_the_rules():
    found = summarise({"level3/2": a_record(2.0, compiled=1.5)})
    assert found["compile default"]["all"]["level3"]["average"] == pytest.approx(1.5)


def test_where_the_compiler_alone_was_asked_nothing_is_said_of_the_rules(tmp_path):
    alone = {"task": "some", "steps": [], "compile": a_record(1.0, compiled=1.5)["compile"]}
    summary = summarise({"level1/2": alone})
    assert "rules" not in summary
    assert summary["compile default"]["all"]["level1"]["geomean"] == pytest.approx(1.5)
    assert "rules, all" not in tables(summary)
    curve(summary, tmp_path / "none.svg")


def test_on_a_processor_no_reference_is_missing_from_the_judge():
    record = a_record(2.0, compiled=1.5)
    record["compile"]["default"] |= {"how": "plain", "why_plain": ON_A_PROCESSOR}
    summary = summarise({"some": record})
    assert (summary["references"]["passed"], summary["references"]["not"]) == (0, {})
    assert "references judged" not in tables(summary)
    record["compile"]["default"]["why_plain"] = "out of memory"
    assert "some: out of memory" in tables(summarise({"some": record}))


def test_plain_calls_have_a_table_only_where_all_were_measured():
    both, one = a_record(2.0, compiled=1.5), a_record(2.0, compiled=1.5)
    both["compile"]["default"]["call"] = a_ratio(1.4)
    assert "call" not in summarise({"level1/1": both, "level1/2": one})["compile default"]
    assert "call" in summarise({"level1/1": both})["compile default"]


def test_a_long_error_keeps_its_end_which_says_what_it_is():
    said = without_paths("File program.py " * 60 + "torch.OutOfMemoryError: 8.0 GiB")
    assert len(said) == 300
    assert said.startswith("File program.py")
    assert said.endswith("torch.OutOfMemoryError: 8.0 GiB")


def test_tables_and_figure_show_all_of_it(tmp_path):
    records = {
        "level1/1": a_record(1.1, 1.5, 1.2, 1.4, 2.0, compiled=1.3),
        "level2/2": a_record(None, 1.5, None, 3.0, 2.0, compiled=1.2),
        "level3/35": a_record(left_out="draws inside forward"),
    }
    summary = summarise(records)
    said = tables(summary)
    assert "mean of levels" in said
    assert "draws inside forward" in per_task(records)
    both = summary["over compile"]["together"]
    assert both["tasks"] == 2
    assert both["low"] <= both["geomean"] <= both["high"]
    assert "rules over torch.compile" in said
    assert "level3/35: draws inside forward" in said
    curve(summary, tmp_path / "gain.svg")
    drawn = (tmp_path / "gain.svg").read_text()
    assert drawn.startswith("<svg")
    assert "torch.compile" in drawn


def a_checkout(folder):
    for level, count in ((1, 12), (2, 6)):
        place = folder / "KernelBench" / f"level{level}"
        place.mkdir(parents=True)
        for number in range(1, count + 1):
            (place / f"{number}_Some.py").write_text(TASK)
    (folder / "KernelBench" / "level2" / "3_Some.py").write_text("import no_such_package\n" + TASK)
    return folder


def test_odd_and_even_tasks_are_kept_apart_and_levels_take_turns(tmp_path):
    checkout = a_checkout(tmp_path)
    odd = of_kernelbench(checkout, [1, 2], parity="odd")
    assert {int(each.key.partition("/")[2]) % 2 for each in odd} == {1}
    assert {each.group for each in odd[:2]} == {"level1", "level2"}
    left_out = [each for each in odd if each.left_out]
    assert [each.left_out for each in left_out] == ["needs no_such_package"]
    sample = of_kernelbench(checkout, [1], sample=True)
    assert sample == of_kernelbench(checkout, [1], parity="odd", sample=True)
    assert {int(each.key.partition("/")[2]) % 2 for each in sample} == {0}


def test_a_package_that_is_missing_here_does_not_change_the_sample(tmp_path):
    checkout = a_checkout(tmp_path)
    here = of_kernelbench(checkout, [1], sample=True)
    path = checkout / "KernelBench" / "level1" / "2_Some.py"
    path.write_text("import no_such_package\n" + TASK)
    there = of_kernelbench(checkout, [1], sample=True)
    assert [each.key for each in there] == [each.key for each in here]
    assert there[0].left_out == "needs no_such_package"


def test_turns_keep_everyone():
    tasks = [Chosen(key=f"level{i % 2 + 1}/{i}", path=Path()) for i in range(9)]
    assert sorted(each.key for each in in_turns(tasks)) == sorted(each.key for each in tasks)
    assert "batched_matmul" in {each.key for each in of_folder(ROOT / "tasks")}


@pytest.mark.parametrize("mode", MODES)
def test_a_compiled_baseline_keeps_the_constructor_and_is_no_candidate(mode):
    task = Task(name="some", source=TASK)
    source = compiling(task, mode)
    ast.parse(source)
    assert "torch.compile" in source
    assert inspect_source(Candidate(backend="cpu", source=source), task) is not None
    function = Task(name="some", source="import torch\ndef twice(x): return x * 2", entry="twice")
    assert "twice = torch.compile(twice" in compiling(function, mode)


def test_a_process_that_takes_too_long_ends_with_all_that_it_started(tmp_path):
    (tmp_path / "endless.py").write_text(
        "import subprocess, sys, pathlib, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True)\n"
        "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
        "time.sleep(60)\n"
    )
    os.environ["PYTHONPATH"] = str(tmp_path)
    try:
        for limit_s in (1.0, 20.0):  # on a busy machine it has not come to work in the first
            done = bounded("endless", [str(tmp_path / "pid")], limit_s=limit_s)
            assert done.cut_short
            if (tmp_path / "pid").is_file():
                break
    finally:
        del os.environ["PYTHONPATH"]
    pid = int((tmp_path / "pid").read_text())
    for _ in range(50):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.1)
    pytest.fail("the child of the child goes on")


def test_what_was_captured_by_other_rules_is_found_anew(tmp_path):
    store = Store(tmp_path / "captured.zip")
    store.put("level1/1", b"one")
    assert store.keys() == {"level1/1"}
    assert store.get("level1/1") == b"one"
    other = Store(tmp_path / "captured.zip")
    other._version = "other"
    assert other.keys() == set()


@pytest.mark.slow
def test_one_task_all_the_way_and_a_second_run_has_nothing_left(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "doubled.py").write_text(TASK)
    command = [
        sys.executable, "-m", "benchmarks.rules", "--backend", "cpu", "--tasks",
        str(tmp_path / "tasks"), "--evaluations", "2", "--again", "3",
        "--captured", str(tmp_path / "c.zip"),
        "--out", str(tmp_path / "rules.json"), "--commit", "test", "--effort", "quick",
    ]  # fmt: skip
    for _ in range(2):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "rules.json").read_text())
    record = found["records"]["doubled"]
    assert record["said"] == "passed"
    assert len(record["steps"]) == (2 if record["best"]["ratio"] > 1 else 3)
    assert record["steps"][0]["spent"]["time"] > 0
    assert record["best"]["spent"]["time"] > 0
    assert found["sessions"][0]["waited_s"] > 0
    assert record["compile"]["default"]["how"] == "plain"
    assert len(found["sessions"]) == 2
    assert found["device"]["versions"]["torch"]
    assert "source" not in json.dumps(record)
    assert (tmp_path / "rules.svg").is_file()
    again = [*command, "--evaluations", "20", "--stale", "2", "--compile", "none", "--growth",
             "--fresh"]  # fmt: skip
    done = subprocess.run(again, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "why tasks ended: {'stale': 1}" in done.stdout
    found = json.loads((tmp_path / "rules.json").read_text())
    record = found["records"]["doubled"]
    assert len(record["steps"]) < 20
    assert record["again"]["1"]["said"] == "passed"
    assert found["summary"]["judged once more"]["1"]["tasks"]["tasks"] == 1
