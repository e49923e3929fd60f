"""The null backend keeps the contract, and its clock can be read."""

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.null import NullBackend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.harness import judge
from kernelsmith.testing import QUICK, BackendContract, EvaluatorContract

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")


def judged(source):
    candidate = Candidate(backend="null", source=source)
    return judge(TASK, candidate, backend=NullBackend(), settings=QUICK)


class TestNullBackend(BackendContract):
    task = TASK
    good = "y + x  # us: 5"
    broken = "x +"
    wrong = "x - y"

    @pytest.fixture
    def backend(self):
        return NullBackend()


class TestLocalEvaluatorWithNull(EvaluatorContract):
    task = TASK
    good = Candidate(backend="null", source="y + x")
    wrong = Candidate(backend="null", source="y * x")

    @pytest.fixture
    def evaluator(self):
        with LocalEvaluator(NullBackend(), QUICK) as evaluator:
            yield evaluator


def test_the_simulated_clock_gives_the_ratio_that_the_sources_state():
    timing = judged("x + y  # us: 4").timing
    assert timing is not None
    assert timing.speedup.value == pytest.approx(5.0, rel=0.02)


class WithoutAClock(NullBackend):
    timed = False


def test_a_backend_without_a_clock_checks_and_times_nothing():
    candidate = Candidate(backend="null", source="y + x")
    found = judge(TASK, candidate, backend=WithoutAClock(), settings=QUICK)
    assert found.verdict is Verdict.PASSED
    assert found.timing is None
    assert [label.name for label in found.labels] == [LabelName.UNTIMED]
    assert "nothing was timed" in found.labels[0].reason
    assert found.accuracy


def test_an_expression_cannot_reach_beyond_arithmetic():
    found = judged("__import__('os').system('true')")
    assert found.verdict is Verdict.BUILD_FAILED
    assert "can be called" in found.message


def test_a_shortcut_that_needs_positive_inputs_is_wrong():
    task = Task(name="clip", source="maximum(x, 0)", entry="expression")
    candidate = Candidate(backend="null", source="x * 1")
    found = judge(task, candidate, backend=NullBackend(), settings=QUICK)
    assert found.verdict is Verdict.WRONG
    assert "random signs" in found.message


def test_a_candidate_for_another_backend_is_the_users_mistake():
    with pytest.raises(UsageError, match="is for backend 'cpu'"):
        judge(TASK, Candidate(backend="cpu", source="x"), backend=NullBackend())
