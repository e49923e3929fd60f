"""Inputs that a task did not think of may end its reference's device; it is opened again."""

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task, Workload
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.null import NullBackend, NullOracle
from kernelsmith.evaluate.cuda.oracle import DeviceOracle
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.failure import ReferenceBroken
from kernelsmith.evaluate.values import InputSet
from kernelsmith.testing import QUICK

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")
ASSERTED = "torch.AcceleratorError: CUDA error: device-side assert triggered"


class Asserting:
    """A child whose kernels assert on every question that is named."""

    alive = True

    def __init__(self, *questions: str) -> None:
        self.questions, self.asked = questions, 0

    def call(self, message, *, timeout_s, fds=()):
        self.asked += 1
        if message["do"] in self.questions:
            return {"error": ASSERTED}
        if message["do"] == "inputs":
            one = {"id": self.asked, "tree": [], "keywords": False, "leaves": [], "paths": []}
            return {"sets": [one for _ in message["seeds"]]}
        return {"reasons": [], "runs": [], "missing": [], "workloads": [], "statistic": False,
                "torch": "2.11"}  # fmt: skip


def opened(*questions: str) -> DeviceOracle:
    return DeviceOracle(Asserting(*questions), TASK, threads=1)


def test_inputs_that_broke_the_reference_are_not_drawn_again():
    oracle = opened("answers")
    sets = oracle.inputs([1], "negative")
    with pytest.raises(ReferenceBroken, match="negative"):
        oracle.answers(sets)
    assert oracle.avoided == {"negative"}
    assert not oracle.is_open
    oracle.release()  # there is nobody to ask
    again = opened("answers")
    again.avoided = oracle.avoided
    assert again.inputs([1], "negative") is None
    assert again.inputs([1], "wide") is not None


def test_a_reference_that_asserts_on_its_own_inputs_fails():
    oracle = opened("answers")
    with pytest.raises(UsageError, match="device-side assert"):
        oracle.answers(oracle.inputs([1]))
    assert oracle.avoided == set()


@pytest.mark.parametrize("question", ["needs", "examine", "shifted"])
def test_questions_that_broke_it_have_an_answer_without_asking(question):
    chosen = InputSet(id=7, tree=[], keywords=False, leaves=(), paths=())

    def ask(oracle: DeviceOracle):
        if question == "needs":
            return oracle._ask({"do": "needs", "id": 7, "seed": 1})
        return oracle.degenerate([chosen]) if question == "examine" else oracle.shifted(chosen)

    oracle = opened(question)
    with pytest.raises(ReferenceBroken, match=question):
        ask(oracle)
    again = opened(question)
    again.avoided = oracle.avoided
    if question == "needs":
        assert again.needs(Workload(name="only"), lambda: 1) == (0, None)
    else:
        assert ask(again) == []


class Fragile(NullBackend):
    """Its references break on some variants, each once."""

    def __init__(self, breaks: int) -> None:
        super().__init__()
        self.left, self.opened = breaks, 0

    def oracle(self, task: Task):
        self.opened += 1
        oracle = NullOracle(task)
        usual = oracle.inputs

        def inputs(seeds, variant="plain"):
            if variant == "negative" and self.left:
                self.left -= 1
                raise ReferenceBroken("a kernel of the reference asserts on negative")
            return usual(seeds, variant)

        oracle.inputs = inputs
        return oracle


def test_a_broken_reference_is_opened_again_as_often_as_it_takes():
    backend = Fragile(breaks=5)
    with LocalEvaluator(backend, QUICK) as evaluator:
        found = evaluator.judge(TASK, Candidate(backend="null", source="y + x  # us: 10"))
    assert found.verdict is Verdict.PASSED
    assert backend.opened == 6
