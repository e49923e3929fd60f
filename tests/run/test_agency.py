"""Agents come and go; the run goes on from where the last one left it."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.errors import UsageError
from kernelsmith.run.agency import ask, begin, orders_of, tell
from kernelsmith.run.config import Budget, ProposerSpec, RunConfig
from kernelsmith.run.feedback import as_json, in_words, status
from kernelsmith.run.journal import read

TASK = Task(name="double", source="x * 2 + 0 * x")
CONFIG = replace(
    RunConfig(),
    backend="null",
    concurrency=3,
    budget=Budget(steps=5),
    proposer=ProposerSpec(kind="agent"),
)


@pytest.fixture
def folder(tmp_path):
    begin(TASK, tmp_path / "run", CONFIG)
    return tmp_path / "run"


def test_a_new_run_has_as_many_briefs_out_as_may_be_in_flight(folder):
    assert [order.number for order in orders_of(folder)] == [0, 1, 2]
    assert "double" in orders_of(folder)[0].text


def test_a_reply_is_judged_and_opens_the_next_brief(folder):
    (answer,) = tell(folder, {0: "x + x"})
    assert answer.step is not None
    assert answer.step.passed
    assert "passed" in in_words(answer)
    assert [order.number for order in orders_of(folder)] == [1, 2, 3]


def test_a_reply_out_of_order_is_judged_at_once_and_told_in_order(folder):
    (early,) = tell(folder, {1: "x + x"})
    assert early.step is None
    assert early.evaluation is not None
    assert early.waiting_for == 0
    (first,) = tell(folder, {0: "x * 3"})
    assert first.step is not None
    assert first.step.placement.outcome is Outcome.FAILED
    assert [step.brief.number for step in read(folder / "journal.jsonl").steps] == [0, 1]


def test_a_run_ends_when_its_budget_is_told(folder):
    for number in range(5):
        tell(folder, {number: f"x + x + {number} - {number}"})
    assert orders_of(folder) == []
    assert len(read(folder / "journal.jsonl").steps) == 5
    assert (folder / "best.py").exists()


def test_two_agents_share_the_briefs(folder):
    mine, theirs = ask(folder, count=2, agent="a"), ask(folder, count=2, agent="b")
    assert {each.number for each in mine}.isdisjoint(each.number for each in theirs)


def test_a_folder_without_a_run_says_how_to_begin_one(tmp_path):
    with pytest.raises(UsageError, match="kernelsmith agent start"):
        ask(tmp_path, count=1, agent="a")


def test_a_bad_number_takes_nothing(folder):
    with pytest.raises(UsageError, match="no brief 17"):
        tell(folder, {17: "x"})
    assert status(folder)["steps"] == 0


def test_status_and_answers_are_json(folder):
    (answer,) = tell(folder, {0: "x + x"})
    assert json.loads(json.dumps(as_json(answer)))["verdict"] == "passed"
    assert json.loads(json.dumps(status(folder)))["steps"] == 1


def kernelsmith(*arguments):
    command = [sys.executable, "-m", "kernelsmith.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command_line_asks_and_tells(folder, tmp_path):
    asked = kernelsmith("agent", "ask", folder, "-n", 2, "--json")
    assert [each["number"] for each in json.loads(asked.stdout)] == [0, 1]
    reply = tmp_path / "reply.txt"
    reply.write_text("x + x")
    told = kernelsmith("agent", "tell", folder, f"0={reply}", "--json")
    assert json.loads(told.stdout)[0]["verdict"] == "passed"
    again = kernelsmith("agent", "tell", folder, f"0={reply}")
    assert again.returncode == 2
    assert "answered already" in again.stderr
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize("said", ["0", "x=y", "0=no-such-file.py"])
def test_the_command_line_refuses_nonsense_in_one_line(folder, said):
    told = kernelsmith("agent", "tell", folder, said)
    assert told.returncode == 2
    assert len(told.stderr.strip().splitlines()) <= 2


def test_an_mcp_client_drives_a_run(folder):
    mcp = pytest.importorskip("mcp", reason="the extra 'agent' is not installed")
    import asyncio

    async def drive():
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "kernelsmith.cli.main", "agent", "mcp", str(folder)],
        )
        async with (
            mcp.stdio_client(server) as (reads, writes),
            mcp.ClientSession(reads, writes) as session,
        ):
            await session.initialize()
            names = {tool.name for tool in (await session.list_tools()).tools}
            asked = await session.call_tool("ask", {"count": 1})
            told = await session.call_tool("tell", {"replies": {"0": "x + x"}})
            bad = await session.call_tool("tell", {"replies": {"0": "x + x"}})
            return names, str(asked), str(told), str(bad)

    names, asked, told, bad = asyncio.run(asyncio.wait_for(drive(), 60))
    assert names == {"ask", "tell", "status"}
    assert "Brief 0" in asked
    assert "passed" in told
    assert "answered already" in bad
