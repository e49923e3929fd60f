"""Which steps a model imitates: the paper's two filters, duplicates, and lengths."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kernelsmith.errors import UsageError
from kernelsmith.propose.tokens import count
from kernelsmith.training.data.sample import Sample

CONTEXT_TOKENS = 65_536
"""The paper's context: prompt and answer together."""


class Over(StrEnum):
    """What a later step must be faster than."""

    EAGER = "eager"
    """The task's baseline: the paper's filter."""
    PARENT = "parent"
    """The parent too, beyond the interval of the ratio."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Two filters in one: translations need only be right, improvements must be fast, too."""

    over: Over = Over.EAGER
    beyond_noise: bool = False
    """Whether the whole interval over the baseline must lie above 1, not its middle alone."""
    translations: bool = True
    """Whether a first step need only be right; else it must gain over the baseline."""

    def __post_init__(self) -> None:
        if self.over not in list(Over):
            raise UsageError(f"no filter {self.over!r}; known are {', '.join(Over)}")
        object.__setattr__(self, "over", Over(self.over))

    def keeps(self, sample: Sample) -> bool:
        """Whether the step is worth imitating."""
        if not sample.correct:
            return False
        if sample.is_first and self.translations:
            return True
        speedup = sample.speedup
        if speedup is None:  # right, and nobody timed it: says nothing about speed
            return False
        if (speedup.low if self.beyond_noise else speedup.value) <= 1.0:
            return False
        gain = speedup if sample.is_first else sample.gain
        return self.over is Over.EAGER or (gain is not None and gain.is_faster)


def filtered(samples: Iterable[Sample], rule: Filter) -> list[Sample]:
    """Those that the filter keeps."""
    return [each for each in samples if rule.keeps(each)]


def deduplicated(samples: Sequence[Sample]) -> list[Sample]:
    """One sample per question and answer: the same parent and the same child teach once.

    Sources are compared without comments, blank lines and spacing; the first one stays.
    """
    seen: set[tuple[str, str, str]] = set()
    kept = []
    for each in samples:
        parent = each.brief.parent
        key = (
            bare(each.task.source),
            bare(parent.candidate.source) if parent is not None else "",
            bare(each.candidate.source),
        )
        if key not in seen:
            seen.add(key)
            kept.append(each)
    return kept


def bare(source: str) -> str:
    """A program without comments and spacing, to compare by."""
    said = re.findall(r"#\s*us:\s*[\d.]+", source)  # for the null backend a comment is the clock
    lines = (re.sub(r"\s*#.*$", "", line).strip() for line in source.split("\n"))
    return "\n".join([*(re.sub(r"\s+", " ", line) for line in lines if line), *said])


def fits(texts: Iterable[str], limit: int = CONTEXT_TOKENS) -> bool:
    """Whether a whole sample fits the context, counted as prompts are."""
    return sum(count(each) for each in texts) <= limit
