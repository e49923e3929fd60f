"""Candidates are compiled before their turn, and nothing but time depends on it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, EvaluationLost
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.backends.null import NullBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.sandbox.errors import ChildDied, ChildTimedOut
from kernelsmith.testing import QUICK

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")
MODULE = Task(
    name="relu",
    source="""
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(8)]
""",
)
REACHING = MODULE.source.replace("Model(", "ModelNew(") + "\nimport subprocess\n"


class Rehearsing(NullBackend):
    """Takes note of what it is asked to compile ahead."""

    failure: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.rehearsed: list[str] = []

    def rehearse(self, task: Task, candidate: Candidate, *, timeout_s: float) -> None:
        self.rehearsed.append(candidate.source)
        if self.failure is not None:
            raise self.failure


class RehearsingCpu(CpuBackend):
    """The same, where sources are looked at before they run."""

    rehearsed: tuple[str, ...] = ()

    def rehearse(self, task: Task, candidate: Candidate, *, timeout_s: float) -> None:
        self.rehearsed += (candidate.source,)


class Waiting(Rehearsing):
    """Opens no reference before another candidate was rehearsed."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self.awaited, self.asked, self.done = awaited, threading.Event(), threading.Event()

    def rehearse(self, task: Task, candidate: Candidate, *, timeout_s: float) -> None:
        if candidate.source == self.awaited:
            self.done.set()

    def oracle(self, task: Task):
        self.asked.set()
        assert self.done.wait(20), "nobody rehearsed while another had its turn"
        return super().oracle(task)


def null(source: str) -> Candidate:
    return Candidate(backend="null", source=source)


def test_a_candidate_is_rehearsed_and_then_judged():
    backend = Rehearsing()
    with LocalEvaluator(backend, QUICK) as evaluator:
        assert evaluator.judge(TASK, null("y + x")).verdict is Verdict.PASSED
    assert backend.rehearsed == ["y + x"]


def test_rehearsal_can_be_switched_off():
    backend = Rehearsing()
    with LocalEvaluator(backend, replace(QUICK, rehearse=False)) as evaluator:
        assert evaluator.judge(TASK, null("y + x")).verdict is Verdict.PASSED
    assert backend.rehearsed == []


@pytest.mark.parametrize(
    "failure",
    [
        EvaluationLost("the zygote died"),
        BackendUnavailable("no driver"),
        ChildTimedOut("no answer within 30 s"),
        ChildDied("the child died of SIGSEGV"),
        ProgramFailed(Verdict.CRASHED, "its process answered nonsense"),
        OSError("no space left"),
        AttributeError("no attribute 'run'"),
    ],
    ids=lambda failure: type(failure).__name__,
)
def test_a_failed_rehearsal_leaves_the_verdict_to_the_judge(failure):
    backend = Rehearsing()
    backend.failure = failure
    with LocalEvaluator(backend, QUICK) as evaluator:
        assert evaluator.judge(TASK, null("y + x")).verdict is Verdict.PASSED
        assert evaluator.judge(TASK, null("y * x")).verdict is Verdict.WRONG
    assert backend.rehearsed == ["y + x", "y * x"]


def test_a_source_that_the_guard_refuses_is_not_run_ahead():
    backend = RehearsingCpu()
    with LocalEvaluator(backend, QUICK) as evaluator:
        found = evaluator.judge(MODULE, Candidate(backend="cpu", source=REACHING))
    assert found.verdict is Verdict.REFUSED
    assert backend.rehearsed == ()


def test_one_is_rehearsed_while_another_has_its_turn():
    backend = Waiting("y + x  # us: 7")
    with LocalEvaluator(backend, QUICK) as evaluator, ThreadPoolExecutor(2) as pool:
        first = pool.submit(evaluator.judge, TASK, null("y + x"))
        assert backend.asked.wait(20)
        second = pool.submit(evaluator.judge, TASK, null("y + x  # us: 7"))
        assert first.result().verdict is second.result().verdict is Verdict.PASSED
