"""What can be chosen about training, with presets for a trial, one GPU, and the paper's scale."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.run.toml import from_table
from kernelsmith.training.reward.advantages import estimator_named
from kernelsmith.training.reward.mismatch import Correction
from kernelsmith.training.reward.rewards import reward_named


def _positive(config: object, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 1:
            raise UsageError(f"{name} is at least 1; got {getattr(config, name)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lora:
    """A low-rank adapter instead of all weights."""

    rank: int = 16
    alpha: int = 32
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.rank < 1 or self.alpha < 1 or not 0 <= self.dropout < 1:
            raise UsageError(f"an adapter has a rank and a scale above 0; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SftConfig:
    """Supervised training on imitated steps."""

    steps: int = 400
    batch: int = 8
    accumulate: int = 1
    learning_rate: float = 2e-5
    max_length: int = 65_536
    lora: Lora | None = None
    bf16: bool = False
    seed: int = 0
    save_every: int = 50
    checkpoints: int = 2
    """Kept; older ones are removed."""
    eval_share: float = 0.05
    """Of the rows, held back to see whether it still generalises."""

    def __post_init__(self) -> None:
        _positive(self, "steps", "batch", "accumulate", "max_length", "save_every", "checkpoints")
        if not self.learning_rate > 0 or not 0 <= self.eval_share < 1:
            raise UsageError(f"a learning rate above 0, a share below 1; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpoConfig:
    """Reinforcement with evaluations as reward."""

    steps: int = 100
    prompts: int = 4
    """Per step."""
    group: int = 8
    """Answers per prompt; the paper's number."""
    learning_rate: float = 1e-6
    reward: str = "log"
    advantage: str = "loo"
    """See ``reward/advantages.py``: with ``grpo`` the parent's baseline has no effect."""
    beta: float = 0.0
    """Weight of the distance to the first policy."""
    watch_kl: bool = True
    """Whether that distance is measured, weighed or not: two more looks at every answer, and a copy
    of the first weights in memory, except for an adapter, which is left out for it."""
    clip_low: float = 0.2
    clip_high: float = 0.28
    temperature: float = 1.0
    max_new_tokens: int = 64
    profiling_rejection: bool = False
    """Whether lazy answers are dropped from the loss (``reward/profiling.py``)."""
    turns: int = 1
    """Of an episode; above 1 the recipe is ``episodes.py``."""
    gamma: float = 1.0
    correction: Correction | None = None
    """Of mismatch between trainer and sampler; only where the sampler reports probabilities."""
    chunk: int = 8
    """Answers generated at a time: while the next chunk is written, the last one is judged."""
    lora: Lora | None = None
    bf16: bool = False
    seed: int = 0
    save_every: int = 10
    checkpoints: int = 2

    def __post_init__(self) -> None:
        _positive(self, "steps", "prompts", "group", "max_new_tokens", "turns", "chunk",
                  "save_every", "checkpoints")  # fmt: skip
        if self.group < 2:
            raise UsageError("a group holds at least two answers; else there is nothing to compare")
        if not self.learning_rate > 0 or not self.temperature > 0 or self.beta < 0:
            raise UsageError("learning rate and temperature are above 0, beta is not below")
        if not 0 <= self.gamma <= 1:
            raise UsageError(f"gamma lies in 0 to 1; got {self.gamma}")
        reward_named(self.reward)
        estimator_named(self.advantage)


@dataclass(frozen=True, slots=True, kw_only=True)
class TinySize:
    """A model made from nothing, for trials and for our own steps."""

    vocabulary: int = 512
    width: int = 64
    layers: int = 2
    heads: int = 4
    context: int = 512

    def __post_init__(self) -> None:
        _positive(self, "vocabulary", "width", "layers", "heads", "context")
        if self.width % self.heads:
            raise UsageError(f"heads divide the width; got {self.heads} and {self.width}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig:
    """Everything about one training."""

    sft: SftConfig = SftConfig()
    grpo: GrpoConfig = GrpoConfig()
    tiny: TinySize = TinySize()


PRESETS: Mapping[str, TrainConfig] = {
    "trial": TrainConfig(
        sft=SftConfig(steps=120, batch=16, learning_rate=3e-3, max_length=512, save_every=60),
        grpo=GrpoConfig(steps=12, prompts=4, group=4, learning_rate=3e-4, max_new_tokens=12,
                        chunk=8, save_every=6),
    ),
    "small": TrainConfig(
        sft=SftConfig(steps=1500, batch=32, learning_rate=1e-3, max_length=1024),
        grpo=GrpoConfig(steps=60, prompts=8, group=8, learning_rate=5e-5, max_new_tokens=64,
                        chunk=16),
        tiny=TinySize(vocabulary=2048, width=192, layers=6, heads=6, context=1024),
    ),
    "paper": TrainConfig(
        sft=SftConfig(steps=3000, batch=1, accumulate=64, learning_rate=2e-5, bf16=True),
        grpo=GrpoConfig(steps=300, prompts=16, group=8, learning_rate=1e-6, reward="paper",
                        max_new_tokens=32_768, bf16=True, watch_kl=False),
    ),
}  # fmt: skip
"""``trial``: minutes on a processor; ``small``: one GPU; ``paper``: 8 answers, 64k tokens."""


def preset(name: str) -> TrainConfig:
    """One of ``PRESETS``.

    Raises:
        UsageError: There is none of that name.
    """
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}; known are {', '.join(PRESETS)}")
    return PRESETS[name]


def load_config(path: Path) -> TrainConfig:
    """Read TOML with tables ``sft``, ``grpo`` and ``tiny``.

    Raises:
        UsageError: It cannot be read, or says something impossible.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from error
    return from_table(TrainConfig, table)
