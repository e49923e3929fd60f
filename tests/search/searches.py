"""Small searches, told made-up evaluations."""

import random

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.search import Search
from kernelsmith.testing import a_failure, a_pass

TASK = Task(name="test", source="x + y")


def a_search(seed=0, **changes):
    return Search(TASK, backend="null", config=SearchConfig(**changes), seed=seed)


def told(search, pair):
    """Ask once and tell ``pair`` at once."""
    return search.tell(search.ask(), *pair)


def a_pair(brief, *, size=2, passes=0.7):
    """What a proposer and a judge would make of a brief: a function of the brief alone."""
    draw = random.Random(brief.seed)
    source = "+".join("x" * draw.randint(1, 50 * size)) + f"  # {draw.randrange(10**9)}"
    if draw.random() > passes:
        verdict = draw.choice([Verdict.WRONG, Verdict.BUILD_FAILED, Verdict.CRASHED])
        return a_failure(source, verdict, f"line {draw.randint(1, 40)}\nand more")
    before = 1.0 if brief.parent is None else 2 ** (brief.parent.score - 1) - 1
    speedup = max(before, 0.05) * draw.lognormvariate(0.0, 0.3)
    return a_pass(source, speedup, spread=0.02 * draw.random())


def run(search, steps, *, in_flight=1, size=2):
    """Take ``steps`` steps with so many briefs in flight; return the placements."""
    waiting, placements, last = [], [], search.told + steps
    while len(placements) < steps:
        while search.asked < last and len(waiting) < in_flight:
            waiting.append(search.ask())
        brief = waiting.pop(0)
        placements.append(search.tell(brief, *a_pair(brief, size=size)))
    return placements
