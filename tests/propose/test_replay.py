"""Recorded proposals."""

import asyncio

import pytest
from briefs import PROGRAM, a_brief, a_step

from kernelsmith.domain.codec import dumps
from kernelsmith.domain.trajectory import Message, Proposal, Usage
from kernelsmith.errors import UsageError
from kernelsmith.propose.replay import ReplayProposer, write_jsonl
from kernelsmith.testing import ProposerContract

RECORDED = [
    Proposal(source=f"{PROGRAM}# {n}\u2028\n", proposer="m", reply="raw", note="an idea",
             messages=(Message(role="user", content="hello"),),
             usage=Usage(input_tokens=3, output_tokens=4, usd=0.1, seconds=1.5, attempts=2))
    for n in range(3)
] + [Proposal(source=None, rejection="no code", proposer="m")]  # fmt: skip


def test_each_ask_gets_what_was_recorded_for_its_number():
    proposer = ReplayProposer(RECORDED)
    found = [asyncio.run(proposer.propose(a_brief(number=n, seed=9))) for n in (2, 0, 3)]
    assert found == [RECORDED[2], RECORDED[0], RECORDED[3]]
    assert len(proposer) == 4


def test_a_recording_may_have_gaps():
    proposer = ReplayProposer({5: RECORDED[0]})
    assert asyncio.run(proposer.propose(a_brief(number=5))) == RECORDED[0]
    with pytest.raises(UsageError, match="nothing is recorded for ask 0; the recording holds 1"):
        asyncio.run(proposer.propose(a_brief()))


def test_what_was_written_is_read_again(tmp_path):
    path = tmp_path / "proposals.jsonl"
    write_jsonl(path, RECORDED)
    proposer = ReplayProposer.from_jsonl(path)
    found = [asyncio.run(proposer.propose(a_brief(number=n))) for n in range(4)]
    assert found == RECORDED


def test_lines_of_steps_are_read_too(tmp_path):
    step = a_step("m", 1.5)
    path = tmp_path / "steps.jsonl"
    path.write_text(dumps(step) + "\n\n")
    proposer = ReplayProposer.from_jsonl(path)
    assert asyncio.run(proposer.propose(a_brief())) == step.proposal


@pytest.mark.parametrize("line", ["not json", '{"schema": "task/1"}', "[]", '{"a": 1}'])
def test_another_line_is_refused_with_its_number(tmp_path, line):
    path = tmp_path / "bad.jsonl"
    path.write_text(f"{dumps(RECORDED[0])}\n{line}\n")
    with pytest.raises(UsageError, match="line 2"):
        ReplayProposer.from_jsonl(path)


def test_a_missing_file_is_the_users(tmp_path):
    with pytest.raises(UsageError, match="cannot read"):
        ReplayProposer.from_jsonl(tmp_path / "none.jsonl")


class TestReplayProposer(ProposerContract):
    brief = a_brief()

    @pytest.fixture
    def proposer(self):
        return ReplayProposer(RECORDED)
