"""Briefs, steps and families for tests of the rules; tests name only what they are about."""

import asyncio
from dataclasses import dataclass

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Kernel, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Exemplar, Outcome, Placement, Proposal, Role, Step
from kernelsmith.propose.rules.families import Families
from kernelsmith.propose.rules.graph import NotRecognised
from kernelsmith.propose.rules.proposer import RulesProposer
from kernelsmith.propose.rules.space import Parameter, Parameters, Space
from kernelsmith.propose.rules.templates import template_for

DEVICE = Device(kind="cpu", name="test")
H200 = Device(kind="cuda", name="NVIDIA H200")


def a_brief(task, number=0, **changes) -> Brief:
    usual = {"number": number, "task": task, "backend": "cpu", "island": 0, "seed": 7 + number}
    return Brief(**{**usual, **changes})


def a_timing(speed=2.0, us=100.0) -> Timing:
    pair = Pair(baseline_us=(us * speed,), candidate_us=(us,))
    return Timing(workloads=(WorkloadTiming(
        workload="default", pairs=(pair,), launches=1,
        speedup=Ratio(value=speed, low=speed, high=speed),
    ),))  # fmt: skip


def an_exemplar(task, source, verdict=Verdict.PASSED, speed=2.0, **changes) -> Exemplar:
    candidate = Candidate(backend="cpu", source=source)
    passed = verdict is Verdict.PASSED
    evaluation = Evaluation(**{
        "task": task.name, "candidate": candidate.id, "device": DEVICE, "verdict": verdict,
        "timing": a_timing(speed) if passed else None, "message": "" if passed else "why",
        **changes,
    })  # fmt: skip
    return Exemplar(role=Role.PARENT, candidate=candidate, evaluation=evaluation, score=speed)


def a_step(task, source, speed=2.0, *, number=0, verdict=Verdict.PASSED) -> Step:
    told = an_exemplar(task, source, verdict, speed=speed)
    return Step(
        brief=a_brief(task, number), proposal=Proposal(source=source), candidate=told.candidate,
        evaluation=told.evaluation, placement=Placement(outcome=Outcome.NEW, island=0),
    )  # fmt: skip


def rows_and_flat(task: Task, backend: str) -> Families:
    """The oldest family alone: read from the source, without a compiler."""
    try:
        return Families(members=(template_for(task, backend),))
    except NotRecognised as error:
        return Families(reasons=(str(error),))


def a_proposer(backend="cpu", families=rows_and_flat, **more) -> RulesProposer:
    """One that asks no compiler, so that it answers at once."""
    return RulesProposer(backend, families=families, **more)


def proposed(brief, proposer=None) -> Proposal:
    return asyncio.run((proposer or a_proposer()).propose(brief))


def a_kernel(**changes) -> Kernel:
    usual = {
        "name": "rows", "own": True, "launches": 1, "share": 1.0, "registers": 32,
        "shared_bytes": 0, "spills": 0, "grid": (4096, 1, 1), "block": (128, 1, 1),
    }  # fmt: skip
    return Kernel(**{**usual, **changes})


@dataclass(frozen=True)
class Painted:
    """A family without kernels: its text is its parameters, some of which it cannot write."""

    name: str = "painted"
    unwritable: str = ""
    choices: tuple[str, ...] = ("1", "2", "4", "8", "16")
    seeds: tuple[tuple[tuple[str, str], ...], ...] = ((), (("colour", "red"),))
    size: str = "size"

    @property
    def space(self) -> Space:
        return Space(template=self.name, seeds=self.seeds, parameters=(
            Parameter(name=self.size, choices=self.choices, default="4", why="more at a time"),
            Parameter(name="warps", choices=("1", "2", "4", "8"), default="4", why="threads",
                      kernel="paint"),
            Parameter(name="colour", choices=("blue", "red", "green"), default="blue",
                      ordered=False, why="taste", safe="blue"),
        ))  # fmt: skip

    def source(self, chosen: Parameters) -> str:
        if chosen["colour"] == self.unwritable:
            raise NotRecognised(f"{self.name} has no {self.unwritable}")
        listed = f"{self.name} {sorted(chosen.items())}"
        return f"{self.space.header(chosen)}\nclass ModelNew: ...  # {listed}\n"

    def words(self, chosen: Parameters) -> str:
        return f"paints in {chosen['colour']}"


def painted(*members, reasons=()):
    """What a proposer is given to find families with."""

    def find(task: Task, backend: str) -> Families:
        return Families(members=members, reasons=tuple(reasons))

    return find
