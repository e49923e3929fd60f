"""What the archive adds: the same recorded proposals, replayed through every search policy.

SYNTHETIC. No kernel is run: a seeded landscape says how fast a design is, and recorded proposals
say what a proposer would do. A recorded proposal is a whole design from scratch and an edit (knobs
moved, sometimes another schedule family, sometimes something borrowed from an inspiration, and
whether it fails). Every policy replays the same list: proposal n is the design where the brief has
no parent, and else the edit, applied to that parent. Policies differ in whom they offer, only.

Designs are written out as Triton-like text, so that the archive's descriptors come from source, as
in a run. Timings carry noise; the table shows the true speed-up of what each policy calls its best.

Three landscapes: ``smooth`` (one slope for all families), ``rugged`` (neighbouring knobs interact),
``deceptive`` (rugged, and families with the higher ceiling are slower until they are tuned).
They show how policies differ, not by how much they would on a device.
"""

import argparse
import hashlib
import math
import random
import statistics
import zlib
from dataclasses import dataclass
from typing import Any

from benchmarks.report import busy_share, options, parse, save, say, table
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Kernel, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief
from kernelsmith.search.config import POLICY_NAMES, SearchConfig
from kernelsmith.search.search import Search

LANDSCAPES = ("smooth", "rugged", "deceptive")
BUDGETS = (40, 160, 512)
IN_FLIGHT = 4
KNOBS, LEVELS = 6, 8
NOISE = 0.01
TASK = Task(name="synthetic", source="x")
DEVICE = Device(kind="null", name="synthetic landscape")

FAMILIES = (
    "y = x * scale + shift",
    "y = x / tl.sum(x, axis=0)",
    "for start in range(0, n, BLOCK): total += tl.sum(tl.load(p + start), axis=0)",
    "for k in range(0, K, BLOCK): acc = tl.dot(a, b, acc)",
    "for tile in range(pid, tiles, tl.num_programs(0)): acc = tl.dot(a, b, acc)",
)


@dataclass(frozen=True)
class Design:
    family: int
    knobs: tuple[int, ...]

    @property
    def source(self) -> str:
        """The text that a proposer would hand in: more unrolling and staging, more code."""
        lines = [f"    a{i} = tl.load(p + {i}) * {knob}" for i, knob in enumerate(self.knobs)]
        unrolled = [f"    b{i} = a0 + {i} * a1" for i in range(4 * sum(self.knobs[:3]))]
        design = f"# design: {self.family} {' '.join(map(str, self.knobs))}"
        body = "\n".join([*lines, *unrolled, f"    {FAMILIES[self.family]}"])
        return f"{design}\nimport triton\n@triton.jit\ndef kernel(p, n):\n{body}\n"

    @staticmethod
    def of(source: str) -> "Design":
        family, *knobs = map(int, source.splitlines()[0].removeprefix("# design:").split())
        return Design(family, tuple(knobs))


@dataclass(frozen=True)
class Proposal:
    """One recorded proposal: what is written from scratch, and what is changed otherwise."""

    scratch: Design
    family: int | None
    moves: tuple[tuple[int, int], ...]
    borrow: tuple[int, int] | None
    """Which inspiration and which knob; no inspiration, nothing borrowed."""
    luck: float

    def applied(self, brief: Brief) -> Design:
        if brief.parent is None:
            return self.scratch
        before = Design.of(brief.parent.candidate.source)
        knobs = list(before.knobs)
        for knob, step in self.moves:
            knobs[knob] = min(max(knobs[knob] + step, 0), LEVELS - 1)
        if self.borrow is not None and brief.inspirations:
            which, knob = self.borrow
            other = brief.inspirations[which % len(brief.inspirations)]
            knobs[knob] = Design.of(other.candidate.source).knobs[knob]
        family = before.family if self.family is None else self.family
        return Design(family, tuple(knobs))


