"""The few words that a small model reads about a brief: numbers rounded, names in one order."""

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.trajectory import Brief, Message
from kernelsmith.training.data.sample import speedup_of
from kernelsmith.training.data.steps import operators_of

_MOST_OPERATORS = 12
SYSTEM = "Improve the kernel by one edit."


def asked(*lines: str) -> tuple[Message, ...]:
    """One message of the system, one of the user."""
    said = "\n".join(line for line in lines if line)
    return Message(role="system", content=SYSTEM), Message(role="user", content=said)


def about(brief: Brief) -> str:
    """Task, what it calls, and the device, in one line each."""
    called = list(dict.fromkeys(operators_of(brief.task)))[:_MOST_OPERATORS]
    lines = [f"task {brief.task.name}"]
    if called:
        lines.append(f"calls {' '.join(called)}")
    if brief.device is not None:
        lines.append(f"on {brief.device.kind}")
    return "\n".join(lines)


def worth(evaluation: Evaluation) -> str:
    """Two digits of the speed-up, or the verdict."""
    speedup = speedup_of(evaluation)
    if speedup is not None:
        return f"{speedup.value:.2g}x"
    return "right" if evaluation.verdict is Verdict.PASSED else evaluation.verdict.value
