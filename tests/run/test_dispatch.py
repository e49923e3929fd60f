"""Several winners in one candidate: each shape goes to whoever won it."""

import asyncio
from dataclasses import replace

import pytest
from run_parts import Sources, a_run, gone, resumed, steps_of

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Exemplar, Role
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.run import dispatch
from kernelsmith.run.config import Budget
from kernelsmith.run.pool import LocalPool
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.testing import QUICK

SCALE = Task(
    name="scale",
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
    def forward(self, x):
        return x * self.weight
def get_inputs(n=8):
    return [torch.randn(n, 4)]
def get_init_inputs():
    return []
""",
    workloads=(
        Workload(name="small", arguments=(("n", 8),)),
        Workload(name="large", arguments=(("n", 64),)),
    ),
)
SHAPES = {"small": (("float32", (8, 4)),), "large": (("float32", (64, 4)),)}

VARIANT = '''
"""A kernel."""
import torch
from kernelsmith.kernels import cpp
STEP = {step}
lib = cpp(\'\'\'
extern "C" void scale(const float* x, const float* w, float* y, int64_t n) {{
  for (int64_t i = 0; i < n; i += {step})
    for (int64_t j = i; j < i + {step}; ++j) y[j] = x[j] * w[0];
}}
\'\'\')
def helper(lib, STEP=STEP):
    return (lambda lib: lib)(lib), STEP
class ModelNew(torch.nn.Module):
    def __init__(self):
        super(ModelNew, self).__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
    def forward(self, x):
        kernel, step = helper(lib)
        assert step == {step}
        y = torch.empty_like(x)
        kernel.scale(x, self.weight, y, x.numel())
        return y
'''
A, B = (Candidate(backend="cpu", source=VARIANT.format(step=step)) for step in (2, 4))


def an_elite(candidate, **speedups):
    timings = tuple(
        WorkloadTiming(
            workload=name, launches=1, pairs=(Pair(baseline_us=(1.0,), candidate_us=(1.0,)),),
            speedup=Ratio(value=value, low=0.95 * value, high=1.05 * value),
        )
        for name, value in speedups.items()
    )  # fmt: skip
    evaluation = Evaluation(
        task="scale", candidate=candidate.id, device=Device(kind="cpu", name="x"),
        verdict=Verdict.PASSED, timing=Timing(workloads=timings),
    )  # fmt: skip
    return Exemplar(role=Role.TOP, candidate=candidate, evaluation=evaluation, score=1.0)


def test_winners_of_single_workloads_are_put_together():
    best = an_elite(A, small=3.0, large=2.0)
    found = dispatch.plan(best, [best, an_elite(B, small=1.0, large=3.0)])
    assert found.candidates == (A, B)
    assert found.routes == (("small", 0), ("large", 1))


@pytest.mark.parametrize(
    "other", [dict(small=3.1, large=2.1), dict(small=1.0, large=2.0), dict(small=3.0)]
)
def test_a_lead_inside_the_intervals_is_none(other):
    best = an_elite(A, small=3.0, large=2.0)
    assert dispatch.plan(best, [best, an_elite(B, **other)]) is None


def test_one_workload_needs_no_dispatch():
    best = an_elite(A, small=3.0)
    assert dispatch.plan(best, [best, an_elite(B, small=9.0)]) is None


PLAN = dispatch.Plan(candidates=(A, B), routes=(("small", 0), ("large", 1)))


def test_workloads_that_look_alike_cannot_be_told_apart():
    same = {"small": SHAPES["small"], "large": SHAPES["small"]}
    assert dispatch.written(PLAN, SCALE, same) is None
    assert dispatch.written(PLAN, SCALE, {}) is None


@pytest.mark.parametrize(
    "source",
    ["import numpy as torch", "from os import *", "def broken(", "class C:\n    lib = 1\nlib = 2"],
)
def test_sources_that_cannot_share_a_module_are_left_alone(source):
    odd = dispatch.Plan(candidates=(A, Candidate(backend="cpu", source=source)), routes=PLAN.routes)
    assert dispatch.written(odd, SCALE, SHAPES) is None


def test_the_judge_believes_the_dispatching_candidate():
    source = dispatch.written(PLAN, SCALE, SHAPES)
    candidate = Candidate(backend="cpu", source=source)
    with LocalEvaluator("cpu", QUICK) as evaluator:
        for weights in (Weights.DYNAMIC, Weights.STATIC):
            found = evaluator.judge(replace(SCALE, weights=weights), candidate)
            assert found.verdict is Verdict.PASSED, found.message


def test_shapes_are_asked_of_the_reference():
    async def asked():
        pool = LocalPool("cpu", usual=QUICK, thorough=QUICK)
        try:
            return await pool.shapes(SCALE)
        finally:
            await pool.close()

    assert asyncio.run(asked()) == SHAPES


FUNCTION = Task(
    name="twice", entry="twice", source="def twice(x):\n    return x * 2\ndef get_inputs(): ...",
    workloads=SCALE.workloads,
)  # fmt: skip


class T:
    """Looks like a tensor."""

    dtype = "torch.float32"

    def __init__(self, *shape):
        self.shape = shape


def test_unknown_shapes_go_to_the_nearest_size():
    sources = [f"W = '{name}'\ndef twice(x):\n    return W" for name in ("first", "second")]
    plan = dispatch.Plan(
        candidates=tuple(Candidate(backend="cpu", source=each) for each in sources),
        routes=PLAN.routes,
    )
    space = {}
    exec(dispatch.written(plan, FUNCTION, SHAPES), space)
    twice = space["twice"]
    assert twice(T(8, 4)) == "first"
    assert twice(T(64, 4)) == "second"
    assert twice(T(9, 4)) == "first"
    assert twice(T(1000, 4)) == "second"


class Tilted(SimulatedEvaluator):
    """Times each workload apart: ``# small: 3 large: 2`` says the speed-ups."""

    async def evaluate(self, task, candidate, *, baseline=None):
        said = candidate.source.split("#")[-1]
        words = said.split()
        table = {words[i].strip(":"): float(words[i + 1]) for i in range(0, len(words), 2)}
        return replace(an_elite(candidate, **table).evaluation, task=task.name)


def test_a_run_judges_a_dispatch_as_one_more_step(tmp_path):
    sources = [
        "def twice(x):\n    return 'a'  # small: 3 large: 2",
        "def twice(x):\n    return 'b'  # small: 1 large: 4",
    ]

    class Both(Tilted):
        async def evaluate(self, task, candidate, *, baseline=None):
            if "_ROUTES" in candidate.source:
                found = an_elite(candidate, small=3.0, large=4.0).evaluation
                return replace(found, task=task.name)
            return await super().evaluate(task, candidate, baseline=baseline)

    async def shapes_of(task):
        return SHAPES

    result = gone(
        a_run(
            tmp_path / "r", task=FUNCTION, proposer=Sources(*sources), evaluator=Both(),
            shapes_of=shapes_of, budget=Budget(steps=2),
        )
    )  # fmt: skip
    last = steps_of(tmp_path / "r")[-1]
    assert result.steps == 3
    assert last.proposal.proposer == "dispatch"
    assert last.placement.is_best
    assert result.best.candidate == last.candidate
    again = resumed(tmp_path / "r", evaluator=None, proposer=Sources(*sources))
    assert gone(again).steps == 3
