"""Small runs made of domain values; tests name only what they are about."""

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, Roofline, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Outcome, Placement, Proposal, Step, Usage
from kernelsmith.run.config import RunConfig
from kernelsmith.run.journal import Journal, read
from kernelsmith.run.recorded import Header, Judged, Recorded, Stage

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")
DEVICE = Device(kind="null", name="simulated clock", versions=(("judge's clock", "none"),))
ISLANDS = 2


def a_timing(speedup=2.0, *, width=0.02, workload="default"):
    ratio = Ratio(value=speedup, low=speedup * (1 - width), high=speedup * (1 + width))
    pair = Pair(baseline_us=(20.0, 21.0), candidate_us=(20.0 / speedup, 21.0 / speedup))
    timed = WorkloadTiming(workload=workload, pairs=(pair,), speedup=ratio, launches=8)
    return Timing(workloads=(timed,))


def an_evaluation(candidate, *, speedup=2.0, verdict=Verdict.PASSED, message="", **changes):
    passed = verdict is Verdict.PASSED
    usual = {
        "task": TASK.name,
        "candidate": candidate.id,
        "device": DEVICE,
        "verdict": verdict,
        "timing": a_timing(speedup) if passed else None,
        "message": message or ("" if passed else f"it was {verdict.value}"),
        "spent": (("build", 0.5), ("check", 0.25)),
        "judge": "1",
        "rooflines": (
            Roofline(
                workload="default", bytes=4_000_000, flops=2_000_000, floor_us=4.0,
                bandwidth_share=0.4, compute_share=0.01,
            ),
        )
        if passed
        else (),
    }  # fmt: skip
    return Evaluation(**{**usual, **changes})


def a_step(number, *, speedup=None, verdict=None, parent=None, is_best=False, **changes):
    """A step that passed when it has a speed-up, failed when it has a verdict, else rejected."""
    source = changes.pop("source", f"x + y  # us: {20 / (speedup or 1):.4f} at {number}")
    evaluation_changes = changes.pop("evaluation", {})
    candidate = Candidate(backend="null", source=source, parent=parent)
    if speedup is not None:
        verdict = Verdict.PASSED
    judged = None
    if verdict is not None:
        judged = an_evaluation(
            candidate, speedup=speedup or 1.0, verdict=verdict, **evaluation_changes
        )
    island = number % ISLANDS
    if speedup is not None:
        cell = changes.pop("cell", (number % 3, 0))
        placement = Placement(
            outcome=changes.pop("outcome", Outcome.NEW), island=island, cell=cell, score=speedup,
            gained=changes.pop("gained", 0.5), is_best=is_best,
        )  # fmt: skip
    else:
        outcome = Outcome.FAILED if judged else Outcome.REJECTED
        placement = Placement(outcome=changes.pop("outcome", outcome), island=island)
    usage = Usage(input_tokens=1000, output_tokens=200, usd=0.01, seconds=1.0)
    usual = {
        "brief": Brief(number=number, task=TASK, backend="null", island=island, seed=number),
        "proposal": Proposal(
            source=source if judged else None,
            rejection="" if judged else "no code in the reply",
            proposer="rules",
            note=f"attempt {number}",
            usage=usage,
        ),
        "placement": placement,
        "candidate": candidate if judged else None,
        "evaluation": judged,
        "seconds": 1.5,
    }
    return Step(**{**usual, **changes})


def a_line(*speedups):
    """Each step improves on the one before and descends from it."""
    steps, parent = [], None
    for number, speedup in enumerate(speedups):
        step = a_step(number, speedup=speedup, parent=parent, is_best=True)
        parent = step.candidate.id
        steps.append(step)
    return steps


HEADER = Header(
    task=TASK, config=RunConfig(backend="null", seed=7), device=DEVICE, run="add-1",
    started="2026-01-01T00:00:00Z", versions=(("kernelsmith", "0.1.0"),),
)  # fmt: skip


def judgements(steps, final=None):
    """What a run's evaluator said of each step, and of the winner at the end."""
    found = {
        (step.brief.number, Stage.FIRST): Judged(
            stage=Stage.FIRST, candidate=step.candidate, evaluation=step.evaluation
        )
        for step in steps
        if step.evaluation is not None and step.placement.outcome is not Outcome.DUPLICATE
    }
    if final is not None:
        found[len(steps), Stage.FINAL] = final
    return found


def recorded(steps, *, final=None):
    """A journal as it is read, without the file."""
    judged = judgements(steps, final)
    return Recorded(header=HEADER, steps=tuple(steps), judged=judged, elapsed_s=12.0)


def journalled(path, steps, *, final=None):
    """The same through a real file."""
    with Journal.create(path, HEADER) as journal:
        for step in steps:
            for (number, _), judged in judgements([step]).items():
                journal.append_judged(number, judged)
            journal.append_step(step, at_s=12.0)
        if final is not None:
            journal.append_judged(len(steps), final)
    return read(path)
