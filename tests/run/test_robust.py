"""Bad candidates on a real device: the others are unaffected, and Ctrl-C is heard."""

import asyncio
import os
import signal
import time
from dataclasses import replace

import pytest
from run_parts import Sources, gone, steps_of

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Outcome
from kernelsmith.errors import EvaluationLost
from kernelsmith.run.config import Budget, Remeasure, RunConfig
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.start import Judges, start
from kernelsmith.testing import QUICK

TASK = Task(
    name="double",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2
def get_inputs():
    return [torch.randn(64, 64)]
def get_init_inputs():
    return []
""",
)
KERNEL = """
import torch
from kernelsmith.kernels import cpp
lib = cpp('''
extern "C" void twice(const float* x, float* y, int64_t n) {
  BAD
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 2;
}
''')
class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        lib.twice(x, y, x.numel())
        return y
# NUMBER
"""


def a_kernel(number, bad=""):
    return KERNEL.replace("BAD", bad).replace("NUMBER", str(number))


HANG = a_kernel(0, 'for (;;) { asm volatile(""); }')
SEGFAULT = a_kernel(0, "*(volatile int*)8 = 1;")
BROKEN = a_kernel(0, "no C++")
"""Has no metric at all."""
SETTINGS = replace(QUICK, timeout_s=2.0)


def judged_run(folder, sources, *, concurrency=4):
    pool = LocalPool("cpu", usual=SETTINGS, thorough=SETTINGS)
    config = RunConfig(
        backend="cpu", concurrency=concurrency, budget=Budget(steps=len(sources)),
        remeasure=Remeasure(gain=False), grace_s=0.5,
    )  # fmt: skip
    judges = Judges(evaluator=pool.evaluator, confirmer=pool.confirmer)
    return start(TASK, folder, config, proposer=Sources(*sources), judges=judges), pool


def through(folder, sources):
    async def run():
        made, pool = judged_run(folder, sources)
        try:
            return await made.go()
        finally:
            await pool.close()

    result = asyncio.run(run())
    return result, [step.evaluation.verdict for step in steps_of(folder)]


def test_a_hang_a_segfault_and_a_missing_metric_leave_the_others_alone(tmp_path):
    sources = [a_kernel(1), HANG, SEGFAULT, BROKEN, a_kernel(2)]
    result, verdicts = through(tmp_path / "r", sources)
    assert verdicts == [
        Verdict.PASSED, Verdict.TIMED_OUT, Verdict.CRASHED, Verdict.BUILD_FAILED, Verdict.PASSED,
    ]  # fmt: skip
    assert result.confirmed


@pytest.mark.slow
def test_among_forty_they_cost_three_steps_and_no_more(tmp_path):
    sources = [a_kernel(number) for number in range(40)]
    sources[5], sources[15], sources[25] = HANG, SEGFAULT, BROKEN
    result, verdicts = through(tmp_path / "r", sources)
    assert result.steps == 40
    failed = {n: v for n, v in enumerate(verdicts) if v is not Verdict.PASSED}
    assert failed == {5: Verdict.TIMED_OUT, 15: Verdict.CRASHED, 25: Verdict.BUILD_FAILED}


def test_ctrl_c_ends_a_judge_that_waits_for_a_hanging_candidate(tmp_path):
    settings = replace(SETTINGS, timeout_s=300.0)

    async def run():
        pool = LocalPool("cpu", usual=settings, thorough=settings)
        config = RunConfig(backend="cpu", budget=Budget(steps=1), grace_s=600.0)
        made = start(
            TASK, tmp_path / "r", config, proposer=Sources(HANG),
            judges=Judges(evaluator=pool.evaluator, confirmer=pool.confirmer),
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        loop.call_later(4.0, os.kill, os.getpid(), signal.SIGINT)
        loop.call_later(4.2, os.kill, os.getpid(), signal.SIGINT)
        result = await made.go()
        begun = time.monotonic()
        await pool.close()
        return result, time.monotonic() - begun

    begun = time.monotonic()
    result, closing = asyncio.run(run())
    assert result.stopped
    assert closing < 15
    assert time.monotonic() - begun < 60
    assert steps_of(tmp_path / "r") == ()


def test_a_closed_pool_says_that_the_evaluation_was_lost():
    async def run():
        pool = LocalPool("cpu", usual=replace(SETTINGS, timeout_s=300.0), thorough=SETTINGS)
        candidate = Candidate(backend="cpu", source=HANG)
        judging = asyncio.create_task(pool.evaluator.evaluate(TASK, candidate))
        await asyncio.sleep(4.0)
        await pool.close()
        with pytest.raises(EvaluationLost):
            await judging

    asyncio.run(run())


def test_the_backend_is_named_by_the_config(tmp_path):
    config = RunConfig(
        backend="cpu", effort="quick", confirm_effort="quick", budget=Budget(steps=1),
        remeasure=Remeasure(champions=False, final=0),
    )  # fmt: skip
    result = gone(start(TASK, tmp_path / "r", config, proposer=Sources(a_kernel(1))))
    assert result.best is not None
    assert steps_of(tmp_path / "r")[0].placement.outcome is Outcome.NEW
    assert steps_of(tmp_path / "r")[0].brief.device.kind == "cpu"
