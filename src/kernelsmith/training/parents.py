"""Parents that a set brings without their evaluation: judged once, and kept as they come."""

import asyncio
from collections.abc import Callable, Sequence

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost
from kernelsmith.training.published import imported
from kernelsmith.training.recipes.judging import Opened
from kernelsmith.training.recipes.store import Remembering, Store
from kernelsmith.training.tables import Record

Parent = tuple[Task, Candidate]


def parents_in(records: Sequence[Record], backend: str) -> list[Parent]:
    """Each program that a question wants improved and nobody has measured, once."""
    found: dict[Parent, None] = {}

    def noted(task: Task, candidate: Candidate) -> None:
        found[task, candidate] = None

    imported(records, backend=backend, judge=noted)
    return list(found)


async def judge_parents(
    parents: Sequence[Parent], opened: Opened, store: Store, *, in_flight: int,
    say: Callable[[str], None],
) -> None:  # fmt: skip
    """Have all of them in the store, those that are not there yet; a call that was left goes on.

    One whose evaluation is lost is said and stays out; the next call asks again.
    """
    new = [each for each in parents if store.get(each[0], each[1].id) is None]
    if len(new) < len(parents):
        say(f"{len(parents) - len(new)} of {len(parents)} parents were judged before")
    evaluator, room, done = Remembering(opened.evaluator, store), asyncio.Semaphore(in_flight), 0

    async def judge(task: Task, candidate: Candidate) -> None:
        nonlocal done
        async with room:
            try:
                found = (await evaluator.evaluate(task, candidate)).verdict.value
            except EvaluationLost as error:
                found = f"not judged: {error}"
        done += 1
        say(f"parent {done} of {len(new)}, {task.name}: {found}")

    try:
        await asyncio.gather(*(judge(*each) for each in new))
    finally:
        await opened.close()
