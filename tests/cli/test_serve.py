"""``kernelsmith serve`` and ``--evaluator``: one clear line for whatever is wrong."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from kernelsmith.cli.main import main
from kernelsmith.domain.codec import dumps
from kernelsmith.domain.trajectory import Proposal
from kernelsmith.service.store import lock

sys.path.insert(0, str(Path(__file__).parents[1] / "service"))
from service_parts import served


def said(capsys, *arguments):
    status = main([*arguments])
    out, error = capsys.readouterr()
    assert "Traceback" not in error
    return status, (error or out).strip()


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--host", "0.0.0.0"], "without tokens anybody could run code here"),
        (["--backend", "abacus"], "no backend 'abacus'"),
        (["--judges", "0"], "at least 1"),
        (["--port", "70000"], "0 to 65535"),
        (["--rate", "0"], "bounds are above 0"),
        (["--token-file", "nowhere"], "cannot read the token file"),
        (["--actors", "3"], "go with --ray"),
        (["--host", "256.256.256.256"], "without tokens"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_line(capsys, tmp_path, arguments, line):
    backend = [] if "--backend" in arguments else ["--backend", "null"]
    status, text = said(capsys, "serve", "--store", str(tmp_path), *backend, *arguments)
    assert status == 2
    assert line in text
    assert len(text.splitlines()) == 1


def test_a_port_or_a_store_that_is_taken_is_said(capsys, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        usual = ["serve", "--backend", "null", "--store", str(tmp_path)]
        assert "cannot serve on" in said(capsys, *usual, "--port", port)[1]
    lock(tmp_path)
    assert "another server keeps its queue" in said(capsys, *usual, "--port", "0")[1]


def test_the_core_needs_none_of_it():
    """Neither starting the command line nor judging here loads what serving needs."""
    code = (
        "import sys, kernelsmith.cli.main, kernelsmith.cli.session, kernelsmith.evaluate.evaluator;"
        "sys.exit(bool({'fastapi', 'uvicorn', 'httpx', 'ray', 'starlette'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("where", ["nowhere", "ftp://a", "ray:/x"])
def test_an_evaluator_that_is_none_is_said(capsys, tmp_path, where):
    task = tmp_path / "task.py"
    task.write_text("x + y")
    status, text = said(
        capsys, "optimize", str(task), "--backend", "null", "--evaluator", where,
        "--out", str(tmp_path / "run"), "--proposer", "rules",
    )  # fmt: skip
    assert status == 2
    assert f"no evaluator {where!r}" in text
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_run_is_judged_by_a_server_and_resumed_there(capsys, tmp_path):
    task, recording = tmp_path / "task.py", tmp_path / "proposals.jsonl"
    task.write_text("x + y + 0 + 0  # us: 40")
    sources = ["x + y  # us: 10", "x - y", "y + x  # us: 8", "x +"]
    lines = [dumps(Proposal(source=source, proposer="test")) for source in sources]
    recording.write_text("\n".join(lines) + "\n")
    run = str(tmp_path / "run")
    with served(tmp_path) as server:
        status, _ = said(
            capsys, "optimize", str(task), "--backend", "null", "--evaluator", server.url,
            "--proposer", f"replay:{recording}", "--steps", "2", "--preset", "quick",
            "--out", run, "--json",
        )  # fmt: skip
        assert status == 0
        again, _ = said(capsys, "resume", run, "--steps", "4", "--json")
        assert again == 0
        with server.client() as client:
            (device,) = client.get("/v1/devices").json()["devices"]
            assert device["judged"] >= 4
    journal = Path(run, "journal.jsonl").read_text()
    assert server.url in Path(run, "config.toml").read_text()
    assert "simulated clock" in journal
