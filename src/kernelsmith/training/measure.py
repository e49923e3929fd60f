"""How good a model is at improving: proposals on held-out questions, then evolutions.

Everything goes the way it goes in a run: through a server, a proposer and an evaluator. Figures are
means over tasks, with intervals over tasks and then over answers (``bench/numbers/statistics.py``).
"""

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from kernelsmith.bench.numbers.resampling import Draws, Grid
from kernelsmith.bench.numbers.statistics import Estimate, estimate, mean
from kernelsmith.domain.trajectory import Brief
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL
from kernelsmith.training.data.rows import Row
from kernelsmith.training.recipes.judging import Judging
from kernelsmith.training.reward.trial import Trial

_AT_A_TIME = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """One model's figures on held-out tasks."""

    name: str
    answers: int
    readable: Estimate | None
    """Share of replies that hold a program."""
    correct: Estimate | None
    """Share of replies that pass the judge."""
    faster: Estimate | None
    """Share that is faster than the parent beyond the interval."""
    gain: Estimate | None
    """Speed-up over the parent of what passes, geometric mean."""
    kept: Estimate | None
    """What one step of search keeps: the speed-up over the parent where it is above 1, else 1."""
    best: Estimate | None = None
    """Score of the best after the evolutions; none where there were none."""


def ask_all(
    proposer: Proposer, rows: Sequence[Row], judging: Judging, *, samples: int = 4, seed: int = 0
) -> list[tuple[str, Trial]]:
    """Have every held-out question answered ``samples`` times, and judge the answers."""
    asked = [
        (row.task, replace(row.asked, seed=seed + 7919 * index + number))
        for index, row in enumerate(rows)
        for number in range(samples)
    ]
    return asyncio.run(_asked(proposer, asked, judging))


async def _asked(
    proposer: Proposer, asked: Sequence[tuple[str, Brief]], judging: Judging
) -> list[tuple[str, Trial]]:
    room = asyncio.Semaphore(_AT_A_TIME)

    async def one(task: str, brief: Brief) -> tuple[str, Trial]:
        async with room:
            proposal = await proposer.propose(brief)
            if proposal.source is None:
                return task, Trial(rejection=proposal.rejection)
            ticket = judging.submit(brief, proposal.reply)
            return task, await asyncio.wrap_future(ticket)

    return list(await asyncio.gather(*(one(*each) for each in asked)))


def skill_of(
    name: str, trials: Sequence[tuple[str, Trial]],
    best: Mapping[str, Sequence[float]] | None = None, *, seed: int = 0,
) -> Skill:  # fmt: skip
    """Figures from judged answers, and from the best scores of evolutions by task."""
    judged = [(task, each) for task, each in trials if not each.lost]
    ratios = {id(each): each.over_parent for _, each in judged if each.correct}

    def figure(value: "dict[int, float]", bounds: tuple[float, float] | None = None,
               log: bool = False) -> Estimate | None:  # fmt: skip
        rows: dict[str, list[float]] = {}
        for task, each in judged:
            rows.setdefault(task, []).append(value.get(id(each), math.nan))
        return _estimated(list(rows.values()), seed, bounds, log=log)

    return Skill(
        name=name, answers=len(trials),
        readable=figure({id(e): float(not e.rejection) for _, e in judged}, (0.0, 1.0)),
        correct=figure({id(e): float(e.correct) for _, e in judged}, (0.0, 1.0)),
        faster=figure(
            {id(e): float((r := ratios.get(id(e))) is not None and r.is_faster) for _, e in judged},
            (0.0, 1.0),
        ),
        gain=figure({key: math.log(r.value) for key, r in ratios.items() if r}, log=True),
        kept=figure({id(e): max(1.0, r.value) if (r := ratios.get(id(e))) else 1.0
                     for _, e in judged}),
        best=None if best is None else _estimated([list(each) for each in best.values()], seed),
    )  # fmt: skip


def _estimated(
    rows: list[list[float]], seed: int, bounds: tuple[float, float] | None = None, *,
    log: bool = False,
) -> Estimate | None:  # fmt: skip
    if not rows:
        return None
    grid = Grid.of(rows)
    draws = Draws.of(grid.seeds, np.random.default_rng(seed))
    return estimate(grid, mean, draws, bounds=bounds, scale=math.exp if log else float)


def best_scores(folder: Path) -> dict[str, list[float]]:
    """The best score of every run below a folder, by task; 0 where nothing passed."""
    found: dict[str, list[float]] = {}
    for path in sorted(folder.rglob(JOURNAL)):
        recorded = read(path)
        scores = [step.placement.score or 0.0 for step in recorded.steps if step.passed]
        found.setdefault(recorded.header.task.name, []).append(max(scores, default=0.0))
    return found


def table_of(skills: Sequence[Skill]) -> str:
    """A table for people, in Markdown."""
    head = ("model", "answers", "readable", "correct", "faster than parent", "gain of correct",
            "kept per step", "best score")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for each in skills:
        figures = (each.readable, each.correct, each.faster, each.gain, each.kept, each.best)
        cells = (each.name, str(each.answers), *(_said(figure) for figure in figures))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def to_json(skills: Sequence[Skill]) -> str:
    """The same for machines."""
    return json.dumps([asdict(each) for each in skills], indent=1)


def _said(value: Estimate | None) -> str:
    if value is None:
        return "-"
    if value.low is None or value.high is None:
        return f"{value.value:.3f}"
    return f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
