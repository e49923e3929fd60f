"""Everything that a run can be told, as frozen values with presets."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelsmith.errors import UsageError
from kernelsmith.evaluate.settings import EFFORTS
from kernelsmith.propose.models import ModelConfig
from kernelsmith.propose.prompt_options import Preset, PromptOptions
from kernelsmith.run.toml import from_table, to_table, to_toml
from kernelsmith.search.config import SearchConfig

PROPOSERS = ("rules", "llm", "student", "agent", "replay")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """When a run ends. Whatever comes first; what is absent never does."""

    steps: int = 40
    tokens: int | None = None
    """In and out together; counted as reported, and what is in flight is set aside for."""
    usd: float | None = None
    seconds: float | None = None
    """Wall time over all sessions of the run; what is in flight then is still finished."""
    target_speedup: float | None = None
    """Reached when the whole interval of a re-measured best lies above it."""
    stale_steps: int | None = None
    """Steps in a row without a new best."""
    roofline_share: float | None = None
    """Reached when the best uses this share of bandwidth or peak on every workload."""

    def __post_init__(self) -> None:
        if self.steps < 0:
            raise UsageError(f"steps are not negative; got {self.steps}")
        for name in ("tokens", "usd", "seconds", "target_speedup", "stale_steps", "roofline_share"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"{name} is above 0 or left out; got {value}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Remeasure:
    """Who is measured again before being believed."""

    champions: bool = True
    """Whether a candidate that would be the run's best is judged by the confirming effort first."""
    gain: bool = True
    """Whether the gain over the parent is measured directly, candidate beside parent."""
    near: float = 0.95
    """That is done from this share of the parent's speed-up on."""
    final: int = 3
    """How many are tried, best first, until one is confirmed at the end; 0 confirms none."""
    rivals: int = 2
    """How many others, as good as the best within the noise, are confirmed as well; the best of
    those confirmed is the result."""
    lost: int = 2
    """How often an evaluation that we lost is asked for again."""

    def __post_init__(self) -> None:
        if self.near <= 0 or min(self.final, self.rivals, self.lost) < 0:
            raise UsageError(f"shares and counts are not negative; got {self}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposerSpec:
    """Who writes candidates."""

    kind: str = "rules"
    models: tuple[ModelConfig, ...] = ()
    """For ``llm``. Keys stay in the environment and are written nowhere."""
    path: str | None = None
    """The recording, for ``replay``; the folder with the model, for ``student``."""
    form: str | None = None
    """How a student is asked; as its folder says where absent."""
    weights: str | None = None
    """Hash of a student's weights, so that a run is not gone on with by another model."""
    adapt: int | None = None
    """Good steps between two updates of a student's adapter; absent: its weights stay."""

    def __post_init__(self) -> None:
        if self.kind not in PROPOSERS:
            raise UsageError(f"no proposer {self.kind!r}; known are {', '.join(PROPOSERS)}")
        if self.kind == "llm" and not self.models:
            raise UsageError("the proposer 'llm' needs at least one model")
        if self.kind == "replay" and not self.path:
            raise UsageError("the proposer 'replay' needs the path of a recording")
        if self.kind == "student" and (not self.path or len(self.models) > 1):
            raise UsageError("the proposer 'student' needs the path of one model's folder")
        if self.adapt is not None and (self.kind != "student" or self.adapt < 1):
            raise UsageError("adapt is a number of steps, for a model in a folder: --model FOLDER")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunConfig:
    """One run. Written to ``config.toml`` and into the journal's first line."""

    backend: str = "cpu"
    seed: int = 0
    concurrency: int = 4
    """Steps in flight: ask ``n`` is made when tell ``n - concurrency`` has been applied."""
    judges: int = 1
    """Evaluations at a time on this machine; timing owns the device whatever this says."""
    evaluator: str = "local"
    """Where candidates are judged: here, at a server's address, or on a cluster."""
    effort: str = "usual"
    confirm_effort: str = "thorough"
    timeout_s: float = 30.0
    """How long a candidate may take over one request."""
    grace_s: float = 60.0
    """How long work in flight may go on after the first Ctrl-C."""
    budget: Budget = Budget()
    search: SearchConfig = field(default_factory=SearchConfig)
    remeasure: Remeasure = Remeasure()
    proposer: ProposerSpec = ProposerSpec()
    keep_captures: bool = True
    """Whether what torch's compiler told the rules is kept, with the run and in a cache."""
    prompt: PromptOptions = field(default_factory=PromptOptions)

    def __post_init__(self) -> None:
        if self.concurrency < 1 or self.judges < 1:
            raise UsageError("concurrency and judges are at least 1")
        for name in ("effort", "confirm_effort"):
            if getattr(self, name) not in EFFORTS:
                raise UsageError(f"{name} is one of {', '.join(EFFORTS)}")
        if self.timeout_s <= 0 or self.grace_s < 0:
            raise UsageError("timeout_s is above 0 and grace_s not below")


_PAPER = RunConfig(prompt=PromptOptions(preset=Preset.PAPER))
_QUICK = RunConfig(
    effort="quick",
    confirm_effort="usual",
    budget=Budget(steps=12, stale_steps=8),
    remeasure=Remeasure(gain=False, final=2, rivals=1),
)
_THOROUGH = RunConfig(concurrency=8, budget=Budget(steps=512, stale_steps=128, roofline_share=0.95))
_SWEEP = RunConfig(
    effort="glance",
    confirm_effort="quick",
    concurrency=2,  # the last two can learn from the first two
    budget=Budget(steps=4),
    remeasure=Remeasure(champions=False, gain=False, final=1, rivals=0),
)
PRESETS: Mapping[str, RunConfig] = {
    "paper": _PAPER, "quick": _QUICK, "sweep": _SWEEP, "thorough": _THOROUGH,
}  # fmt: skip
"""``paper``: 40 steps, as its tables; ``thorough``: 512 with early stop, as its production runs;
``sweep``: a few candidates for each of many tasks, the best of them judged once more."""


def preset(name: str) -> RunConfig:
    """One of ``PRESETS``."""
    if name not in PRESETS:
        raise UsageError(f"no preset {name!r}; known are {', '.join(PRESETS)}")
    return PRESETS[name]


def parse_config(text: str, base: RunConfig | None = None) -> RunConfig:
    """Read TOML; ``preset = "quick"`` or ``base`` says what the rest is laid upon."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"not TOML: {error}") from error
    named = table.pop("preset", None)
    if named is not None and not isinstance(named, str):
        raise UsageError(f"preset is a text; got {named!r}")
    start = base or RunConfig()
    return laid_upon(preset(named) if named is not None else start, table)


def preset_of(path: Path) -> str:
    """The preset that a file names, which goes before an option's; empty where it names none."""
    try:
        named = tomllib.loads(path.read_text()).get("preset", "")
    except (OSError, tomllib.TOMLDecodeError):  # whoever loads it says so
        return ""
    return named if isinstance(named, str) else ""


def load_config(path: Path, base: RunConfig | None = None) -> RunConfig:
    """Read a TOML file, or say in one line what is wrong with it."""
    try:
        return parse_config(path.read_text(), base)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not text: {error.reason}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


def dump_config(config: RunConfig) -> str:
    """Write a config so that ``parse_config`` reads the same one."""
    return to_toml(config)


def laid_upon(config: RunConfig, table: Mapping[str, object]) -> RunConfig:
    """Change what ``table`` names; sections are changed key by key, not replaced."""
    merged = to_table(config)
    for key, said in table.items():
        known = merged.get(key)
        both = isinstance(known, dict) and isinstance(said, dict)
        merged[key] = {**known, **said} if both else said  # type: ignore[dict-item]
    return from_table(RunConfig, merged)
