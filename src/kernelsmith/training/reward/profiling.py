"""Profiling-based rejection sampling: lazy answers are dropped from the loss, not from the group.

After Dr. Kernel: an answer that is right but leaves the work to the library is kept with a
probability that rises with the share of the time in code of its own. It still counts in its group's
baseline, so that what replaces it is held against it.
"""

import random
from collections.abc import Sequence

from kernelsmith.training.reward.trial import Trial

FROM, WIDTH = 0.3, 0.1
"""Coverage from which answers may stay, and over which all of them do."""


def keep_probability(trial: Trial, *, fast_enough: float | None = None) -> float:
    """How likely a trial stays in the loss.

    Wrong ones always do: they teach what not to do. So does what nobody could look into, and, where
    ``fast_enough`` is given, what reaches that speed-up whoever does the work.
    """
    if not trial.correct or trial.coverage is None:
        return 1.0
    if fast_enough is not None and trial.speedup is not None and trial.speedup.value >= fast_enough:
        return 1.0
    return min(max((trial.coverage - FROM) / WIDTH, 0.0), 1.0)


def kept(
    trials: Sequence[Trial], seed: int, *, fast_enough: float | None = None
) -> tuple[bool, ...]:
    """Draw for each trial whether its tokens count."""
    draw = random.Random(seed)
    return tuple(draw.random() < keep_probability(each, fast_enough=fast_enough) for each in trials)
