"""The queue on disk: one answer per request, keys that hold, and what a full disk does."""

import asyncio
import resource
import threading

import pytest
from service_parts import OTHER, a_line, a_request

from kernelsmith.errors import UsageError
from kernelsmith.service.store import KeyTaken, Store, lock
from kernelsmith.service.wire import State
from kernelsmith.service.writer import StoreUnavailable, Writer


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "queue.sqlite")
    yield store
    store.close()


def put(store, *requests, client="ann", contents=None):
    taken = store.submit(client, requests, now=1.0, contents=contents or [[] for _ in requests])
    return taken[0] if len(taken) == 1 else taken


def test_a_request_comes_out_as_it_went_in(store):
    request = a_request(key="k", device="d", priority=3)
    taken = put(store, request)
    order = store.start(taken.entry.seq)
    assert (order.task, order.candidate, order.settings) == (
        request.task, request.candidate, request.settings,
    )  # fmt: skip
    assert (order.attempt, order.subject) == (1, request.subject)
    assert (taken.entry.priority, taken.entry.device) == (3, "d")


def test_the_same_key_is_the_same_request(store):
    first, again = (put(store, a_request(key="k")) for _ in range(2))
    assert again.ticket.id == first.ticket.id
    assert again.entry is None


def test_the_same_key_of_another_client_is_another_request(store):
    first, other = put(store, a_request(key="k")), put(store, a_request(key="k"), client="bob")
    assert first.ticket.id != other.ticket.id
    assert store.ticket("bob", first.ticket.id) is None


def test_a_key_cannot_be_used_for_something_else(store):
    put(store, a_request(key="k"))
    with pytest.raises(KeyTaken, match="'k'"):
        put(store, a_request("y + x", key="k"))


def test_only_the_attempt_that_runs_may_answer(store):
    seq = put(store, a_request()).entry.seq
    first = store.start(seq)
    assert store.give_back(seq, first.attempt, fault=True) == 1
    second = store.start(seq)
    answer = dict(now=2.0, line=a_line())
    assert not store.finish(seq, first.attempt, State.DONE, **answer)
    assert store.finish(seq, second.attempt, State.DONE, **answer)
    assert not store.finish(seq, second.attempt, State.DONE, **answer)
    assert store.ticket("ann", second.id).attempts == 2


def test_a_request_that_was_cancelled_is_not_handed_out_and_not_answered(store):
    waiting, running = put(store, a_request(), a_request("y + x"))
    order = store.start(running.entry.seq)
    for taken in (waiting, running):
        assert store.cancel("ann", taken.ticket.id, now=2.0)[0].state is State.CANCELLED
    assert store.start(waiting.entry.seq) is None
    assert not store.finish(order.seq, order.attempt, State.DONE, now=3.0, line=a_line())
    assert store.give_back(order.seq, order.attempt, fault=True) is None


def test_somebody_else_can_neither_see_nor_cancel_it(store):
    taken = put(store, a_request())
    assert store.cancel("bob", taken.ticket.id, now=2.0) == (None, False)
    assert store.ticket("ann", taken.ticket.id).state is State.QUEUED


def test_what_was_running_waits_again_after_a_restart(tmp_path):
    store = Store(tmp_path / "queue.sqlite")
    taken = [put(store, a_request(f"x + y # {n}")) for n in range(3)]
    store.start(taken[1].entry.seq)
    store.close()
    again = Store(tmp_path / "queue.sqlite")
    assert again.recover() == 1
    assert [entry.seq for entry, _, _ in again.waiting()] == [each.entry.seq for each in taken]
    assert again.start(taken[1].entry.seq).attempt == 2
    again.close()


def test_the_cache_answers_at_once(store):
    store.remember("content", a_line(), now=1.0)
    taken = put(store, a_request(), contents=[["other", "content"]])
    assert taken.ticket.cached
    assert taken.ticket.evaluation.verdict == "passed"
    assert put(store, a_request(cache=False), contents=[["content"]]).ticket.state is State.QUEUED


def test_a_quarantined_candidate_stays_out_until_it_is_released(store):
    taken = put(store, a_request("boom"))
    store.give_up(taken.entry.seq, State.QUARANTINED, message="no worker survived it", now=2.0)
    again = put(store, a_request("boom"))
    assert (again.ticket.state, again.entry) == (State.QUARANTINED, None)
    assert "survived" in again.ticket.message
    (listed,) = store.quarantined()
    assert store.release(listed["candidate"]) == 1
    assert put(store, a_request("boom")).ticket.state is State.QUEUED


