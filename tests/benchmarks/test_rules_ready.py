"""Capturing beside judging: tasks come as they become ready, and everything ends when told to."""

import contextlib
import json
import os
import pickle
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from benchmarks.gpu_ledger import NOT_NOW, Ledger, gpu_options
from benchmarks.rules import (
    chosen_by,
    lacked_memory,
    options,
    seeds_of,
    without_what_lacked_memory,
)
from benchmarks.rules_capture import Asking, Store, captures, had_no_memory
from benchmarks.rules_process import bounded
from benchmarks.rules_tasks import Chosen
from rules_small_task import TASK

from kernelsmith.propose.rules.families import Begun, Families


def a_way(**changes):
    usual = {
        "backend": "cpu", "options": "default", "at_once": 2, "limit_s": 120.0,
        "until": time.monotonic() + 120.0,
    }  # fmt: skip
    return Asking(**usual | changes)


def a_ledger(folder, *more):
    asked = ["--out", str(folder / "out.json"), "--commit", "test", *more]
    return Ledger("rules", gpu_options("").parse_args(asked), len)


def a_job(key, made, said="passed"):
    def job(limit_s):
        made.append(key)
        return {"said": said, "message": "gone"}

    return key, job


@pytest.fixture
def task(tmp_path):
    path = tmp_path / "doubled.py"
    path.write_text(TASK)
    return Chosen(key="doubled", path=path)


