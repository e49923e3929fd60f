"""``optimize`` and ``resume`` as a person or a script meets them, on the null and cpu backends."""

import json
import signal
import subprocess

import pytest
from run_recordings import ROOT, a_recording, a_task, command, expect_one_line, many, run

from kernelsmith.run.canonical import canonical
from kernelsmith.run.journal import read

RIGHT = "y + x  # us: 10"
FASTER = "x + y  # us: 5"
WRONG = "x - y"


def optimize(folder, *sources, more=(), task=None):
    """One run of recorded proposals in ``folder``/run."""
    return run(
        "optimize", task or a_task(folder), "--backend", "null", "--out", folder / "run",
        "--proposer", f"replay:{a_recording(folder, *sources)}", *more,
    )  # fmt: skip


def test_a_run_ends_with_a_card_and_leaves_kernel_journal_and_report(tmp_path):
    done = optimize(tmp_path, RIGHT, WRONG, None, FASTER)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "run"
    for words in (
        "4.00x the speed of eager", "95 % interval", "confirmed", "2 passed, 1 wrong, 1 rejected",
        f"kernel   {folder}/best.py\n", f"journal  {folder}/journal.jsonl\n",
        f"report   {folder}/report.html\n", f"next     kernelsmith show {folder}\n",
    ):  # fmt: skip
        assert words in done.stdout
    names = {path.name for path in folder.iterdir()}
    assert names >= {"best.py", "journal.jsonl", "report.html", "config.toml", "task.py"}
    assert FASTER in (folder / "best.py").read_text()
    assert "4.00x" in (folder / "report.html").read_text()


def test_piped_progress_is_plain_lines_on_stderr(tmp_path):
    done = optimize(tmp_path, RIGHT, WRONG, FASTER)
    lines = done.stderr.splitlines()
    steps = [line for line in lines if line.startswith("step ")]
    assert 1 <= len(steps) <= 3
    assert steps[-1].startswith("step 3/3  best 4.00x [")
    assert "2 passed, 1 wrong" in steps[-1]
    assert "\x1b" not in done.stderr + done.stdout


