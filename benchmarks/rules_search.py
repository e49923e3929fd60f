"""How soon the rules' search finds what is there: real parameter spaces, made-up times.

SYNTHETIC. No kernel is run: spaces, starts, texts and the whole loop of search and proposer are
those of ``kernelsmith optimize``, and a seeded landscape says how fast a variant is. An optimum is
near each family's defaults (as it is where somebody has thought of them), parameters matter
unequally, some act together, some values fail. Shown is the true speed of what the search takes
for its best, as a share of the best that climbing the landscape itself finds. It says what a change
of the proposer does to a search, not by how much kernels become faster.
"""

import argparse
import asyncio
import math
import random
import statistics
import time
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import ROOT, busy_share, options, parse, save, say, table
from kernelsmith.api import load_task
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Outcome, Placement, Proposal, Step
from kernelsmith.propose.rules.families import Families, templates_only
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.space import Parameters, Space
from kernelsmith.search.config import SearchConfig
from kernelsmith.search.search import Search

TASKS = (
    "batched_matmul", "causal_attention", "transposed_conv2d", "lstm_sequence", "logsumexp",
    "distillation_loss",
)  # fmt: skip
STEPS = (1, 5, 10, 20, 40)
IN_FLIGHT = 4
NOISES = (0.01, 0.07)
"""What measurements are off by: on a GPU at a glance, and on a processor that others use."""
DEVICE = Device(kind="cuda", name="NVIDIA H200")


class Landscape:
    """From a variant to its true speed-up, or to no kernel at all; the same for the same seed."""

    def __init__(self, families: Families, seed: int) -> None:
        self._spaces = families.spaces
        self._draw = random.Random(f"landscape {seed}")
        self._of = {name: self._one(space) for name, space in sorted(self._spaces.items())}

    def _one(self, space: Space) -> dict[str, Any]:
        draw = self._draw
        free = [each for each in space.parameters if len(each.choices) > 1]
        names = [each.name for each in free]
        goal = {}
        for each in free:
            at = each.choices.index(each.default)
            far = round(draw.gauss(0, 1.2)) if each.ordered else draw.choice((0, 0, 0, 1, 2))
            goal[each.name] = min(max(at + far, 0), len(each.choices) - 1)
        pairs = [draw.sample(names, 2) for _ in names] if len(names) > 1 else []
        doomed = {
            (each.name, draw.choice(each.choices)) for each in draw.sample(free, min(2, len(free)))
        }
        return {
            "ceiling": draw.uniform(0.2, 1.0),
            "goal": goal,
            "weight": {each: draw.lognormvariate(-2.5, 1.0) for each in names},
            "pairs": [(*sorted(pair), draw.gauss(0, 0.06)) for pair in pairs],
            "doomed": {(n, v) for n, v in doomed if v != dict(space.defaults)[n]},
        }

    def speedup(self, family: str, chosen: Parameters) -> float | None:
        """Its true speed-up; none where it does not build."""
        space, found = self._spaces[family], self._of[family]
        if any((name, value) in found["doomed"] for name, value in chosen.items()):
            return None
        off = {}
        for each in space.parameters:
            if each.name in found["goal"]:
                at = each.choices.index(chosen[each.name]) - found["goal"][each.name]
                off[each.name] = abs(at) if each.ordered else min(1, abs(at))
        away = sum(found["weight"][name] * apart**1.5 for name, apart in off.items())
        together = sum(
            strength * math.sin(2.1 * off[a] + 3.7 * off[b]) for a, b, strength in found["pairs"]
        )
        return math.exp(found["ceiling"] - away + together)

    def best(self) -> float:
        """The highest of what climbing from many places finds, one parameter at a time."""
        draw, found = random.Random("climb"), 0.0
        for name, space in self._spaces.items():
            places = [dict(each) for each in space.starts]
            places += [
                {each.name: draw.choice(each.choices) for each in space.parameters}
                for _ in range(40)
            ]
            found = max([found, *(self._climbed(name, space, each) for each in places)])
        return found

    def _climbed(self, name: str, space: Space, chosen: dict[str, str]) -> float:
        now = self.speedup(name, chosen) or 0.0
        while True:
            near = [
                dict(chosen) | {each.name: value}
                for each in space.parameters
                for value in each.choices
            ]
            best = max(near, key=lambda each: self.speedup(name, each) or 0.0)
            if (self.speedup(name, best) or 0.0) <= now:
                return now
            chosen, now = best, self.speedup(name, best) or 0.0


@dataclass(frozen=True)
class Played:
    """A run: the true speed of its best after so many steps, and how its steps ended."""

    at: dict[int, float]
    outcomes: Counter[str]
    seconds: float


