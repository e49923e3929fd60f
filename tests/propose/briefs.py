"""Small factories: tests name only what they are about."""

from dataclasses import replace

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import (
    Accuracy,
    Coverage,
    Evaluation,
    Kernel,
    Label,
    LabelName,
    Roofline,
    Verdict,
)
from kernelsmith.domain.task import Task, Workload
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Exemplar, Outcome, Placement, Proposal, Role, Step

REFERENCE = '''\
"""Twice the input."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs(n=64):
    return [torch.randn(n)]


def get_init_inputs():
    return []


def get_workloads():
    return [{"name": "small", "inputs": {"n": 64}},
            {"name": "secret", "inputs": {"n": 771}, "held_out": True}]
'''
PROGRAM = """\
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return x + x
"""
MARKED = """\
import torch

# EVOLVE-BLOCK-START
def double(x):
    return x + x
# EVOLVE-BLOCK-END


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return double(x)
"""
TASK = Task(
    name="double",
    source=REFERENCE,
    workloads=(
        Workload(name="small", arguments=(("n", 64),)),
        Workload(name="secret", arguments=(("n", 771),), held_out=True),
    ),
)
DEVICE = Device(
    kind="cpu", name="Some CPU", cores=2, versions=(("torch", "2.13"), ("compiler", "g++ 12"))
)


def a_timing(speedup: float = 2.0, workload: str = "small") -> Timing:
    pair = Pair(baseline_us=(20.0, 20.0), candidate_us=(20.0 / speedup, 20.0 / speedup))
    ratio = Ratio(value=speedup, low=speedup * 0.98, high=speedup * 1.02)
    timed = WorkloadTiming(workload=workload, pairs=(pair,), speedup=ratio, launches=10)
    return Timing(workloads=(timed,))


def a_pass(source: str = PROGRAM, speedup: float = 2.0, **changes: object) -> Evaluation:
    candidate = Candidate(backend="cpu", source=source)
    found = Evaluation(
        task="double", candidate=candidate.id, device=DEVICE, verdict=Verdict.PASSED,
        timing=a_timing(speedup),
        accuracy=(
            Accuracy(workload="small", error=1e-8, budget=1e-6, eager_error=1e-7, trials=3),
            Accuracy(workload="secret", error=1e-8, budget=1e-6, eager_error=1e-7, trials=3),
        ),
        coverage=Coverage(own=0.75, library=0.25, samples=400),
        kernels=(Kernel(name="double_kernel", own=True, launches=1, registers=32, grid=(4, 1, 1)),),
        rooflines=(Roofline(workload="small", bytes=512, floor_us=0.5, bandwidth_share=0.4),),
        labels=(Label(name=LabelName.FRAGILE, reason="wrong on strided inputs"),),
    )  # fmt: skip
    return replace(found, **changes)


def a_failure(source: str, message: str, verdict: Verdict = Verdict.WRONG) -> Exemplar:
    candidate = Candidate(backend="cpu", source=source)
    found = Evaluation(
        task="double", candidate=candidate.id, device=DEVICE, verdict=verdict, message=message
    )
    return Exemplar(role=Role.FAILURE, candidate=candidate, evaluation=found, score=0.0)


def an_exemplar(
    source: str = PROGRAM, role: Role = Role.PARENT, score: float = 2.0, **changes: object
) -> Exemplar:
    candidate = Candidate(backend="cpu", source=source)
    found = a_pass(source, speedup=max(score, 0.1), **changes)
    return Exemplar(role=role, candidate=candidate, evaluation=found, score=score)


def a_brief(**changes: object) -> Brief:
    usual = Brief(number=0, task=TASK, backend="cpu", island=0, seed=1, device=DEVICE)
    return replace(usual, **changes)


def a_step(proposer: str, score: float | None, parent: float = 1.0, usd: float | None = None):
    """A step by ``proposer`` that passed with ``score``, or was rejected where there is none."""
    brief = a_brief(parent=an_exemplar(score=parent))
    if score is None:
        proposal = Proposal(source=None, rejection="no code", proposer=proposer)
        placement = Placement(outcome=Outcome.REJECTED, island=0)
        return Step(brief=brief, proposal=_priced(proposal, usd), placement=placement)
    proposal = Proposal(source=PROGRAM, proposer=proposer)
    candidate = Candidate(backend="cpu", source=PROGRAM)
    placement = Placement(outcome=Outcome.NEW, island=0, cell=(0,), score=score, gained=score)
    return Step(
        brief=brief, proposal=_priced(proposal, usd), placement=placement,
        candidate=candidate, evaluation=a_pass(),
    )  # fmt: skip


def _priced(proposal: Proposal, usd: float | None) -> Proposal:
    return replace(proposal, usage=replace(proposal.usage, usd=usd))
