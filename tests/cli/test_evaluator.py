"""``--evaluator``: verbs that judge have it done at a server, with the same answers as here."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelsmith.bench.crew import Staff
from kernelsmith.bench.ledger import RECORDS, read
from kernelsmith.bench.protocol import carried_out
from kernelsmith.bench.record import Record
from kernelsmith.cli.bench_elsewhere import staff_for
from kernelsmith.cli.main import main
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.run.config import Budget

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
from bench_parts import NullSuite, a_config, a_plan, a_recording, quiet
from service_parts import served

TESTS = Path(__file__).parents[1]
STOPPED = """
import sys
sys.path[:0] = {paths}
from pathlib import Path
from bench_parts import NullSuite, a_config, a_plan, quiet
from kernelsmith.bench.protocol import carried_out
from kernelsmith.cli.bench_elsewhere import staff_for
config = a_config(effort="quick", confirm_effort="quick")
plan = a_plan({recording!r}, config=config, effort="quick", evaluators=({url!r},), tests=400)
ended = carried_out(plan, Path({out!r}), quiet, suite=NullSuite(), staff=staff_for(plan))
sys.exit(130 if ended.stopped else 0)
"""
QUICK = {"effort": "quick", "confirm_effort": "quick"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with served(tmp_path_factory.mktemp("served"), "--judges", "2") as found:
        with found.client() as client:
            found.up(client)
        yield found


def judged(server):
    """How many evaluations the server has made."""
    with server.client() as client:
        return sum(each["judged"] for each in client.get("/v1/devices").json()["devices"])


@pytest.fixture
def files(tmp_path):
    named = {"task": "x + y  # us: 20", "a": "y + x  # us: 10", "b": "y + x  # us: 5", "bad": "x"}
    for name, text in named.items():
        (tmp_path / name).write_text(text)
    return {name: str(tmp_path / name) for name in named}


def test_a_candidate_is_evaluated_at_a_server(server, files, capsys):
    before = judged(server)
    words = ["--evaluator", server.url, "--effort", "quick", "--json"]
    assert main(["evaluate", files["task"], files["a"], *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["timing"]["workloads"][0]["speedup"]["value"] == pytest.approx(2.0, rel=0.02)
    assert judged(server) == before + 1
    assert main(["evaluate", files["task"], files["bad"], *words]) == 1
    assert json.loads(capsys.readouterr().out)["verdict"] == "wrong"


def test_two_candidates_are_compared_at_a_server(server, files, capsys):
    words = ["--evaluator", server.url, "--effort", "quick", "--json"]
    assert main(["compare", files["task"], files["a"], files["b"], *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["timing"]["workloads"][0]["speedup"]["value"] == pytest.approx(2.0, rel=0.02)
    assert found["timing"]["baseline"].startswith("candidate ")
    assert main(["compare", files["task"], files["bad"], files["b"], *words]) == 1


def test_an_expression_is_evaluated_here_by_the_same_verb(files, capsys):
    words = ["--backend", "null", "--effort", "quick", "--json"]
    assert main(["evaluate", files["task"], files["a"], *words, "--baseline", files["b"]]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["timing"]["workloads"][0]["speedup"]["value"] == pytest.approx(0.5, rel=0.02)


def a_remote_plan(tmp_path, *urls, **changes):
    recording = a_recording(tmp_path / "one.jsonl")
    config = a_config(**QUICK, budget=Budget(steps=4))
    return a_plan(recording, config=config, effort="quick", evaluators=urls, **changes)


def test_a_bench_is_judged_at_a_server_and_says_so(server, tmp_path):
    before = judged(server)
    plan, out = a_remote_plan(tmp_path, server.url, workers=2), tmp_path / "out"
    ended = carried_out(plan, out, quiet, suite=NullSuite(), staff=staff_for(plan))
    assert [each.verdict for each in ended.results.records] == [Verdict.PASSED] * 3
    assert ended.results.records[0].speedup().value == pytest.approx(1.51, rel=0.03)
    assert judged(server) >= before + 3 * 2, "wrong ones and winners, for each task"
    assert ended.results.records[0].judge != "simulated/1"
    configs = [path.read_text() for path in out.glob("runs/**/config.toml")]
    assert len(configs) == 3
    assert all(f'evaluator = "{server.url}"' in text for text in configs)
    assert {path.name for path in (out / "log").iterdir()} == {"worker0.log", "worker1.log"}


def test_more_tests_than_a_server_takes_at_once_are_asked_for_in_parts(server, tmp_path):
    plan = a_remote_plan(tmp_path, server.url, limit=1, tests=70)
    ended = carried_out(plan, tmp_path / "out", quiet, suite=NullSuite(), staff=staff_for(plan))
    (record,) = ended.results.records
    assert (record.verdict, record.beside[0].tests) == (Verdict.PASSED, 70)
    assert record.beside[0].mean.value == pytest.approx(1.51, rel=0.02)


def test_a_bench_that_is_stopped_takes_back_what_it_asked_for(server, tmp_path):
    recording = a_recording(tmp_path / "one.jsonl")
    code = STOPPED.format(
        paths=[str(TESTS / "service"), str(TESTS / "bench")], url=server.url,
        recording=str(recording), out=str(tmp_path / "out"),
    )  # fmt: skip
    bench = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    try:
        with server.client() as client:
            wait_for(lambda: client.get("/v1/health").json()["queued"] >= 6)
            bench.send_signal(signal.SIGINT)
            assert bench.wait(30) == 130
            wait_for(lambda: client.get("/v1/health").json()["queued"] <= 1)
            assert 'finished_total{state="cancelled"}' in client.get("/metrics").text
    finally:
        bench.kill()
        bench.wait()


def wait_for(true):
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_winners_are_judged_again_at_a_server(server, tmp_path, capsys):
    plan, out = a_remote_plan(tmp_path, server.url, limit=1), tmp_path / "out"
    carried_out(plan, out, quiet, suite=NullSuite(), staff=staff_for(plan))
    before = judged(server)
    words = ["--evaluator", server.url, "--effort", "quick", "--json"]
    main(["bench", "verify", str(out), *words])
    (found,) = json.loads(capsys.readouterr().out)["winners"]
    assert found["standing"] in ("holds", "slower")
    assert judged(server) == before + 1


def test_a_bench_outlives_its_server(tmp_path):
    """Killed in the middle and back on the same port, it loses nothing of the bench."""
    with served(tmp_path) as first, first.client() as client:
        first.up(client)
        port = first.url.rpartition(":")[2]
        plan, out = a_remote_plan(tmp_path, first.url, samples=2), tmp_path / "out"
        staff = staff_for(plan)
        ended = []

        def bench():
            ended.append(carried_out(plan, out, quiet, suite=NullSuite(), staff=staff))

        going = threading.Thread(target=bench)
        going.start()
        deadline = time.monotonic() + 60
        while not (out / RECORDS).exists() or '"record"' not in (out / RECORDS).read_text():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
    with served(tmp_path, "--port", port):
        going.join(100)
    assert not going.is_alive()
    records = ended[0].results.records
    assert len({each.key for each in records}) == len(records) == 6
    assert all(isinstance(each, Record) and each.passed for each in records)
    assert [each.entrant for each in read(out).missing if each.entrant] == []


def test_a_worker_that_cannot_reach_its_evaluator_ends_the_bench_in_words(tmp_path):
    plan = a_remote_plan(tmp_path, "elsewhere")
    staff = Staff(modules=(("kernelsmith.cli.bench_worker", "elsewhere", "null"),), gpu=False)
    ended = carried_out(plan, tmp_path / "out", quiet, suite=NullSuite(), staff=staff)
    assert "no evaluator 'elsewhere'" in ended.fatal
    assert ended.results.records == ()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--evaluator", "elsewhere", "--backend", "cpu"], "no evaluator 'elsewhere'"),
        (["--evaluator", "http://a:1", "--evaluator", "http://a:1"], "each evaluator once"),
        (["--evaluator", "http://a:1", "--entrant", "compile"], "compile runs torch.compile"),
        (["--evaluator", "http://a:1", "--baseline", "max-autotune"], "without --evaluator"),
        (["--evaluator", "http://a:1", "--devices", "0,1"], "--devices are this machine's"),
        (["--evaluator", "ray", "--jobs", "2"], "kernelsmith serve --ray"),
    ],
)
def test_what_an_evaluator_cannot_do_for_a_bench_is_said(words, said, tmp_path, capsys):
    usual = ["bench", "builtin", "--out", str(tmp_path / "out")]
    backend = [] if "--backend" in words else ["--backend", "cpu"]
    assert main([*usual, *backend, *words]) == 2
    assert said in capsys.readouterr().err.strip().splitlines()[-1]
    assert not (tmp_path / "out").exists()


def test_a_server_without_the_backend_is_said_before_anything_is_written(server, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["--evaluator", server.url, "--backend", "cpu", "--out", str(out)]
    assert main(["bench", "builtin", *words]) == 2
    assert "has no backend 'cpu'; it has null" in capsys.readouterr().err
    assert not out.exists()


def test_an_audit_takes_no_evaluator(tmp_path, capsys):
    assert main(["bench", "audit", str(tmp_path), "--evaluator", "http://a:1"]) == 2
    assert "on this machine only" in capsys.readouterr().err
