"""A small bench for tests: null tasks, recorded proposals, a plan."""

import random

from kernelsmith.bench.entrant import searching
from kernelsmith.bench.plan import Plan
from kernelsmith.bench.suite import Absent, Entry
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Proposal, Usage
from kernelsmith.propose.replay import write_jsonl
from kernelsmith.run.config import Budget, ProposerSpec, Remeasure, RunConfig, dump_config

STEPS = 6


class NullSuite:
    """Three tasks in two levels, and one that cannot be had."""

    name = "nulls"

    def __init__(self, count=3, source="x + y  # us: 100"):
        self._count, self._source = count, source

    def entries(self):
        for number in range(self._count):
            task = Task(name=f"t{number}", source=self._source, entry="expression")
            level = f"level {1 + number // 2}"
            yield Entry(id=f"nulls/t{number}", task=task, level=level, family="sum", dtype="f64")
        yield Absent(id="nulls/gone", reason="needs a package")


def a_recording(path, *, seed=0, usd=None, steps=STEPS, kinds=None):
    """Proposals of all kinds: right ones of several speeds, wrong, broken, none."""
    rng = random.Random(seed)
    usual = ["x - y", "x +", None, "y + x  # us: {}", "x + y + 0  # us: {}", "y + x  # us: {}"]
    proposals = []
    for number, kind in enumerate((kinds or usual)[:steps]):
        usage = Usage(input_tokens=100, output_tokens=10, usd=usd)
        if kind is None:
            proposals.append(Proposal(source=None, rejection="no code", usage=usage))
            continue
        source = kind.format(round(90 - 8 * number + rng.random(), 2)) + f"  # {seed}"
        proposals.append(Proposal(source=source, proposer="model", usage=usage))
    write_jsonl(path, proposals)
    return path


def a_config(**changes):
    usual = dict(
        backend="null", concurrency=2, grace_s=5.0, budget=Budget(steps=STEPS),
        remeasure=Remeasure(gain=True),
    )  # fmt: skip
    return RunConfig(**{**usual, **changes})


def a_plan(*recordings, **changes):
    """One entrant for each recording."""
    config = changes.pop("config", None) or a_config()
    usual = dict(
        suite="builtin",
        entrants=tuple(
            searching(ProposerSpec(kind="replay", path=str(path))) for path in recordings
        ),
        config=dump_config(config),
    )
    return Plan(**{**usual, **changes})


def quiet(status):
    """Watch nothing."""
