"""Briefs go out once, replies come in once, and a claim runs out."""

import multiprocessing
from pathlib import Path

import pytest

from kernelsmith.errors import UsageError
from kernelsmith.propose.mailbox import LEASE_S, Mailbox


@pytest.fixture
def mailbox(tmp_path):
    box = Mailbox(tmp_path / "agent")
    for number in range(3):
        box.post(number, f"brief {number}")
    return box


def test_a_brief_waits_until_it_is_answered(mailbox):
    assert [order.number for order in mailbox.orders()] == [0, 1, 2]
    mailbox.reply(1, "source")
    assert [order.number for order in mailbox.orders()] == [0, 2]
    assert mailbox.take(1) == "source"
    assert mailbox.take(0) is None


def test_posting_again_leaves_the_first_text(mailbox):
    mailbox.post(0, "another text")
    assert mailbox.orders()[0].text == "brief 0"


def test_two_agents_never_get_the_same_brief(mailbox):
    mine, theirs = mailbox.claim(2, "a"), mailbox.claim(2, "b")
    assert {order.number for order in mine} == {0, 1}
    assert {order.number for order in theirs} == {2}


def test_asking_again_gives_an_agent_its_own_briefs(mailbox):
    assert mailbox.claim(1, "a") == mailbox.claim(1, "a")


def test_a_claim_runs_out(tmp_path):
    clock = [0.0]
    box = Mailbox(tmp_path, now=lambda: clock[0])
    box.post(7, "brief")
    assert box.claim(1, "a")
    assert not box.claim(1, "b")
    clock[0] = LEASE_S + 1
    assert [order.number for order in box.claim(1, "b")] == [7]


def test_a_second_reply_is_refused_and_the_first_one_stands(mailbox):
    mailbox.reply(0, "first")
    with pytest.raises(UsageError, match="answered already"):
        mailbox.reply(0, "second")
    assert mailbox.take(0) == "first"


def test_a_reply_to_nothing_names_what_waits(mailbox):
    with pytest.raises(UsageError, match=r"no brief 9 .* 0, 1, 2"):
        mailbox.reply(9, "source")


@pytest.mark.parametrize("text", ["", "  \n", "x" * (2 << 20)])
def test_what_is_no_reply_is_refused(mailbox, text):
    with pytest.raises(UsageError):
        mailbox.reply(0, text)


@pytest.mark.parametrize(("count", "agent"), [(0, "a"), (1, ""), (1, "a\nb")])
def test_claims_that_make_no_sense_are_refused(mailbox, count, agent):
    with pytest.raises(UsageError):
        mailbox.claim(count, agent)


def _claim_all(folder: Path, name: str) -> list[int]:
    box, found = Mailbox(folder), []
    for _ in range(20):
        found += [order.number for order in box.claim(len(found) + 1, name)]
        found = sorted(set(found))
    return found


def test_processes_that_claim_at_once_share_without_overlap(tmp_path):
    box = Mailbox(tmp_path)
    for number in range(12):
        box.post(number, "brief")
    context = multiprocessing.get_context("spawn")
    with context.Pool(3) as pool:
        shares = pool.starmap(_claim_all, [(tmp_path, name) for name in "abc"])
    claimed = [number for share in shares for number in share]
    assert len(claimed) == len(set(claimed)) == 12