def recorded(seed: int, count: int) -> list[Proposal]:
    draw = random.Random(f"proposals {seed}")
    return [
        Proposal(
            scratch=Design(
                draw.choices(range(len(FAMILIES)), weights=(8, 5, 3, 2, 1))[0],
                tuple(draw.randrange(LEVELS) for _ in range(KNOBS)),
            ),
            family=draw.randrange(len(FAMILIES)) if draw.random() < 0.12 else None,
            moves=tuple(
                (draw.randrange(KNOBS), draw.choice((-2, -1, -1, 1, 1, 2)))
                for _ in range(draw.choice((1, 1, 2, 3)))
            ),
            borrow=(draw.randrange(1000), draw.randrange(KNOBS)) if draw.random() < 0.4 else None,
            luck=draw.random(),
        )
        for _ in range(count)
    ]


class Landscape:
    """From a design to its true speed-up; made up, and the same for the same seed."""

    def __init__(self, kind: str, seed: int) -> None:
        draw = random.Random(f"{kind} {seed}")
        families = range(len(FAMILIES))
        self._ceiling = [0.3 + 0.45 * family + draw.uniform(-0.2, 0.2) for family in families]
        shared = [draw.randrange(LEVELS) for _ in range(KNOBS)]
        same = kind == "smooth"
        self._at = [
            shared if same else [draw.randrange(LEVELS) for _ in range(KNOBS)] for _ in families
        ]
        deceptive = kind == "deceptive"
        self._slope = [2.0 + (1.2 * family if deceptive else 0.0) for family in families]
        rough = 0.0 if same else 0.35
        self._pairs = {
            (family, knob, a, b): draw.gauss(0, rough)
            for family in families
            for knob in range(KNOBS - 1)
            for a in range(LEVELS)
            for b in range(LEVELS)
        }

    def speedup(self, design: Design) -> float:
        family, knobs = design.family, design.knobs
        off = sum(abs(a - b) for a, b in zip(knobs, self._at[family], strict=True))
        together = sum(
            self._pairs[family, knob, knobs[knob], knobs[knob + 1]] for knob in range(KNOBS - 1)
        )
        away = self._slope[family] * off / (KNOBS * (LEVELS - 1)) * 2
        log2 = self._ceiling[family] - away + together / math.sqrt(KNOBS - 1)
        return float(2.0**log2)