def test_fast_steps_do_not_flood_the_log(tmp_path):
    done = optimize(tmp_path, *[f"x - y  # {i}" for i in range(300)], more=("--steps", "300"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) < 60


def test_json_is_one_object_on_stdout(tmp_path):
    done = optimize(tmp_path, RIGHT, WRONG, None, more=("--json", "--seed", "5"))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("seconds") >= 0
    speedup = found.pop("speedup")
    assert speedup["low"] <= speedup["value"] <= speedup["high"]
    assert speedup["value"] == pytest.approx(2.0, rel=0.02)
    folder = tmp_path / "run"
    assert len(found.pop("candidate")) == 12
    assert found == {
        "schema": "optimized/1",
        "task": "add",
        "backend": "null",
        "device": "simulated clock (null)",
        "seed": 5,
        "baseline": "eager",
        "confirmed": True,
        "labels": [],
        "steps": 3,
        "verdicts": {"passed": 1, "wrong": 1, "rejected": 1},
        "stop": "steps",
        "tokens": 240,
        "usd": 0.02,
        "folder": str(folder),
        "best": str(folder / "best.py"),
        "journal": str(folder / "journal.jsonl"),
        "report": str(folder / "report.html"),
        "resume": f"kernelsmith resume {folder}",
    }


def test_nothing_passed_is_exit_code_one(tmp_path):
    done = optimize(tmp_path, WRONG, None, more=("--json",))
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["speedup"] is None
    assert found["best"] is None
    assert not (tmp_path / "run" / "best.py").exists()
    assert "no kernel passed" in (tmp_path / "run" / "report.html").read_text()


def test_a_kernel_that_is_not_faster_is_a_finished_run(tmp_path):
    done = optimize(tmp_path, "y + x  # us: 40")
    assert done.returncode == 0
    assert "no faster kernel was found" in done.stdout


def test_a_target_ends_the_run_early(tmp_path):
    sources = [RIGHT, *(f"x - y  # {i}" for i in range(60))]
    done = optimize(tmp_path, *sources, more=("--target", "1.5", "--json", "--steps", "60"))
    found = json.loads(done.stdout)
    assert found["stop"] == "target"
    assert found["steps"] < 60


def test_options_go_before_the_file_and_the_file_before_the_preset(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("seed = 3\nconcurrency = 2\n[search]\nislands = 1\n")
    more = ("--config", config, "--preset", "thorough", "--seed", "9", "--policy", "refine")
    assert optimize(tmp_path, RIGHT, more=more).returncode == 0
    used = read(tmp_path / "run" / "journal.jsonl").config
    assert (used.seed, used.concurrency, used.search.islands) == (9, 2, 1)
    assert used.search.policy == "refine"
    assert used.budget.stale_steps == 128


def test_without_a_place_named_runs_lie_side_by_side(tmp_path):
    recording, task = a_recording(tmp_path, RIGHT), a_task(tmp_path)
    for name in ("add", "add-2"):
        done = run(
            "optimize", task, "--backend", "null", "--proposer", f"replay:{recording}", "--json",
            cwd=tmp_path,
        )  # fmt: skip
        assert json.loads(done.stdout)["folder"] == f"runs/{name}"


def test_a_run_is_not_written_over(tmp_path):
    assert optimize(tmp_path, RIGHT).returncode == 0
    before = (tmp_path / "run" / "journal.jsonl").read_bytes()
    expect_one_line(optimize(tmp_path, RIGHT), 2, "kernelsmith resume ")
    assert (tmp_path / "run" / "journal.jsonl").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "name one task file, or --suite FOLDER"),
        (["nowhere.py"], "no task file 'nowhere.py'"),
        (["nowhere.py", "--suite", "somewhere"], "name one task file, or --suite FOLDER"),
        (["--suite", "nowhere"], "no folder 'nowhere'"),
        (["{task}", "--backend", "abacus"], "no backend 'abacus'"),
        (["{task}", "--proposer", "oracle"], "no proposer 'oracle'"),
        (["{task}", "--proposer", "replay"], "needs a recording"),
        (["{task}", "--proposer", "replay:nowhere"], "cannot read a recording from nowhere"),
        (["{task}", "--proposer", "llm"], "needs at least one model"),
        (["{task}", "--proposer", "rules", "--model", "m"], "--model goes with the proposer llm"),
        (["{task}", "--base-url", "http://localhost:1/v1"], "name it: --model NAME"),
        (["{task}", "--model", "m", "--base-url", "here"], "base_url must be a whole address"),
        (["{task}", "--model", "m", "--model", "m"], "model 'm' is listed twice"),
        (["{task}", "--preset", "swift"], "no preset 'swift'"),
        (["{task}", "--config", "nowhere.toml"], "cannot read nowhere.toml"),
        (["{task}", "--steps", "-1"], "steps are not negative"),
        (["{task}", "--budget-usd", "0"], "usd is above 0"),
        (["{task}", "--concurrency", "0"], "concurrency"),
        (["{task}", "--backend", "cpu"], "is not a KernelBench file"),
    ],
)
def test_a_bad_request_is_one_line_and_leaves_nothing_behind(tmp_path, arguments, words):
    task = a_task(tmp_path)
    done = run("optimize", *(str(task) if a == "{task}" else a for a in arguments), cwd=tmp_path)
    expect_one_line(done, 2, words)
    assert not (tmp_path / "runs").exists()


def test_a_setting_nobody_knows_is_named_with_its_file(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[budget]\nstep = 3\n")
    done = run("optimize", a_task(tmp_path), "--config", config)
    expect_one_line(done, 2, "config.toml: no setting 'budget.step'; did you mean 'steps'?")


def interrupted(folder, *arguments):
    """Start a run, and press Ctrl-C as soon as it shows a step."""
    going = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=folder
    )
    said = []
    for line in going.stderr:
        said.append(line)
        if line.startswith("step "):
            going.send_signal(signal.SIGINT)
            break
    out, rest = going.communicate(timeout=120)
    return going.returncode, out, "".join(said) + rest


