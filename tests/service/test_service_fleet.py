"""The fleet: dead workers replaced, poison quarantined, sick devices taken out; one answer each."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from dataclasses import replace

import pytest
from service_parts import (
    DEVICE,
    HASTY,
    OTHER,
    POISON,
    TASK,
    Scripted,
    a_fleet,
    a_mortal_request,
    a_request,
    asked,
    mortal,
)

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import BackendUnavailable
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.service.limits import Limits, TooMuch
from kernelsmith.service.process import Post, WorkerDied, WorkerProcess
from kernelsmith.service.queue import Rules
from kernelsmith.service.station import Job
from kernelsmith.service.wire import State
from kernelsmith.testing import QUICK


def dying(times):
    """Workers that die of a source so often."""
    left = Counter(times)

    def script(job):
        left[job.candidate.source] -= 1
        return "die" if left[job.candidate.source] >= 0 else "judge"

    return lambda post: Scripted(script)


def test_a_real_worker_judges_and_says_where(tmp_path):
    async def go():
        async with a_fleet(tmp_path) as (queue, fleet, _):
            good, bad = await asked(queue, a_request(), a_request("x - y"))
            assert good.evaluation.verdict is Verdict.PASSED
            assert bad.evaluation.verdict is Verdict.WRONG
            (status,) = fleet.statuses()
            assert (status.state, status.device, status.judged) == ("up", DEVICE, 2)

    asyncio.run(go())


def test_a_real_poison_candidate_is_quarantined_and_others_are_judged(tmp_path):
    async def go():
        rules, installed = Rules(faults=2), mortal(tmp_path)
        async with a_fleet(tmp_path, rules=rules, installed=installed) as (queue, _, metrics):
            poison, good = a_mortal_request(POISON), a_mortal_request("y + x")
            tickets = await asked(queue, poison, good)
            assert [each.state for each in tickets] == [State.QUARANTINED, State.DONE]
            assert tickets[0].attempts == 2
            assert "no worker survived it in 2 attempts" in tickets[0].message
            (again,) = await asked(queue, poison)
            assert (again.state, again.attempts) == (State.QUARANTINED, 0)
            assert metrics.value("worker_starts_total") >= 3

    asyncio.run(go())


def test_bad_expressions_are_verdicts_and_no_worker_dies_of_them(tmp_path):
    async def go():
        async with a_fleet(tmp_path) as (queue, _, metrics):
            bad = ("-" * 5000 + "x", "x" + "**x" * 3000, "9**9**9**9", "maximum(x)", "1 / 0")
            tickets = await asked(queue, *map(a_request, bad))
            found = [each.evaluation.verdict for each in tickets]
            assert found == [Verdict.BUILD_FAILED] * 2 + [Verdict.CRASHED] * 3
            assert metrics.value("worker_starts_total") == 1

    asyncio.run(go())


def test_a_request_whose_worker_died_is_judged_again_and_answered_once(tmp_path):
    async def go():
        hire = dying({"x + y": 2})
        async with a_fleet(tmp_path, hire=hire, posts=2) as (queue, _, metrics):
            (ticket,) = await asked(queue, a_request())
            assert (ticket.state, ticket.attempts) == (State.DONE, 3)
            assert metrics.value("finished_total", state="done") == 1
            assert metrics.value("faults_total", why="died") == 2

    asyncio.run(go())


def test_a_device_where_everything_fails_is_taken_out_and_its_victims_are_forgiven(tmp_path):
    async def go():
        broken = asyncio.Event()

        def hire(post):
            return Scripted(lambda job: "die" if post.number == 0 and not broken.is_set() else "ok")

        requests = [a_request(f"x + y # {n}") for n in range(40)]
        async with a_fleet(tmp_path, hire=hire, posts=2, rules=Rules(faults=4)) as parts:
            queue, fleet, _ = parts
            tickets = await asked(queue, *requests)
            assert {each.state for each in tickets} == {State.DONE}, "none is poison"
            sick, well = fleet.statuses()
            assert sick.judged == 0
            assert "came back unjudged" in sick.message or "hung up" in sick.message
            assert well.judged == 40
            broken.set()  # it is repaired
            for _ in range(100):
                await asked(queue, *(a_request(f"y + x # {n}") for n in range(4)))
                if fleet.statuses()[0].judged:
                    break
            assert fleet.statuses()[0].state == "up"

    asyncio.run(go())


def test_a_device_that_dies_of_everything_is_told_from_one_poison_candidate(tmp_path):
    """Alone in the queue, both look the same; what was judged before tells them apart."""

    async def go():
        broken = asyncio.Event()

        def hire(post):
            def script(job):
                return "die" if broken.is_set() or job.candidate.source == POISON else "ok"

            return Scripted(script)

        async with a_fleet(tmp_path, hire=hire) as (queue, fleet, _):
            await asked(queue, a_request())
            (poison,) = await asked(queue, a_request(POISON))
            assert (poison.state, poison.attempts) == (State.QUARANTINED, 5)
            assert fleet.statuses()[0].state != "sick"
            await asked(queue, a_request("y + x"))
            broken.set()
            (innocent,) = await queue.submit("me", [a_request("x + y + 0")], {})
            while fleet.statuses()[0].state != "sick":
                await asyncio.sleep(0.01)
            broken.clear()
            found = await queue.wait("me", innocent.id, 10.0)
            assert found.state is State.DONE

    asyncio.run(go())


def test_a_judge_that_gives_up_again_and_again_is_lost_and_not_quarantined(tmp_path):
    async def go():
        def hire(post):
            return Scripted(lambda job: "lost")

        async with a_fleet(tmp_path, hire=hire, rules=Rules(faults=2)) as (queue, _, _):
            (ticket,) = await asked(queue, a_request())
            assert ticket.state is State.LOST
            assert "the device does not answer" in ticket.message
            assert queue.quarantined() == []

    asyncio.run(go())


def test_a_task_that_cannot_be_judged_is_refused_with_the_reason(tmp_path):
    async def go():
        task = Task(name="bad", source="import os", entry="expression")
        async with a_fleet(tmp_path) as (queue, _, _):
            (ticket,) = await asked(queue, a_request(task=task))
            assert ticket.state is State.REFUSED
            assert "no null expression" in ticket.message

    asyncio.run(go())


def test_a_worker_of_another_version_is_not_given_anything(tmp_path):
    async def go():
        def hire(post):
            return Scripted(
                lambda job: "ok", judge="0.0.1/1" if post.number == 0 else None or JUDGE
            )

        async with a_fleet(tmp_path, hire=hire, posts=2) as (queue, fleet, _):
            await asked(queue, *(a_request(f"x + y # {n}") for n in range(5)))
            old, new = fleet.statuses()
            assert (old.judged, new.judged) == (0, 5)
            assert "judges with 0.0.1/1" in old.message

    asyncio.run(go())


def test_the_same_again_is_answered_from_the_cache_unless_asked_otherwise(tmp_path):
    async def go():
        async with a_fleet(tmp_path, hire=lambda post: Scripted(lambda job: "ok")) as parts:
            queue, fleet, metrics = parts
            (first,) = await asked(queue, a_request())
            (again,) = await asked(queue, a_request(), client="somebody else")
            (fresh,) = await asked(queue, a_request(cache=False))
            assert (first.cached, again.cached, fresh.cached) == (False, True, False)
            assert again.line == first.line
            assert fleet.statuses()[0].judged == 2
            assert metrics.value("cache_hits_total") == 1

    asyncio.run(go())


def test_what_was_acknowledged_before_the_server_died_is_judged_after_it(tmp_path):
    async def go():
        hanging = asyncio.Event()

        class Stuck(Scripted):
            async def judge(self, job):
                hanging.set()
                await asyncio.sleep(3600)

        async with a_fleet(tmp_path, hire=lambda post: Stuck(None)) as (queue, _, _):
            tickets = await queue.submit("me", [a_request(), a_request("x - y")], {})
            await hanging.wait()
        async with a_fleet(tmp_path, hire=lambda post: Scripted(lambda job: "ok")) as parts:
            found = [await parts[0].wait("me", each.id, 10.0) for each in tickets]
            verdicts = [each.evaluation.verdict for each in found]
            assert verdicts == [Verdict.PASSED, Verdict.WRONG]
            assert [each.attempts for each in found] == [2, 1]

    asyncio.run(go())


def test_more_than_may_wait_is_refused_and_nothing_of_it_is_kept(tmp_path):
    async def go():
        class Never(Scripted):
            async def start(self):
                raise BackendUnavailable("no device")

        limits = Limits(queued=5, queued_each=3)
        async with a_fleet(tmp_path, hire=lambda post: Never(None), limits=limits) as parts:
            queue = parts[0]
            await queue.submit("ann", [a_request("x"), a_request("y")], {})
            with pytest.raises(TooMuch, match="3 requests of yours"):
                await queue.submit("ann", [a_request("x + 1"), a_request("x + 2")], {})
            await queue.submit("bob", [a_request("x"), a_request("y")], {})
            with pytest.raises(TooMuch, match="5 requests wait"):
                await queue.submit("cid", [a_request("x"), a_request("y")], {})
            assert len(queue) == 4
            assert parts[1].statuses()[0].state == "sick"

    asyncio.run(go())


def test_a_cancelled_request_is_never_handed_out(tmp_path):
    async def go():
        seen = []

        def hire(post):
            return Scripted(lambda job: seen.append(job.candidate.source))

        async with a_fleet(tmp_path, hire=hire) as (queue, _, _):
            pending = await queue.submit("me", [a_request(f"x + y # {n}") for n in range(20)], {})
            gone = await queue.cancel("me", pending[-1].id)
            await asyncio.gather(*(queue.wait("me", each.id, 10.0) for each in pending))
            assert gone.state is State.CANCELLED
            assert "x + y # 19" not in seen
            assert len(seen) == 19

    asyncio.run(go())


def a_job(source="x + y", task=None):
    candidate = Candidate(backend="null", source=source)
    return Job(task=task or TASK, candidate=candidate, settings=QUICK)


@contextlib.asynccontextmanager
async def a_worker():
    worker = WorkerProcess(Post(backend="null", number=0), HASTY)
    try:
        await worker.start()
        yield worker
    finally:
        await worker.stop()


def test_a_worker_that_is_killed_while_it_judges_is_noticed_at_once():
    long = Workload(name="long", arguments=(("n", 20_000_000),))  # takes seconds

    async def go():
        async with a_worker() as worker:
            job = a_job(task=replace(TASK, workloads=(long,)))
            judging = asyncio.create_task(worker.judge(job))
            await asyncio.sleep(0.2)
            os.kill(worker.pid, signal.SIGKILL)
            with pytest.raises(WorkerDied):
                async with asyncio.timeout(1.5):
                    await judging

    asyncio.run(go())


def test_a_worker_that_hangs_is_ended_when_it_has_been_silent_for_too_long():
    async def go():
        async with a_worker() as worker:
            pid = worker.pid
            os.kill(pid, signal.SIGSTOP)
            with pytest.raises(WorkerDied, match="silent for 2 s"):
                await worker.judge(a_job())
            with pytest.raises(ProcessLookupError):
                os.kill(pid, 0)

    asyncio.run(go())


def test_a_worker_ends_when_its_server_does():
    async def go():
        async with a_worker() as worker:
            pid = worker.pid
            worker._writer.transport.abort()
            for _ in range(50):
                if not _runs(pid):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("it goes on without anybody to answer to")

    asyncio.run(go())


def test_a_worker_does_not_see_the_servers_secrets(monkeypatch):
    monkeypatch.setenv("KERNELSMITH_TOKEN", "secret-of-the-server")

    async def go():
        async with a_worker() as worker:
            found = await asyncio.to_thread(_environ, worker.pid)
            assert b"secret-of-the-server" not in found

    asyncio.run(go())


def test_a_worker_keeps_references_of_several_tasks_open():
    async def go():
        async with a_worker() as worker:
            for task, source in [(None, "y + x"), (OTHER, "y * x"), (None, "x + y + 0")]:
                report = await worker.judge(a_job(source, task))
                assert report.evaluation.verdict is Verdict.PASSED

    asyncio.run(go())


def test_a_backend_that_cannot_work_says_so():
    async def go():
        worker = WorkerProcess(Post(backend="nowhere", number=0), HASTY)
        with pytest.raises(BackendUnavailable, match="no backend 'nowhere'"):
            await worker.start()

    asyncio.run(go())


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _environ(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return file.read()