def judged(landscape: Landscape, candidate: Candidate, *, luck: float, mends: bool) -> Evaluation:
    """What a judge would say; the same for the same candidate, apart from what the luck fails."""
    design = Design.of(candidate.source)
    common: dict[str, Any] = {"task": TASK.name, "candidate": candidate.id, "device": DEVICE}
    if luck < 0.2 + 0.06 * design.family - (0.15 if mends else 0.0):
        verdict = (Verdict.BUILD_FAILED, Verdict.CRASHED, Verdict.WRONG)[int(luck * 1000) % 3]
        return Evaluation(**common, verdict=verdict, message=f"failed in line {design.knobs[0]}")
    draw = random.Random(zlib.crc32(candidate.source.encode()))
    measured = landscape.speedup(design) * math.exp(draw.gauss(0, NOISE / 2))
    ratio = Ratio(value=measured, low=measured / (1 + NOISE), high=measured * (1 + NOISE))
    pair = Pair(baseline_us=(100.0 * measured,), candidate_us=(100.0,))
    timed = WorkloadTiming(workload="default", pairs=(pair,), speedup=ratio, launches=1)
    kernels = (Kernel(name="kernel", own=True, launches=1 + design.knobs[5] // 3),)
    return Evaluation(
        **common, verdict=Verdict.PASSED, timing=Timing(workloads=(timed,)), kernels=kernels
    )


def replay(config: SearchConfig, kind: str, seed: int) -> dict[str, Any]:
    """Run one policy over one recording; note the true best at every budget."""
    landscape, proposals = Landscape(kind, seed), recorded(seed, max(BUDGETS))
    search = Search(TASK, backend="null", config=config, seed=seed)
    waiting: list[Brief] = []
    at: dict[str, Any] = {}
    while search.told < max(BUDGETS):
        while search.asked < max(BUDGETS) and len(waiting) < IN_FLIGHT:
            waiting.append(search.ask())
        brief = waiting.pop(0)
        proposal = proposals[brief.number]
        candidate = Candidate(backend="null", source=proposal.applied(brief).source)
        evaluation = search.known(candidate.id)
        if evaluation is None:
            mends = brief.parent is not None
            evaluation = judged(landscape, candidate, luck=proposal.luck, mends=mends)
        search.tell(brief, candidate, evaluation)
        if search.told in BUDGETS:
            best = search.best
            true = None if best is None else landscape.speedup(Design.of(best.candidate.source))
            at[str(search.told)] = {
                "speedup": true,
                "score": None if best is None else best.score,
                "coverage": search.coverage,
                "qd_score": search.qd_score,
            }
    return {"seed": seed, "at": at, "fingerprint": search.fingerprint()[:16]}


def summary(runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Median and quartiles over seeds per policy and budget, and who wins seed by seed."""
    rows = []
    for budget in map(str, BUDGETS):
        for policy, each in runs.items():
            found = [run["at"][budget]["speedup"] or 0.0 for run in each]
            ours = [run["at"][budget]["speedup"] or 0.0 for run in runs["evolve"]]
            low, middle, high = statistics.quantiles(found, n=4) if len(found) > 1 else found * 3
            rows.append(
                {
                    "budget": int(budget),
                    "policy": policy,
                    "median": middle,
                    "quartiles": [low, high],
                    "mean_score": statistics.fmean(
                        run["at"][budget]["score"] or 0.0 for run in each
                    ),
                    "evolve_wins": sum(a > b * 1.01 for a, b in zip(ours, found, strict=True)),
                    "evolve_loses": sum(b > a * 1.01 for a, b in zip(ours, found, strict=True)),
                    "qd_score": statistics.median(run["at"][budget]["qd_score"] for run in each),
                }
            )
    return rows


def by_seed(runs: dict[str, list[dict[str, Any]]]) -> dict[str, dict[str, list[float | None]]]:
    """The true speed-ups behind the summary, in the order of the seeds."""
    return {
        policy: {str(at): [run["at"][str(at)]["speedup"] for run in each] for at in BUDGETS}
        for policy, each in runs.items()
    }


def show(kind: str, rows: list[dict[str, Any]], seeds: int) -> None:
    print(f"\n{kind} landscape (synthetic): true speed-up of the best, {seeds} seeds")
    shown = [
        [f"{row['budget']} proposals, {row['policy']}", f"{row['median']:.2f}x",
         f"{row['quartiles'][0]:.2f} to {row['quartiles'][1]:.2f}", f"{row['mean_score']:.2f}",
         f"{row['evolve_wins']}:{row['evolve_loses']}", f"{row['qd_score']:.0f}"]
        for row in rows
    ]  # fmt: skip
    head = ["budget and policy", "median", "quartiles", "mean score", "evolve won:lost", "qd"]
    print(table(head, shown))


def main() -> None:
    parser = options(__doc__ or "", count=20, quick=3, unit="seeds")
    args: argparse.Namespace = parse(parser)
    busy = busy_share(0.5)
    body: dict[str, Any] = {"synthetic": True, "landscapes": {}, "in_flight": IN_FLIGHT}
    digest = hashlib.sha256()
    for kind in LANDSCAPES:
        runs = {
            policy: [replay(SearchConfig(policy=policy), kind, seed) for seed in range(args.count)]
            for policy in POLICY_NAMES
        }
        rows = summary(runs)
        show(kind, rows, args.count)
        body["landscapes"][kind] = {"summary": rows, "speedups_by_seed": by_seed(runs)}
        digest.update(repr(runs).encode())
        say(f"{kind}: done")
    body["digest"] = digest.hexdigest()
    save("policies", args, DEVICE, body, busy=busy)


if __name__ == "__main__":
    main()