def judged(
    task: Task, families: Families, landscape: Landscape, candidate: Candidate, noise: float
) -> Evaluation:
    """What a judge would say, the same for the same candidate."""
    common: dict[str, Any] = {"task": task.name, "candidate": candidate.id, "device": DEVICE}
    owner = families.owner(candidate.source)
    assert owner is not None
    true = landscape.speedup(owner.name, owner.chosen)
    if true is None:
        return Evaluation(**common, verdict=Verdict.BUILD_FAILED, message="out of resources")
    draw = random.Random(zlib.crc32(candidate.source.encode()))
    seen = true * math.exp(draw.gauss(0, noise))
    ratio = Ratio(value=seen, low=seen / (1 + 2 * noise), high=seen * (1 + 2 * noise))
    pair = Pair(baseline_us=(1000.0 * seen,), candidate_us=(1000.0,))
    timed = WorkloadTiming(workload="default", pairs=(pair,), speedup=ratio, launches=1)
    return Evaluation(**common, verdict=Verdict.PASSED, timing=Timing(workloads=(timed,)))


async def played(task: Task, families: Families, seed: int, noise: float) -> Played:
    """Forty steps, four in flight, as a run takes them."""
    landscape = Landscape(families, seed)
    search = Search(task, backend="triton", config=SearchConfig(), seed=seed, device=DEVICE)
    proposer = RulesProposer("triton", families=lambda *_: families, in_flight=IN_FLIGHT)
    waiting: list[tuple[Brief, asyncio.Task[Proposal]]] = []
    at: dict[int, float] = {}
    outcomes: Counter[str] = Counter()
    begun = time.monotonic()
    while search.told < max(STEPS):
        while search.asked < max(STEPS) and len(waiting) < IN_FLIGHT:
            brief = search.ask()
            waiting.append((brief, asyncio.create_task(proposer.propose(brief))))
        brief, writing = waiting.pop(0)
        step = told(search, brief, await writing, task, families, landscape, noise)
        outcomes[step.placement.outcome.value] += 1
        proposer.learn(step)
        best = search.best
        if search.told in STEPS and best is not None:
            owner = families.owner(best.candidate.source)
            assert owner is not None
            at[search.told] = landscape.speedup(owner.name, owner.chosen) or 0.0
    top = landscape.best()
    return Played(
        at={step: at.get(step, 0.0) / top for step in STEPS}, outcomes=outcomes,
        seconds=time.monotonic() - begun,
    )  # fmt: skip


def told(
    search: Search, brief: Brief, proposal: Proposal, task: Task, families: Families,
    landscape: Landscape, noise: float,
) -> Step:  # fmt: skip
    """Judge what was written, and tell the search."""
    candidate = evaluation = None
    if proposal.source is not None:
        candidate = Candidate(backend="triton", source=proposal.source)
        evaluation = search.known(candidate.id)
        evaluation = evaluation or judged(task, families, landscape, candidate, noise)
    placement: Placement = search.tell(brief, candidate, evaluation, rejection=proposal.rejection)
    return Step(
        brief=brief, proposal=proposal, placement=placement, candidate=candidate,
        evaluation=evaluation,
    )  # fmt: skip


def main() -> None:
    parser = options(__doc__ or "", count=12, quick=2, unit="landscapes a task")
    parser.add_argument("--only", nargs="+", metavar="TASK", default=TASKS)
    args: argparse.Namespace = parse(parser)
    busy = busy_share(0.5)
    body: dict[str, Any] = {"synthetic": True, "in_flight": IN_FLIGHT, "noise": {}}
    for noise in NOISES:
        runs = {name: _runs(ROOT / "tasks" / f"{name}.py", args.count, noise) for name in args.only}
        rows = [_row(name, each) for name, each in runs.items()]
        rows.append(_row("all", [run for each in runs.values() for run in each]))
        say(f"\nsynthetic times, off by {noise:.0%}; {args.count} landscapes a task")
        print(table(["best after", *map(str, STEPS), "duplicates", "seconds"], rows))
        body["noise"][str(noise)] = {
            name: [{"at": run.at, "outcomes": run.outcomes} for run in each]
            for name, each in runs.items()
        }
    save("rules-search", args, DEVICE, body, busy=busy)


def _runs(path: Path, count: int, noise: float) -> list[Played]:
    task = load_task(path)
    families = templates_only(task, "triton")
    return [asyncio.run(played(task, families, seed, noise)) for seed in range(count)]


def _row(name: str, runs: list[Played]) -> list[str]:
    shares = [f"{statistics.fmean(run.at[step] for run in runs):.3f}" for step in STEPS]
    twice = statistics.fmean(run.outcomes[Outcome.DUPLICATE.value] for run in runs)
    return [name, *shares, f"{twice:.1f}", f"{statistics.fmean(run.seconds for run in runs):.1f}"]


if __name__ == "__main__":
    main()
