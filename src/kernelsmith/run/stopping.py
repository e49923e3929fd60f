"""When a run ends: the budget's rules, looked at after every tell."""

from enum import StrEnum

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.trajectory import Exemplar
from kernelsmith.run.config import Budget
from kernelsmith.run.progress import Tally


class Stop(StrEnum):
    """Why a run ended."""

    STEPS = "steps"
    TOKENS = "tokens"
    USD = "usd"
    SECONDS = "seconds"
    TARGET = "target"
    ROOFLINE = "roofline"
    STALE = "stale"
    INTERRUPTED = "interrupted"
    """By a signal; what was under way is in the journal, and ``resume`` goes on from there."""


REASONS = {
    Stop.STEPS: "all steps of the budget are done",
    Stop.TOKENS: "the token budget is spent",
    Stop.USD: "the money is spent",
    Stop.SECONDS: "the time is over",
    Stop.TARGET: "the target speed-up is reached",
    Stop.ROOFLINE: "the best is as fast as the device allows",
    Stop.STALE: "nothing has improved for long",
    Stop.INTERRUPTED: "it was interrupted",
}


def reason_to_stop(
    budget: Budget, tally: Tally, best: Exemplar | None, *, in_flight: int, elapsed_s: float
) -> Stop | None:
    """The first rule that applies; what is in flight is taken to cost what others cost."""
    if tally.told + in_flight >= budget.steps:
        return Stop.STEPS
    expected = 1 + in_flight / tally.told if tally.told else 1.0
    if budget.tokens is not None and tally.tokens * expected >= budget.tokens:
        return Stop.TOKENS
    if budget.usd is not None and (tally.usd or 0.0) * expected >= budget.usd:
        return Stop.USD
    if budget.seconds is not None and elapsed_s >= budget.seconds:
        return Stop.SECONDS
    if budget.stale_steps is not None and tally.stale >= budget.stale_steps:
        return Stop.STALE
    if best is None:
        return None
    timing, share = best.evaluation.timing, roofline_share(best.evaluation)
    if _reached(budget.target_speedup, None if timing is None else timing.speedup.low):
        return Stop.TARGET
    return Stop.ROOFLINE if _reached(budget.roofline_share, share) else None


def roofline_share(evaluation: Evaluation) -> float | None:
    """How close the slowest workload comes to the device's limits; none where nobody measured."""
    shares = [max(each.bandwidth_share, each.compute_share or 0.0) for each in evaluation.rooflines]
    return min(shares, default=None)


def _reached(goal: float | None, value: float | None) -> bool:
    return goal is not None and value is not None and value >= goal
