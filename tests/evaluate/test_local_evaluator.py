"""One evaluator, asked by several at once."""

import asyncio
from dataclasses import replace

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Library, Task
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule

QUICK = Settings(
    stop=StopRule(target_width=1.0, min_pairs=1, max_pairs=1, min_samples=3),
    sample_us=500.0, max_launches=8, robust=False,
)  # fmt: skip
TASK = Task(
    name="scaled",
    library=Library.ANY,
    source="""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(64))
    def forward(self, x):
        return x * self.weight
def get_inputs():
    return [torch.randn(64, 64)]
""",
)
RIGHT = TASK.source.replace("class Model", "class ModelNew")
WRONG = RIGHT.replace("x * self.weight", "x * self.weight + 1")


def test_those_who_ask_at_the_same_time_get_an_answer_of_their_own_each():
    sources = [f"{each}\n# {index}\n" for index in range(3) for each in (RIGHT, WRONG)]
    asked = [Candidate(backend="cpu", source=each) for each in sources]

    messages = []

    async def all_at_once(evaluator: LocalEvaluator) -> list[Verdict]:
        found = await asyncio.gather(*(evaluator.evaluate(TASK, each) for each in asked))
        messages.extend(each.message for each in found)
        return [each.verdict for each in found]

    with LocalEvaluator("cpu", replace(QUICK, static=False)) as evaluator:
        evaluator.judge(TASK, asked[0])  # the reference is open now, and all share it
        said = asyncio.run(all_at_once(evaluator))
    assert said == [Verdict.PASSED, Verdict.WRONG] * 3, messages


def references_of(evaluator: LocalEvaluator) -> list[object]:
    return [each._oracle for each in evaluator._judges.values()]


def test_a_task_that_differs_only_in_what_may_be_called_keeps_its_reference():
    with LocalEvaluator("cpu", replace(QUICK, static=False)) as evaluator:
        right = Candidate(backend="cpu", source=RIGHT)
        strict = replace(TASK, library=Library.NONE)
        assert evaluator.judge(strict, right).verdict is Verdict.CHEATED  # all of it is torch's
        opened = references_of(evaluator)
        assert evaluator.judge(TASK, right).verdict is Verdict.PASSED
        assert references_of(evaluator) == opened
        evaluator.judge(replace(TASK, name="another"), right)
        assert references_of(evaluator)[-1] is not opened[0]


def test_an_evaluator_goes_on_with_the_references_of_another():
    with (
        LocalEvaluator("cpu", replace(QUICK, static=False)) as first,
        LocalEvaluator("cpu", replace(QUICK, static=False)) as second,
    ):
        assert first.judge(TASK, Candidate(backend="cpu", source=RIGHT)).verdict is Verdict.PASSED
        opened = references_of(first)
        second.adopt(first)
        assert references_of(first) == []
        wrong = Candidate(backend="cpu", source=WRONG)
        assert second.judge(TASK, wrong).verdict is Verdict.WRONG
        assert references_of(second) == opened
        assert first.judge(TASK, wrong).verdict is Verdict.WRONG  # with one of its own
