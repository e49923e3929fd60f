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


@pytest.mark.parametrize(
    "source", ["-" * 5000 + "x", "x" + "**x" * 3000, "x" + " + x" * 9000, "x\0", "9" * 5000, "'x'"]
)
def test_what_cannot_be_read_does_not_build(source):
    assert judged(source).verdict is Verdict.BUILD_FAILED


@pytest.mark.parametrize("source", ["maximum(x)", "sum(x, 7)", "1 / 0", "maximum", "(0 - x)**1j"])
def test_what_has_no_value_fails_as_the_candidate_and_not_as_the_judge(source):
    assert judged(source).verdict in (Verdict.CRASHED, Verdict.BUILD_FAILED)


def test_numbers_that_would_grow_without_end_are_cut_short():
    found = judged("x + y + 0 * 9**9**9**9")
    assert found.verdict is Verdict.CRASHED
    assert "OverflowError" in found.message


def test_an_expression_cannot_write_into_its_inputs():
    found = judged("maximum(x, y, x) + y")
    assert found.verdict is Verdict.BUILD_FAILED
    assert "too many arguments of maximum" in found.message


def test_a_task_without_a_value_is_the_users_mistake():
    task = Task(name="none", source="x + sum(x, 7)", entry="expression")
    with pytest.raises(UsageError, match="no value: AxisError"):
        judge(task, Candidate(backend="null", source="x"), backend=NullBackend(), settings=QUICK)


def test_a_shortcut_that_needs_positive_inputs_is_wrong():
    task = Task(name="clip", source="maximum(x, 0)", entry="expression")
    candidate = Candidate(backend="null", source="x * 1")
    found = judge(task, candidate, backend=NullBackend(), settings=QUICK)
    assert found.verdict is Verdict.WRONG
    assert "random signs" in found.message


def test_a_candidate_for_another_backend_is_the_users_mistake():
    with pytest.raises(UsageError, match="is for backend 'cpu'"):
        judge(TASK, Candidate(backend="cpu", source="x"), backend=NullBackend())
