"""``kernelsmith bench show``, ``compare``, ``export`` and ``verify`` on records made by hand."""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import pytest

from kernelsmith.bench.crew import Progress
from kernelsmith.bench.ledger import RECORDS, Ledger, read
from kernelsmith.bench.protocol import Ended, Status
from kernelsmith.bench.record import Beside, Key, Record, Winner, WorkloadRatio
from kernelsmith.cli.bench_run import Lines, reported
from kernelsmith.cli.main import main
from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio

HERE, THERE = Device(kind="null", name="here"), Device(kind="null", name="there")


def ratio(value):
    return Ratio(value=value, low=value * 0.99, high=value * 1.01)


def beside(baseline, value, **changes):
    workload = WorkloadRatio(workload="w", speedup=ratio(value), us=1000 / value, baseline_us=1000)
    return Beside(
        baseline=baseline, device=ratio(value), call=ratio(value / 2), tests=6,
        workloads=(workload,), **changes,
    )  # fmt: skip


def records(*, device=HERE, compiled=True):
    """Three tasks: 4 times as fast as eager, 3 times as fast as the compiler."""
    both = (beside("eager", 4.0), *((beside("compile", 3.0),) if compiled else ()))
    return [
        Record(
            entrant="model", entry=f"kernelbench/level1/{number}", suite="kernelbench",
            name=f"{number}_Thing_", backend="null", verdict=Verdict.PASSED, confirmed=True,
            beside=both, device=device,
            winner=Winner(candidate=CandidateId("c0ffee"), path="w.py", sha256="0"),
        )
        for number in range(3)
    ]  # fmt: skip


def written(folder, values):
    folder.mkdir()
    with Ledger(folder / RECORDS) as ledger:
        ledger.append(*values)
    return str(folder)


@pytest.fixture
def results(tmp_path):
    return written(tmp_path / "results", records())