def test_ctrl_c_stops_cleanly_and_resume_ends_where_an_unbroken_run_does(tmp_path):
    task, recording = a_task(tmp_path), a_recording(tmp_path, *many(800))
    words = ("optimize", task, "--backend", "null", "--proposer", f"replay:{recording}")
    words += ("--steps", "800")
    code, out, said = interrupted(tmp_path, *words, "--out", "broken")
    assert code == 130, said
    assert "Traceback" not in said
    assert "stopping: what is under way is finished first" in said
    assert "kernelsmith resume broken" in out
    assert "not confirmed" in out or "stopped before any kernel passed" in out
    assert (tmp_path / "broken" / "report.html").exists()
    assert 0 < len(read(tmp_path / "broken" / "journal.jsonl").steps) < 800

    resumed = run("resume", "broken", "--json", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    whole = run(*words, "--out", "whole", "--json", cwd=tmp_path)
    one, other = json.loads(resumed.stdout), json.loads(whole.stdout)
    assert one["steps"] == other["steps"] == 800
    for key in ("candidate", "speedup", "verdicts", "tokens", "confirmed", "stop"):
        assert one[key] == other[key]
    both = (read(tmp_path / name / "journal.jsonl") for name in ("broken", "whole"))
    first, second = (canonical(each) for each in both)
    assert first == second


def test_resume_gives_a_finished_run_more_steps(tmp_path):
    first = optimize(tmp_path, RIGHT, WRONG, FASTER, more=("--steps", "1", "--json"))
    assert json.loads(first.stdout)["steps"] == 1
    done = run("resume", tmp_path / "run", "--steps", "3", "--json")
    found = json.loads(done.stdout)
    assert found["steps"] == 3
    assert found["speedup"]["value"] == pytest.approx(4.0, rel=0.02)
    assert "4.00x" in (tmp_path / "run" / "report.html").read_text()


def test_resuming_a_finished_run_says_the_same_again(tmp_path):
    first = json.loads(optimize(tmp_path, RIGHT, more=("--json",)).stdout)
    again = json.loads(run("resume", tmp_path / "run", "--json").stdout)
    assert {**first, "seconds": 0} == {**again, "seconds": 0}


def test_a_run_is_not_resumed_on_another_device(tmp_path):
    optimize(tmp_path, RIGHT, WRONG, more=("--steps", "1"))
    journal = tmp_path / "run" / "journal.jsonl"
    before = journal.read_text().replace('"backend": "null"', '"backend": "cpu"')
    journal.write_text(before)
    expect_one_line(run("resume", tmp_path / "run", "--steps", "2"), 2, "was judged on")
    assert journal.read_text() == before, "nothing of it changes"


@pytest.mark.parametrize("where", ["nowhere", "."])
def test_resuming_no_run_is_one_line(tmp_path, where):
    expect_one_line(run("resume", where, cwd=tmp_path), 2, "journal.jsonl")


def test_a_suite_survives_a_bad_task_and_ends_with_a_table(tmp_path):
    suite = tmp_path / "suite"
    a_task(suite, name="a.py")
    a_task(suite, "this is no expression", name="b.py")
    a_task(suite, "x + y  # us: 40", name="deep/c.py")
    a_task(suite, name="_helper.py")
    recording = a_recording(tmp_path, WRONG, RIGHT)
    words = ("optimize", "--suite", suite, "--backend", "null", "--out", tmp_path / "runs")
    done = run(*words, "--proposer", f"replay:{recording}")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for said in ("a  ", "2.00x", "b: task 'b' is no null expression", "deep/c", "4.00x"):
        assert said in done.stdout
    assert "_helper" not in done.stdout
    for name in ("a", "deep/c"):
        assert (tmp_path / "runs" / name / "best.py").exists()

    again = run(*words, "--proposer", f"replay:{recording}", "--json")
    found = json.loads(again.stdout)
    assert [task["name"] for task in found["tasks"]] == ["a", "b", "deep/c"]
    assert [task["status"] for task in found["tasks"]] == [0, 2, 0]
    assert found["tasks"][0]["result"]["steps"] == 2


QUICK = """
effort = "quick"
confirm_effort = "quick"
[remeasure]
champions = false
gain = false
"""


def test_one_real_run_on_the_cpu_finds_the_example_kernel(tmp_path):
    good = (ROOT / "examples" / "rms_norm_cpu.py").read_text()
    wrong = good.replace("* scale * weight", "* scale + weight")
    config = tmp_path / "quick.toml"
    config.write_text(QUICK)
    done = run(
        "optimize", ROOT / "tasks" / "rms_norm.py", "--backend", "cpu", "--config", config,
        "--proposer", f"replay:{a_recording(tmp_path, wrong, good)}", "--out", tmp_path / "run",
        "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["verdicts"] == {"passed": 1, "wrong": 1}
    assert found["confirmed"] is True
    assert found["speedup"]["low"] > 0
    assert "(cpu" in found["device"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "llama-8b decode, 128 rows" in page
    assert good.splitlines()[0] in (tmp_path / "run" / "best.py").read_text()
