"""Small parts for tests of training: steps, evaluations, and real runs on the null backend."""

import asyncio

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Coverage, Evaluation, Label, LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import (
    Brief,
    Exemplar,
    Outcome,
    Placement,
    Proposal,
    Role,
    Step,
)
from kernelsmith.run.config import Budget, Remeasure, RunConfig
from kernelsmith.run.start import start
from kernelsmith.search.score import score
from kernelsmith.training.data.sample import Sample, Stage
from kernelsmith.training.forms.algebra import AlgebraTeacher

DEVICE = Device(kind="null", name="simulated clock")
EXPRESSIONS = (
    "x * 1 + y * 1 + 0", "x * y + x * z + 0", "-(-x) * 1 + y", "(x + 0) * 1 + y * 1",
    "maximum(x * 1 + 0, y) * 1", "z * x + z * y + x * 1", "-(-(x + 0)) + y * 1",
    "exp(x * 1) + 0 + y",
)  # fmt: skip


def timed(speedup, *, width=0.02):
    """A timing with that speed-up, plus or minus half the width."""
    ratio = Ratio(value=speedup, low=speedup * (1 - width / 2), high=speedup * (1 + width / 2))
    pair = Pair(baseline_us=(speedup,), candidate_us=(1.0,))
    return Timing(workloads=(
        WorkloadTiming(workload="default", pairs=(pair,), speedup=ratio, launches=1),
    ))  # fmt: skip


def judged(speedup=None, verdict=Verdict.PASSED, *, task="t", own=None, lazy=False, width=0.02):
    """An evaluation: passed at that speed-up, or failed by that verdict."""
    passed = verdict is Verdict.PASSED
    labels = () if speedup is not None or not passed else (Label(name=LabelName.UNTIMED),)
    if lazy:
        labels = (*labels, Label(name=LabelName.TRIVIAL))
    return Evaluation(
        task=task, candidate="c", device=DEVICE, verdict=verdict,
        timing=timed(speedup, width=width) if passed and speedup is not None else None,
        message="" if passed else "why", labels=labels, judge="test/1",
        coverage=None if own is None else Coverage(own=own, library=1 - own, samples=10),
    )  # fmt: skip


def shown(source, speedup, role=Role.TOP, backend="null"):
    found = judged(speedup)
    return Exemplar(role=role, candidate=Candidate(backend=backend, source=source),
                    evaluation=found, score=score(found))  # fmt: skip


def a_task(name="t", source="x + y"):
    return Task(name=name, source=source, entry="expression")


def a_sample(
    number=0, *, source="child", speedup=2.0, parent=None, others=(), verdict=Verdict.PASSED,
    best=True, run="r", task=None, family="other", difficulty=1, lineage="root", backend="null",
    width=0.02,
):  # fmt: skip
    """One judged step; ``parent`` and ``others`` are (source, speed-up)."""
    task = task or a_task()
    above = None if parent is None else shown(*parent, role=Role.PARENT, backend=backend)
    brief = Brief(number=number, task=task, backend=backend, island=0, seed=0, parent=above,
                  inspirations=tuple(shown(*each, backend=backend) for each in others))  # fmt: skip
    step = Step(
        brief=brief, proposal=Proposal(source=source, proposer="test"),
        placement=Placement(outcome=Outcome.NEW, island=0, is_best=best),
        candidate=Candidate(backend=backend, source=source),
        evaluation=judged(speedup, verdict, task=task.name, width=width),
    )  # fmt: skip
    return Sample(run=run, stage=Stage.COLD_START, step=step, family=family, difficulty=difficulty,
                  lineage=lineage, depth=0 if parent is None else 1)  # fmt: skip


def null_tasks(count=8):
    return [a_task(f"e{index}", source) for index, source in enumerate(EXPRESSIONS[:count])]


def null_runs(folder, *, count=8, steps=24) -> RunConfig:
    """Evolve expressions with the teacher; real runs with real journals."""
    config = RunConfig(
        backend="null", budget=Budget(steps=steps), concurrency=2, effort="quick",
        confirm_effort="quick", remeasure=Remeasure(champions=False, gain=False, final=0),
    )  # fmt: skip
    for task in null_tasks(count):
        asyncio.run(start(task, folder / task.name, config, proposer=AlgebraTeacher()).go())
    return config
