"""KernelBench's layout, read the way that its own analysis reads it."""

import json
import math
import re

import pytest
from bench_records import DEVICE, a_record, failed, ratio, won

from kernelsmith.bench.ledger import Results
from kernelsmith.bench.numbers.metrics import summarise
from kernelsmith.bench.output.export import kernelbench
from kernelsmith.bench.record import Beside, WorkloadRatio
from kernelsmith.errors import UsageError


def timed(value, *, baseline_us=2000.0):
    workload = WorkloadRatio(
        workload="w", speedup=ratio(value), us=baseline_us / value, baseline_us=baseline_us
    )
    return (Beside(baseline="eager", device=ratio(value), tests=6, workloads=(workload,)),)


def a_kernel(number, value, *, level=1, **changes):
    usual = {
        "entry": f"kernelbench/level{level}/{number}", "name": f"{number}_Thing_",
        "suite": "kernelbench", "beside": timed(value), "entrant": "my model",
    }  # fmt: skip
    return a_record(**{**usual, **changes})


def broken(number, **changes):
    usual = {"entry": f"kernelbench/level1/{number}", "name": f"{number}_Thing_",
             "entrant": "my model"}  # fmt: skip
    return failed(**{**usual, **changes})


def results(*records, home=None):
    return Results(records=records, homes=(home,) * len(records))


def as_kernelbench_reads(folder, run):
    """Its analysis in short: sample 0 of each problem that has a baseline."""
    samples = json.loads((folder / "runs" / run.name / "eval_results.json").read_text())
    timing = folder / "results" / "timing" / run.hardware / f"{run.baseline}.json"
    baseline = json.loads(timing.read_text())[f"level{run.level}"]
    by_number = {int(name.split("_")[0]): entry for name, entry in baseline.items()}
    right, speedups = [], []
    for number, entry in samples.items():
        (first,) = [each for each in entry if each["sample_id"] == 0]
        if int(number) in by_number:
            right.append(first["correctness"])
            if first["correctness"]:
                speedups.append(by_number[int(number)]["mean"] / first["runtime"])
    geometric = math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else None
    fast = {p: sum(s > p for s in speedups) / len(right) for p in (1.0, 1.5, 2.0)}
    return sum(right), geometric, fast


def test_its_figures_are_ours(tmp_path):
    records = [a_kernel(1, 3.0), a_kernel(2, 0.5), a_kernel(3, 1.7), broken(4)]
    exported = kernelbench(results(*[r for r in records]), tmp_path)
    (run,) = exported.runs
    right, geometric, fast = as_kernelbench_reads(tmp_path, run)
    ours = summarise(records, system="my model")
    assert right == 3
    assert geometric == pytest.approx(ours["geometric"].value, rel=1e-12)
    assert fast[1.0] == ours["fast_1"].value == 0.5
    assert fast[2.0] == ours["fast_2"].value == 0.25


def test_names_are_those_that_its_scripts_look_for(tmp_path):
    (tmp_path / "w.py").write_text("class ModelNew: ...\n")
    record = a_kernel(23, 2.0, level=2, winner=won("class ModelNew: ...\n", "w.py"))
    exported = kernelbench(results(record, home=tmp_path), tmp_path / "out")
    (run,) = exported.runs
    assert run.name == "my_model_level2"
    folder = tmp_path / "out" / "runs" / run.name
    kernel = folder / "level_2_problem_23_sample_0_kernel.py"
    assert kernel.read_text() == "class ModelNew: ...\n"
    timing = json.loads(
        (tmp_path / "out/results/timing" / run.hardware / f"{run.baseline}.json").read_text()
    )
    assert list(timing["level2"]) == ["23_Thing_.py"]
    assert timing["level2"]["23_Thing_.py"]["mean"] == pytest.approx(2.0)  # milliseconds
    assert f"run_name={run.name} level=2 hardware={DEVICE.name}" in run.command
    assert run.command in exported.said.splitlines()[-1]
    (sample,) = json.loads((folder / "eval_results.json").read_text())["23"]
    assert set(sample) == {"sample_id", "compiled", "correctness", "metadata", "runtime",
                           "runtime_stats"}  # fmt: skip
    assert sample["runtime"] == pytest.approx(1.0)


def test_levels_are_runs_and_seeds_are_samples(tmp_path):
    records = [a_kernel(1, 2.0, seed=5), a_kernel(1, 3.0, seed=7), a_kernel(1, 2.0, level=3)]
    exported = kernelbench(results(*records), tmp_path)
    assert [run.level for run in exported.runs] == [1, 3]
    samples = json.loads((tmp_path / "runs/my_model_level1/eval_results.json").read_text())["1"]
    assert [each["sample_id"] for each in samples] == [0, 1]
    assert [each["metadata"]["kernelsmith"]["seed"] for each in samples] == [5, 7]


def test_a_failure_compiles_or_not_and_is_never_timed(tmp_path):
    kernelbench(results(a_kernel(1, 2.0), broken(2), broken(3, verdict=None)), tmp_path)
    samples = json.loads((tmp_path / "runs/my_model_level1/eval_results.json").read_text())
    assert (samples["2"][0]["compiled"], samples["2"][0]["correctness"]) == (True, False)
    assert samples["3"][0]["compiled"] is False
    assert samples["2"][0]["runtime"] == -1.0
    assert samples["2"][0]["metadata"]["error"] == "off by 3"


def test_a_winner_that_was_not_timed_is_right_and_left_out_of_its_speeds(tmp_path):
    untimed = a_kernel(2, 1.0, beside=(Beside(baseline="eager", trouble="no clock"),))
    (run,) = kernelbench(results(a_kernel(1, 2.0), untimed), tmp_path).runs
    right, geometric, fast = as_kernelbench_reads(tmp_path, run)
    assert (right, geometric, fast[1.0]) == (1, pytest.approx(2.0), 1.0)


def test_what_cannot_be_exported_is_said(tmp_path):
    gone = a_kernel(1, 2.0, winner=won("x", "gone.py"))
    exported = kernelbench(
        results(gone, a_kernel(2, 2.0, name=""), a_record(), home=tmp_path), tmp_path
    )
    assert re.search(r"1 records of other suites", exported.said)
    assert re.search(r"do not name their problem's file", exported.said)
    assert re.search(r"sources are not there any more", exported.said)


def test_other_suites_have_no_such_layout(tmp_path):
    with pytest.raises(UsageError, match="none of these records is of one"):
        kernelbench(results(a_record()), tmp_path)


def test_a_folder_that_cannot_be_written_is_the_users_to_know(tmp_path):
    (tmp_path / "runs").write_text("in the way")
    with pytest.raises(UsageError, match="cannot write"):
        kernelbench(results(a_kernel(1, 2.0)), tmp_path)


def test_other_baselines_go_by_kernelbenchs_names(tmp_path):
    beside = (*timed(2.0), Beside(baseline="compile", device=ratio(1.5), tests=6,
                                  workloads=timed(1.5)[0].workloads))  # fmt: skip
    record = a_kernel(1, 2.0, beside=beside)
    (run,) = kernelbench(results(record), tmp_path, baseline="compile").runs
    assert run.baseline.endswith("baseline_time_torch_compile_inductor_default")
    assert as_kernelbench_reads(tmp_path, run)[1] == pytest.approx(1.5)