def test_tasks_that_are_named_come_in_the_order_of_their_names(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.py").write_text(TASK)
    parser = options()
    args = parser.parse_args(["--tasks", str(tmp_path), "--only", "c", "a", "c"])
    assert [each.key for each in chosen_by(args, parser)] == ["c", "a"]


def test_the_next_job_is_asked_for_when_the_last_is_on_disk(tmp_path):
    made = []

    def coming():
        for key in ("b", "a"):
            on_disk = json.loads((tmp_path / "out.json").read_text())["records"] if made else {}
            assert sorted(on_disk) == sorted(made)
            yield a_job(key, made)

    ledger = a_ledger(tmp_path)
    assert not ledger.go_through(coming(), limit_s=60.0, keys=["a", "b", "never ready"])
    assert made == ["b", "a"]
    assert ledger.go_through([], limit_s=60.0, keys=["a", "b"])


def test_what_is_judged_anew_keeps_its_record_until_there_is_another(tmp_path):
    made = []
    assert a_ledger(tmp_path).go_through([a_job("a", made), a_job("b", made)], limit_s=60.0)
    again = a_ledger(tmp_path)
    again.anew(["a"])
    again.go_through([a_job("a", made, NOT_NOW), a_job("b", made)], limit_s=60.0)
    assert made == ["a", "b", "a"]
    assert json.loads((tmp_path / "out.json").read_text())["records"]["a"]["session"] == 0
    again.go_through([a_job("a", made)], limit_s=60.0)
    assert "a" in again
    assert again.records["a"]["session"] == 1


def test_who_finds_no_time_left_ends_the_wait_for_more(tmp_path):
    asked, made = [], []

    def coming():
        for key in "abc":
            asked.append(key)
            yield a_job(key, made)

    ledger = a_ledger(tmp_path, "--budget-s", "1")
    assert not ledger.go_through(coming(), limit_s=60.0, at_once=2, keys=list("abc"))
    assert len(asked) <= 2
    assert made == []


def test_nothing_is_judged_where_nothing_is_captured(tmp_path):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "doubled.py").write_text(TASK)
    words = ["--backend", "null", "--tasks", "tasks", "--out", "out.json", "--captured", "c.zip"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.rules", "--phase", "judge", *words],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1
    assert "none of 1 tasks is captured" in done.stderr


def test_a_judge_that_dies_again_and_again_ends_the_wait_for_more(tmp_path):
    made = []
    endless = (a_job(str(number), made, "died") for number in range(1000))
    with pytest.raises(SystemExit, match="died 3 times"):
        a_ledger(tmp_path).go_through(endless, limit_s=60.0, keys=["0"])
    assert len(made) == 3


def test_judges_that_die_together_of_one_event_do_not_end_the_benchmark(tmp_path):
    together, made = threading.Barrier(4), []

    def job_of(number):
        def job(limit_s):
            if number < 4:
                together.wait(timeout=20)
                return {"said": "died", "message": "one event"}
            made.append(number)
            return {"said": "passed"}

        return str(number), job

    jobs = [job_of(number) for number in range(9)]
    ledger = a_ledger(tmp_path)
    assert ledger.go_through(jobs, limit_s=60.0, at_once=4)
    assert sorted(made) == [4, 5, 6, 7, 8]


def test_without_budget_jobs_come_and_none_is_done(tmp_path):
    made = []
    ledger = a_ledger(tmp_path, "--budget-s", "1")
    assert not ledger.go_through(iter([a_job("a", made)]), limit_s=60.0, keys=["a"])
    assert made == []


def test_what_is_there_is_ready_at_once_and_closing_ends_what_is_not(tmp_path, task):
    store = Store(tmp_path / "captured.zip")
    store.put("there", b"families")
    there = Chosen(key="there", path=Path())
    left_out = Chosen(key="out", path=Path(), left_out="draws inside forward")
    begun = time.monotonic()
    coming = captures([task, there, left_out], store, a_way())
    assert [next(coming).key, next(coming).key] == ["there", "out"]
    coming.close()
    assert time.monotonic() - begun < 5
    assert store.keys() == {"there"}


def test_what_there_is_no_time_for_is_not_ready(tmp_path, task):
    way = a_way(until=time.monotonic() + 1.0)
    assert list(captures([task], Store(tmp_path / "captured.zip"), way)) == []


def test_without_evaluations_only_torch_compile_is_asked(tmp_path, task, monkeypatch):
    asked = []
    monkeypatch.setattr("benchmarks.rules_capture._families", lambda *a: not asked.append("rules"))
    monkeypatch.setattr("benchmarks.rules_capture._seeds", lambda *a: not asked.append(a[1]))
    way = a_way(modes=("default", "max-autotune"), seeds=tmp_path, families=False)
    store = Store(tmp_path / "captured.zip")
    assert [each.key for each in captures([task], store, way)] == ["doubled"]
    assert sorted(asked) == ["default", "max-autotune"]


def test_a_process_ends_when_another_thread_says_so(tmp_path, monkeypatch):
    (tmp_path / "sleeping.py").write_text("import time\ntime.sleep(60)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    stop = threading.Event()
    threading.Timer(0.2, stop.set).start()
    begun = time.monotonic()
    assert bounded("sleeping", [], limit_s=60.0, stop=stop).cut_short
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_a_task_is_ready_with_its_families_and_what_torch_compile_made_of_it(tmp_path, task):
    store = Store(tmp_path / "captured.zip")
    way = a_way(modes=("default",), seeds=tmp_path)
    assert [each.key for each in captures([task], store, way)] == ["doubled"]
    assert store.keys() == {"doubled"}
    files = json.loads(Path(seeds_of(task, way)["default"]).read_text())
    assert any(name.startswith("inductor/fxgraph/") for name in files)
    began = time.monotonic()
    assert [each.key for each in captures([task], store, a_way())] == ["doubled"]
    assert time.monotonic() - began < 1


def test_the_compiler_is_never_far_ahead_of_the_judge(tmp_path, monkeypatch):
    began = []
    monkeypatch.setattr("benchmarks.rules_capture._families", lambda *a: not began.append(a[0]))
    tasks = [Chosen(key=str(number), path=Path()) for number in range(20)]
    coming = captures(tasks, Store(tmp_path / "captured.zip"), a_way(at_once=2))
    for judged in range(1, 20):
        next(coming)
        time.sleep(0.01)
        assert len(began) <= judged + 4
    assert next(coming).key in {each.key for each in tasks}
    assert next(coming, None) is None


def test_a_store_that_could_not_be_written_whole_is_as_it_was(tmp_path, monkeypatch):
    store = Store(tmp_path / "captured.zip")
    store.put("one", b"families")
    monkeypatch.setattr("zipfile.ZipFile.writestr", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        store.put("two", b"families")
    assert store.keys() == {"one"}
    assert store.get("one") == b"families"


def test_two_at_a_time_work_side_by_side_and_no_job_is_asked_for_before_somebody_is_free(tmp_path):
    together, asked, done = threading.Barrier(2), [], []

    def meeting(key):
        def job(limit_s):
            together.wait(timeout=20)
            done.append(key)
            return {"said": "passed"}

        return key, job

    def coming():
        for key in "abcd":
            assert len(asked) - len(done) < 2
            asked.append(key)
            yield meeting(key)

    ledger = a_ledger(tmp_path)
    assert ledger.go_through(coming(), limit_s=60.0, at_once=2, keys=list("abcd"))
    assert sorted(done) == list("abcd")


def test_what_found_no_memory_beside_others_leaves_no_record(tmp_path):
    made = []
    ledger = a_ledger(tmp_path)
    assert not ledger.go_through([a_job("a", made, NOT_NOW)], limit_s=60.0)
    assert made == ["a"]
    assert "a" not in ledger


def test_a_capture_that_found_no_memory_says_so():
    begun = Begun(families=Families(reasons=("OutOfMemoryError: CUDA out of memory",)))
    assert had_no_memory("", pickle.dumps(begun))
    assert had_no_memory("cuMemAlloc_v2: CUDA error 2", None)
    assert not had_no_memory("", pickle.dumps(Begun(families=Families(reasons=("no kernel",)))))


@pytest.mark.parametrize(
    ("found", "lacked"),
    [
        ({"best": {"ratio": 2.0}, "steps": [{"message": "CUDA out of memory"}]}, False),
        ({"best": None, "steps": [{"message": "CUDA out of memory"}]}, True),
        ({"steps": [], "message": "the reference fails: CUDA out of memory"}, True),
        (
            {
                "best": {"ratio": 2.0},
                "steps": [],
                "compile": {"default": {"message": "cuMemAlloc"}},
            },
            False,
        ),
        ({"best": {"ratio": 2.0}, "steps": [], "compile": {"default": {"ratio": 1.0}}}, False),
    ],
)
def test_a_task_is_left_to_another_session_only_where_memory_cost_it_something(found, lacked):
    assert lacked_memory({"compile": {}} | found) is lacked


def test_a_column_that_lacked_memory_is_left_to_a_run_without_others():
    found = {
        "best": {"ratio": 2.0}, "steps": [],
        "reference": {"said": "usage", "message": "cuMemAlloc"},
        "compile": {
            "default": {"ratio": 1.5, "how": "plain", "why_plain": "CUDA out of memory"},
            "max-autotune": {"said": "died", "message": "CUDA out of memory"},
        },
    }  # fmt: skip
    kept = without_what_lacked_memory(found)
    assert list(kept["compile"]) == ["default"], "measured in the end"
    assert "reference" not in kept
    assert kept["best"] == {"ratio": 2.0}


STARTED = """
import subprocess, sys, time
from benchmarks.rules_remote import RemoteRules

rules = RemoteRules(effort="glance", backend="null")
asked = {"key": "small", "task": sys.argv[1], "structure": [], "evaluations": 0, "compile": [],
         "reference": False}
assert "said" not in rules.optimise(asked, limit_s=60), "it did not start"
# Its input does not end with us: as if it were in the middle of a task, and did not look.
pipe = rules._process.stdin.fileno()
other = subprocess.Popen(["sleep", "60"], pass_fds=[pipe], stdout=subprocess.DEVNULL)
print(rules.pid, other.pid, flush=True)
time.sleep(60)
"""


def test_no_judge_goes_on_with_its_task_when_the_benchmark_was_killed(tmp_path):
    task = tmp_path / "small.py"
    task.write_text(TASK)
    path = os.pathsep.join(each for each in sys.path if each)
    with subprocess.Popen(
        [sys.executable, "-c", STARTED, str(task)], stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": path},
    ) as benchmark:  # fmt: skip
        assert benchmark.stdout is not None
        worker, other = (os.pidfd_open(int(each)) for each in benchmark.stdout.readline().split())
        benchmark.kill()
    try:
        assert select.select([worker], [], [], 5.0)[0]  # it has ended
    finally:
        for each in (worker, other):
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(each, signal.SIGKILL)
            os.close(each)
