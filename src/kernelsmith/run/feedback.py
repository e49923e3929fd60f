"""What became of a candidate, for whoever wrote it."""

from pathlib import Path

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.trajectory import Step
from kernelsmith.run.agency import Answer, orders_of
from kernelsmith.run.journal import read
from kernelsmith.run.start import JOURNAL


def in_words(answer: Answer) -> str:
    """A few lines: verdict, ratio or reason, what the archive did."""
    lines = [f"brief {answer.number}: {_verdict(answer)}"]
    if answer.evaluation is not None:
        lines += _facts(answer.evaluation)
    if answer.step is not None:
        lines.append(_placed(answer.step))
    elif answer.waiting_for is not None:
        lines.append(f"search hears of it once brief {answer.waiting_for} has been answered")
    return "\n".join(lines)


def as_json(answer: Answer) -> dict[str, object]:
    """The same as values."""
    found = answer.evaluation
    ratio = found.timing.speedup if found is not None and found.timing is not None else None
    said: dict[str, object] = {
        "number": answer.number,
        "verdict": _verdict(answer),
        "message": found.message if found is not None else "",
        "speedup": None if ratio is None else [ratio.value, ratio.low, ratio.high],
        "labels": [] if found is None else [label.name.value for label in found.labels],
        "waiting_for": answer.waiting_for,
    }
    if answer.step is not None:
        placement = answer.step.placement
        said |= {
            "outcome": placement.outcome.value,
            "score": placement.score,
            "is_best": placement.is_best,
            "rejection": answer.step.proposal.rejection,
        }
    return said


def status(folder: Path) -> dict[str, object]:
    """Where a run stands."""
    recorded = read(folder / JOURNAL)
    best: Step | None = None
    for step in recorded.steps:
        best = step if step.placement.is_best else best
    verdicts: dict[str, int] = {}
    for step in recorded.steps:
        name = (
            step.evaluation.verdict.value
            if step.evaluation is not None
            else step.placement.outcome.value
        )
        verdicts[name] = verdicts.get(name, 0) + 1
    orders = orders_of(folder)
    timing = best.evaluation.timing if best is not None and best.evaluation is not None else None
    return {
        "task": recorded.header.task.name,
        "backend": recorded.config.backend,
        "steps": len(recorded.steps),
        "budget": recorded.config.budget.steps,
        "verdicts": verdicts,
        "best": None if timing is None else str(timing.speedup),
        "best_step": None if best is None else best.brief.number,
        "waiting": [order.number for order in orders if not order.agent],
        "claimed": [f"{order.number} by {order.agent}" for order in orders if order.agent],
    }


def _verdict(answer: Answer) -> str:
    if answer.evaluation is not None:
        return answer.evaluation.verdict.value
    if answer.step is not None:
        return answer.step.placement.outcome.value
    return "not judged yet"


def _facts(found: Evaluation) -> list[str]:
    lines = []
    if found.timing is not None:
        lines.append(f"speed-up over {found.timing.baseline}: {found.timing.speedup}")
        lines += [
            f"  {each.workload}: {each.baseline_us:.2f} us -> {each.median_us:.2f} us, "
            f"{each.speedup}"
            for each in found.timing.workloads
        ]
    if found.message:
        lines.append(found.message)
    lines += [
        f"label {label.name.value}{f': {label.reason}' if label.reason else ''}"
        for label in found.labels
    ]
    return lines


def _placed(step: Step) -> str:
    placement = step.placement
    if step.proposal.rejection:
        return f"no candidate in the reply: {step.proposal.rejection}"
    score = "" if placement.score is None else f", score {placement.score:.3f}"
    best = "; the best so far" if placement.is_best else ""
    gain = "" if step.gain is None else f"; {step.gain} over its parent"
    return f"archive: {placement.outcome.value}{score}{best}{gain}"
