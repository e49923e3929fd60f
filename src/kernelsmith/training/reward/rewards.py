"""Named, versioned rewards: from a trial to a number, or to none, which leaves it out.

Three rules hold for all of them and are tested for all of them: what was lost gives none; what
cheated gets ``CHEAT``, below everything honest; and nothing that fails is worth as much as anything
that passes. A change that gives a trial another number raises the version.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelsmith.errors import UsageError
from kernelsmith.training.reward.trial import Trial

CHEAT = -1.0
"""Below every honest outcome."""
FAILED = 0.0
"""Whatever is honest and does not pass: no program, no build, a crash, a wrong answer."""
MOST = 3.0
"""Speed-ups are not rewarded beyond this; Dr. Kernel's bound. A rare huge ratio would drown all."""
_OCTAVES = 3.0
_LEAST = 0.05
"""Of a program that passes, however slow."""
CONTRAST = 1.5
"""Deviations from what was shown that still count: CUDA-L1's bound against lucky outliers."""

_KERNEL = re.compile(r"@triton\.jit|__global__|\bkernelsmith\.kernels import|load_inline")
_EMPTY_LAUNCH = re.compile(r"\w+\s*\[[^\]]+\]\s*\(")

Passed = Callable[[Trial], float]
"""What a trial is worth that passed and was timed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reward:
    """One way of valuing trials."""

    name: str
    version: int
    about: str
    passed: Passed
    untimed: float = _LEAST
    """For what is right and was not timed."""

    @property
    def id(self) -> str:
        """Name and version, as data cards and checkpoints quote it."""
        return f"{self.name}/{self.version}"

    def __call__(self, trial: Trial) -> float | None:
        """Value one trial."""
        if trial.lost:
            return None
        if trial.cheated:
            return CHEAT
        if not trial.correct:
            return FAILED
        if trial.speedup is None:
            return self.untimed
        return max(self.passed(trial), _LEAST)


def _ratio(trial: Trial) -> float:
    found = trial.over_parent
    assert found is not None
    return found.value


def _paper(trial: Trial) -> float:
    return _ratio(trial)


def _clipped(trial: Trial) -> float:
    return min(_ratio(trial), MOST)


def _octaves(value: float) -> float:
    return min(max(math.log2(value), -1.0 + _LEAST), _OCTAVES)


def _log(trial: Trial) -> float:
    return 1.0 + _octaves(_ratio(trial))


def _interval(trial: Trial) -> float:
    found = trial.over_parent
    assert found is not None
    if found.low > 1.0:
        return 1.0 + _octaves(found.low)
    return 1.0 + _octaves(found.high) if found.high < 1.0 else 1.0


def _eager(trial: Trial) -> float:
    assert trial.speedup is not None
    return trial.speedup.value


def _additive(trial: Trial) -> float:
    assert trial.speedup is not None
    return _log(trial) + 0.25 * max(0.0, _octaves(trial.speedup.value))


def _autotriton(trial: Trial) -> float:
    return 1.0 if follows_rules(trial.source) and not trial.lazy else _LEAST


def _dr_kernel(trial: Trial) -> float:
    assert trial.speedup is not None
    return 0.5 + 0.5 * min(trial.speedup.value, MOST) + 0.5 * (trial.coverage or 0.0)


def _contrastive(trial: Trial) -> float:
    assert trial.speedup is not None
    logs = [
        math.log(each.timing.speedup.value)
        for each in (*(() if trial.parent is None else (trial.parent,)), *trial.shown)
        if each.timing is not None
    ] or [0.0]
    middle = sum(logs) / len(logs)
    spread = math.sqrt(sum((each - middle) ** 2 for each in logs) / len(logs))
    distance = (math.log(trial.speedup.value) - middle) / max(spread, 0.1)
    return 1.0 + CONTRAST + max(-CONTRAST, min(CONTRAST, distance))


def follows_rules(source: str) -> bool:
    """AutoTriton's rule: there is a kernel of its own, and something launches or calls it."""
    if _KERNEL.search(source) is None:
        return False
    return "@triton.jit" not in source or _EMPTY_LAUNCH.search(source) is not None


_KNOWN = (
    Reward(name="paper", version=1, passed=_paper, about="speed-up over the parent"),
    Reward(name="eager", version=1, passed=_eager, about="speed-up over the baseline"),
    Reward(name="clipped", version=1, passed=_clipped, about="as paper, at most 3"),
    Reward(name="log", version=1, passed=_log, about="1 + log2 over the parent, within -1 to 3"),
    Reward(
        name="interval", version=1, passed=_interval,
        about="as log, of the interval's end nearest to 1; 1 inside the noise",
    ),
    Reward(
        name="additive", version=1, passed=_additive,
        about="as log, and a quarter of log2 over the baseline beside it",
    ),
    Reward(
        name="autotriton", version=1, passed=_autotriton,
        about="1 if right and a kernel of its own does the work",
    ),
    Reward(
        name="dr-kernel", version=1, passed=_dr_kernel,
        about="0.5 + 0.5 * min(speed-up over the baseline, 3) + 0.5 * coverage",
    ),
    Reward(
        name="contrastive", version=1, passed=_contrastive,
        about="deviations from the programs in the prompt, within 1.5, above 0",
    ),
)  # fmt: skip
REWARDS: Mapping[str, Reward] = {each.name: each for each in _KNOWN}


def reward_named(name: str) -> Reward:
    """Find a reward by name, or by name and version.

    Raises:
        UsageError: There is none, or not in that version.
    """
    plain, _, version = name.partition("/")
    if plain not in REWARDS:
        raise UsageError(f"no reward {plain!r}; known are {', '.join(REWARDS)}")
    if version and version != str(REWARDS[plain].version):
        raise UsageError(f"reward {name!r} is another version; this is {REWARDS[plain].id}")
    return REWARDS[plain]