def answered(capsys, *words):
    assert main(["bench", *words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refused(capsys, *words):
    assert main(["bench", *words]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_results_are_shown_by_the_ratio_that_is_asked_for(results, tmp_path, capsys):
    assert answered(capsys, "show", results)["measure"] == {"baseline": "eager", "how": "device"}
    found = answered(capsys, "show", results, "--baseline", "compile", "--out", str(tmp_path / "o"))
    assert next(iter(found["overall"])) == "over compile, device time"
    assert found["records"]["model"][0]["speedup"][0] == 3.0
    assert json.loads((tmp_path / "o" / "results.json").read_text())["measure"] == found["measure"]
    found = answered(capsys, "show", results, "--ratio", "call")
    assert found["records"]["model"][0]["speedup"][0] == 2.0


def test_results_are_compared_by_the_ratio_that_is_asked_for(results, tmp_path, capsys):
    folder = tmp_path / "said"
    words = ("compare", results, results, "--baseline", "compile", "--ratio", "call")
    (found,) = answered(capsys, *words, "--out", str(folder))["contrasts"]
    assert found["measure"] == {"baseline": "compile", "how": "call"}
    assert json.loads((folder / "compare.json").read_text())["contrasts"] == [found]
    assert "over compile, plain calls" in (folder / "compare.md").read_text()


def test_two_folders_of_one_name_are_told_apart(tmp_path, capsys):
    for name, value in (("x", 1.5), ("y", 3.0)):
        (tmp_path / name).mkdir()
        own = [replace(each, beside=(beside("eager", value),)) for each in records()]
        written(tmp_path / name / "builtin", own)
    found = answered(capsys, "compare", str(tmp_path / "x/builtin"), str(tmp_path / "y/builtin"))
    (only,) = found["contrasts"]
    assert (only["first"], only["second"]) == ("model (x/builtin)", "model (y/builtin)")
    (mean,) = (each for each in only["differences"] if each["metric"] == "geometric")
    assert (mean["first"]["value"], mean["second"]["value"]) == pytest.approx((1.5, 3.0))


def test_an_export_stands_beside_the_baseline_that_is_asked_for(results, tmp_path, capsys):
    folder = tmp_path / "exported"
    assert main(["bench", "export", results, str(folder), "--baseline", "compile"]) == 0
    out = capsys.readouterr().out
    (timing,) = (folder / "results/timing/here").iterdir()
    assert timing.stem == "model_level1_baseline_time_torch_compile_inductor_default"
    assert f"run_name=model_level1 level=1 hardware=here baseline={timing.stem}" in out
    samples = json.loads((folder / "runs/model_level1/eval_results.json").read_text())
    assert samples["0"][0]["metadata"]["kernelsmith"]["speedup"][0] == 3.0


def test_a_ratio_that_no_record_has_is_one_line(results, tmp_path, capsys):
    assert "over graph, device time; there are: over eager, device time; over" in refused(
        capsys, "show", results, "--baseline", "graph"
    )
    assert "no record has a ratio over eager, mean of plain calls" in refused(
        capsys, "export", results, str(tmp_path / "x"), "--ratio", "mean"
    )
    assert not (tmp_path / "x").exists()
    assert "no baseline 'jax'" in refused(capsys, "show", results, "--baseline", "jax")
    assert "one baseline at a time here; got eager, compile" in refused(
        capsys, "show", results, "--baseline", "eager,compile"
    )
    bare = written(tmp_path / "bare", records(compiled=False))
    said = refused(capsys, "compare", results, bare, "--baseline", "compile")
    assert f"{bare}: no record has a ratio over compile, device time" in said
    assert "--ratio means nothing here: bench merge takes --json" in refused(
        capsys, "merge", str(tmp_path / "y"), results, bare, "--ratio", "call"
    )


def test_a_file_is_compared_with_one_that_holds_a_second_device(results, tmp_path, capsys):
    merged = written(tmp_path / "merged", records() + records(device=THERE))
    found = answered(capsys, "compare", results, merged)
    assert [each["second"] for each in found["contrasts"]] == ["model on here (null) (merged)"]
    assert found["unpaired"] == ["model on there (null)"]


def test_a_bench_that_time_or_money_ended_is_not_taken_for_a_whole_one(results, capsys):
    args = argparse.Namespace(json=True, full=False)
    found = read(Path(results))
    assert reported(Ended(results=found, stopped=False), Path(results), args) == 0
    assert reported(Ended(results=found, stopped=False, unbegun=2), Path(results), args) == 2
    assert "2 jobs were not begun" in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_no_winner_is_judged_again_where_none_is_asked_for(results, limit, capsys):
    said = refused(capsys, "verify", results, f"--limit={limit}")
    assert f"--limit is at least 1; got {limit}" in said


@pytest.mark.parametrize("verb", [("show",), ("export",), ("verify",), ("merge",), ("compare",)])
def test_tables_handed_in_for_records_are_one_line(results, tmp_path, capsys, verb):
    answered(capsys, "show", results, "--out", results)
    made, records = Path(results, "results.json"), Path(results, RECORDS)
    words = {"export": [str(made), "out"], "merge": [str(tmp_path / "both"), results, str(made)],
             "compare": [results, str(made)]}  # fmt: skip
    line = refused(capsys, *verb, *words.get(verb[0], [str(made)]))
    assert line.startswith(f"kernelsmith: no line of {str(made)!r} is a record")
    assert line.endswith(f"hand in {str(records)!r}")


def test_who_sees_lines_only_hears_once_a_minute_what_is_under_way(capsys):
    status = Status(total=3, before=0)
    status.running[Key("rules", "softmax", 1)] = Progress(told=4, of=40, best=1.5)
    status.running[Key("m1", "softmax", 0)] = Progress(told=40, of=40)
    lines = Lines()
    lines(status)
    assert capsys.readouterr().err == ""
    lines._said_s -= 100
    lines(status)
    lines(status)
    assert capsys.readouterr().err == (
        "[0/3] at rules on softmax seed 1: step 4 of 40, best 1.50x, "
        "m1 on softmax: its 40 steps are done, the winner is judged\n"
    )