def test_a_task_is_stored_once_and_goes_with_its_last_request(store):
    put(store, *(a_request(f"x + y # {n}") for n in range(50)), a_request(task=OTHER))
    count = "SELECT count(*) FROM texts"
    assert store._db.execute(count).fetchone() == (3,)  # two tasks, one way of judging
    for entry, _, _ in list(store.waiting()):
        order = store.start(entry.seq)
        store.finish(order.seq, order.attempt, State.DONE, now=5.0, line=a_line())
    assert store.prune(before=10.0) == 51
    assert store._db.execute(count).fetchone() == (0,)


def test_two_servers_do_not_share_a_folder(tmp_path):
    lock(tmp_path)
    with pytest.raises(UsageError, match="another server"):
        lock(tmp_path)


def test_a_file_of_another_form_is_refused(tmp_path):
    (tmp_path / "queue.sqlite").write_text("not a database, but long enough to be looked at" * 50)
    with pytest.raises(UsageError, match="cannot keep a queue"):
        Store(tmp_path / "queue.sqlite")


def test_a_full_disk_takes_nothing_and_loses_nothing(tmp_path):
    async def go():
        writer = Writer(Store(tmp_path / "queue.sqlite", most_bytes=200_000))
        kept = []

        async def fill():
            for number in range(1000):
                request = a_request(f"x + y # {number} {'.' * 2000}")
                taken = await writer.do(lambda store, r=request: put(store, r))
                kept.append(taken.ticket.id)

        with pytest.raises(StoreUnavailable, match="the disk is full"):
            await fill()
        assert kept
        found = [await writer.do(lambda store, id=id: store.ticket("ann", id)) for id in kept]
        assert all(each.state is State.QUEUED for each in found)
        assert len(await writer.do(lambda store: list(store.waiting()))) == len(kept)
        writer.close()

    asyncio.run(go())


def test_a_write_that_the_system_refuses_is_undone_and_works_later(tmp_path):
    """The same by the kernel: no file of this process may grow."""

    async def go():
        writer = Writer(Store(tmp_path / "queue.sqlite"))
        first = await writer.do(lambda store: put(store, a_request()))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
        try:
            with pytest.raises(StoreUnavailable):
                await writer.do(lambda store: put(store, a_request("y + x")))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        await writer.do(lambda store: put(store, a_request("y + x + 0")))
        waiting = await writer.do(lambda store: [entry for entry, _, _ in store.waiting()])
        assert len(waiting) == 2
        assert waiting[0] == first.entry
        writer.close()

    asyncio.run(go())


def test_many_operations_at_a_time_become_few_transactions(tmp_path):
    class Counted(Store):
        commits = 0

        def commit(self):
            super().commit()
            Counted.commits += 1

    async def go():
        writer, held = Writer(Counted(tmp_path / "queue.sqlite")), threading.Event()
        first = asyncio.create_task(writer.do(lambda _: held.wait(10)))
        await asyncio.sleep(0.05)
        rest = [
            asyncio.create_task(writer.do(lambda s, n=n: put(s, a_request(f"x + y # {n}"))))
            for n in range(100)
        ]
        await asyncio.sleep(0.05)
        held.set()
        await asyncio.gather(first, *rest)
        writer.close()

    asyncio.run(go())
    assert Counted.commits <= 3


def test_one_that_is_refused_does_not_take_others_along(tmp_path):
    async def go():
        writer = Writer(Store(tmp_path / "queue.sqlite"))
        await writer.do(lambda store: put(store, a_request(key="k")))
        bad = writer.do(lambda store: put(store, a_request("y + x"), a_request("z", key="k")))
        good = writer.do(lambda store: put(store, a_request("x + y + 0")))
        refused, taken = await asyncio.gather(bad, good, return_exceptions=True)
        assert isinstance(refused, KeyTaken)
        waiting = await writer.do(lambda store: [entry.seq for entry, _, _ in store.waiting()])
        assert len(waiting) == 2, "all of a batch or none"
        assert taken.entry.seq in waiting
        writer.close()

    asyncio.run(go())
