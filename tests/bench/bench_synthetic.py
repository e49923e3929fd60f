"""A bench as one might come out: systems, levels, seeds, searches with failures and gains."""

import math

import numpy as np
from bench_records import DEVICE, a_record, ratio

from kernelsmith.bench.record import Archive, Beside, Cost, Point, Rules, Winner
from kernelsmith.domain.candidate import CandidateId
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Verdict

FAMILIES = ("elementwise", "reduction", "softmax", "matmul", "convolution", "normalisation")
OTHER = Device(kind="null", name="elsewhere", versions=(("torch", "2.13"),))


def entries(per_level=12):
    """Entry, level, family, how hard (0 to 1), and the ceiling of the log speed-up."""
    dice = np.random.default_rng(1)
    return [
        (f"kernelbench/level{level}/{number}", level, FAMILIES[number % len(FAMILIES)],
         float(np.clip(dice.normal(0.2 * level, 0.2), 0.02, 0.98)), float(dice.gamma(2, 0.5)))
        for level in (1, 2, 3)
        for number in range(1, per_level + 1)
    ]  # fmt: skip


def a_search(dice, *, skill, hard, ceiling, steps):
    """Points of one search: candidates fail by how hard the task is, and creep to a ceiling."""
    points, best, at = [], None, None
    for step in range(steps):
        luck = dice.random()
        common = {"step": step, "parent": at, "tokens": int(dice.integers(2000, 9000)),
                  "usd": float(dice.uniform(0.01, 0.06)), "seconds": float(dice.uniform(5, 30)),
                  "proposer": "llm"}  # fmt: skip
        if hard > 0.2 + skill * 0.6 or luck > skill * (1 - hard) + (0.25 if at is not None else 0):
            verdict = (Verdict.BUILD_FAILED, Verdict.WRONG, Verdict.CRASHED)[int(luck * 97) % 3]
            points.append(Point(verdict=verdict, outcome="failed", **common))
            continue
        reach = ceiling * skill * (1 - math.exp(-(step + 2) / (4 + 12 * hard)))
        value = math.exp(reach * float(dice.uniform(0.5, 1.0)) - 0.3 * hard)
        is_best = best is None or value > best
        points.append(
            Point(verdict=Verdict.PASSED, outcome="new", speedup=ratio(value), is_best=is_best,
                  gain=None if best is None else ratio(value / best), **common)
        )  # fmt: skip
        if is_best:
            best, at = value, step
    return tuple(points), best, at


def a_bench(*, systems=(("large", 0.95), ("small", 0.7)), per_level=12, steps=40, seeds=3,
            device=DEVICE):  # fmt: skip
    """Records of searching systems, and of ``compile``, which does not search."""
    found = []
    for index, (name, skill) in enumerate(systems):
        for number, (entry, level, family, hard, ceiling) in enumerate(entries(per_level)):
            for seed in range(seeds):
                dice = np.random.default_rng((index, number, seed))
                points, best, at = a_search(
                    dice, skill=skill, hard=hard, ceiling=ceiling, steps=steps
                )
                found.append(_record(name, entry, level, family, seed, points, best, at, device))
    for number, (entry, level, family, _, ceiling) in enumerate(entries(per_level)):
        value = math.exp(0.3 * ceiling * float(np.random.default_rng((9, number)).uniform(-0.3, 1)))
        found.append(
            a_record(
                entrant="compile", entry=entry, suite="kernelbench", level=f"level {level}",
                category=f"kind {level}", family=family, dtype="float32", points=(),
                best_step=None, cost=Cost(), confirmed=True, beside=_beside(value), device=device,
            )
        )  # fmt: skip
    return found


def _record(name, entry, level, family, seed, points, best, at, device):
    passed = best is not None
    spent = Cost(
        tokens=sum(p.tokens for p in points), usd=math.fsum(p.usd for p in points),
        seconds=math.fsum(p.seconds for p in points), judging_s=60.0,
    )  # fmt: skip
    return a_record(
        entrant=name, entry=entry, seed=seed, suite="kernelbench", level=f"level {level}",
        category=f"kind {level}", family=family, dtype="float32" if seed < 9 else "bfloat16",
        name=f"{entry.rsplit('/', 1)[1]}_Task_", note="degenerate: zeros pass within 1e-4"
        if entry.endswith("level2/9") else "",
        rules=Rules(steps=len(points), preset="paper", tests=100),
        verdict=Verdict.PASSED if passed else Verdict.WRONG,
        message="" if passed else "off by 3", confirmed=passed,
        beside=_beside(best * 0.98) if passed else (), points=points, best_step=at, cost=spent,
        archive=Archive(cells=12, coverage=0.05 * min(len(points), 12) / 12, qd_score=3.0),
        winner=Winner(candidate=CandidateId("c0ffee"), path=f"winners/{name}-{seed}.py",
                      sha256=f"{name}-{entry}-{seed}") if passed else None,
        device=device,
    )  # fmt: skip


def _beside(value):
    return (
        Beside(baseline="eager", device=ratio(value), call=ratio(value * 0.97),
               mean=ratio(value * 0.97), tests=100),
        Beside(baseline="compile", device=ratio(value / 1.3), call=ratio(value / 1.3), tests=6),
    )  # fmt: skip
