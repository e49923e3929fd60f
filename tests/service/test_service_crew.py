"""An evaluator over workers without a server: the contract, and workers that die."""

import asyncio
import os

import pytest
from service_parts import DEVICE, HASTY, TASK, Scripted

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.service.crew import Crew
from kernelsmith.service.process import Patience, Post, WorkerProcess
from kernelsmith.testing import QUICK, EvaluatorContract

POSTS = [Post(backend="null", number=number) for number in range(2)]


def a_candidate(source="y + x"):
    return Candidate(backend="null", source=source)


class TestCrewEvaluator(EvaluatorContract):
    task = TASK
    good = a_candidate()
    wrong = a_candidate("x - y")

    @pytest.fixture
    def evaluator(self):
        return Crew(POSTS[:1], lambda post: Scripted(lambda job: "ok")).evaluator(QUICK)


def test_real_workers_judge_many_at_a_time():
    async def go():
        crew = Crew(POSTS, lambda post: WorkerProcess(post, HASTY))
        assert await crew.connect() == DEVICE
        evaluator = crew.evaluator(QUICK)
        work = [evaluator.evaluate(TASK, a_candidate(f"x {'+-'[n % 2]} y")) for n in range(6)]
        found = await asyncio.gather(*work)
        await crew.close()
        return [each.verdict for each in found]

    assert asyncio.run(go()) == [Verdict.PASSED, Verdict.WRONG] * 3


def crewed(hire, source="y + x"):
    async def go():
        crew = Crew(POSTS, hire)
        try:
            return await crew.evaluator(QUICK).evaluate(TASK, a_candidate(source))
        finally:
            await crew.close()

    return asyncio.run(go())


def test_a_worker_that_died_is_replaced_and_its_job_done_again():
    left = iter(["die", "die", "lost"])
    found = crewed(lambda post: Scripted(lambda job: next(left, "ok")))
    assert found.verdict is Verdict.PASSED


def test_what_nobody_survives_is_lost_after_a_stated_number_of_attempts():
    tried = []

    def hire(post):
        return Scripted(lambda job: tried.append(post) or "die")

    with pytest.raises(EvaluationLost, match="not judged in 5 attempts"):
        crewed(hire)
    assert len(tried) == 5


def test_workers_of_another_version_or_on_other_devices_do_not_mix():
    with pytest.raises(UsageError, match="install the same version everywhere"):
        crewed(lambda post: Scripted(lambda job: "ok", judge="0.0.1/1"))

    def hire(post):
        return Scripted(lambda job: "ok", device=Device(kind="null", name=f"d{post.number}"))

    found = {crewed(hire, f"y + x # {number}").device.name for number in range(3)}
    assert len(found) == 1, "the second kind of device is left out"


def test_a_place_that_nobody_comes_to_holds_nobody_up():
    """As on a cluster that lost a node: the replacement waits for room, the others go on."""

    class Waiting(Scripted):
        async def start(self):
            await asyncio.sleep(3600)

    hired = []

    def hire(post):
        hired.append(post.number)
        again = hired.count(post.number) > 1
        script = (lambda job: "die") if post.number == 0 else (lambda job: "ok")
        return Waiting(None) if again else Scripted(script)

    async def go():
        crew = Crew(POSTS, hire)
        evaluator = crew.evaluator(QUICK)
        work = [evaluator.evaluate(TASK, a_candidate(f"y + x # {n}")) for n in range(10)]
        found = await asyncio.gather(*work)
        await crew.close()
        return found

    assert {each.verdict for each in asyncio.run(go())} == {Verdict.PASSED}
    assert 0 in hired[2:]


def test_a_worker_whose_caller_gave_up_answers_nobody_else():
    async def go():
        crew = Crew(POSTS[:1], lambda post: WorkerProcess(post, HASTY))
        evaluator = crew.evaluator(QUICK)
        await crew.connect()
        given_up = asyncio.create_task(evaluator.evaluate(TASK, a_candidate("x - y")))
        await asyncio.sleep(0.005)
        given_up.cancel()
        found = await evaluator.evaluate(TASK, a_candidate())
        await crew.close()
        return found

    found = asyncio.run(go())
    assert (found.verdict, found.candidate) == (Verdict.PASSED, a_candidate().id)


def test_a_worker_on_cores_of_its_own_judges_on_these():
    core = max(os.sched_getaffinity(0))
    post = Post(backend="cpu", number=0, cores=(core,))

    async def go():
        crew = Crew([post], lambda post: WorkerProcess(post, Patience()))
        try:
            return await crew.connect()
        finally:
            await crew.close()

    assert asyncio.run(go()).cores == 1
