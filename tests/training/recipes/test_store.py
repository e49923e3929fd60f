"""What was judged is not judged again, in this process or the next."""

import asyncio

from training_parts import a_task

from kernelsmith.domain.candidate import Candidate
from kernelsmith.run.simulated import JUDGE, SimulatedEvaluator
from kernelsmith.training.recipes.store import Remembering, Store

TASK = a_task(source="x + y")
CHILD, PARENT = (Candidate(backend="null", source=each) for each in ("y + x", "x + y + 0"))


class Counted(SimulatedEvaluator):
    asked = 0

    async def evaluate(self, task, candidate, *, baseline=None):
        self.asked += 1
        return await super().evaluate(task, candidate, baseline=baseline)


def test_what_the_store_knows_is_not_judged_again(tmp_path):
    judge, path = Counted(), tmp_path / "known.jsonl"
    first = Store(path, judge=JUDGE)
    found = asyncio.run(Remembering(judge, first).evaluate(TASK, CHILD))
    assert asyncio.run(Remembering(judge, first).evaluate(TASK, CHILD)) == found
    first.close()
    again = Store(path, judge=JUDGE)
    assert asyncio.run(Remembering(judge, again).evaluate(TASK, CHILD)) == found
    assert judge.asked == 1
    again.close()


def test_another_task_or_a_baseline_is_another_question(tmp_path):
    judge, store = Counted(), Store(tmp_path / "known.jsonl", judge=JUDGE)
    remembering = Remembering(judge, store)
    asyncio.run(remembering.evaluate(TASK, CHILD))
    asyncio.run(remembering.evaluate(a_task("other", "x + y"), CHILD))
    for _ in range(2):
        asyncio.run(remembering.evaluate(TASK, CHILD, baseline=PARENT))
    assert judge.asked == 4
    store.close()
