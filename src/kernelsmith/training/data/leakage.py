"""The leakage guard: no sample whose prompt already shows its answer, or a better kernel.

The paper trained on all steps and saw rewards rise while little was learnt: prompts of later steps
hold what earlier steps were to find, so copying pays. ``copying_gain`` says how well it pays.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelsmith.training.data.filters import bare
from kernelsmith.training.data.sample import Sample, speedup_of

_ASSIGNED = re.compile(r"(?<![\w.])([A-Za-z_]\w*)\s*=(?!=)")
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def shows_answer(sample: Sample) -> bool:
    """Whether the prompt holds the answer: the same program, or a copy with other names.

    A shown program that differs in one line is no leak: a good step often changes one line.
    """
    answer = unnamed(sample.candidate.source)
    return any(unnamed(each.candidate.source) == answer for each in sample.shown)


def shows_better(sample: Sample) -> bool:
    """Whether the prompt holds a kernel at least as fast as the answer."""
    speedup = sample.speedup
    if speedup is None:
        return False
    return any(
        shown.value >= speedup.value
        for each in sample.shown
        if (shown := speedup_of(each.evaluation)) is not None
    )


def guarded(samples: Iterable[Sample]) -> list[Sample]:
    """Those whose prompts hold neither."""
    return [each for each in samples if not shows_answer(each) and not shows_better(each)]


def copying_gain(sample: Sample) -> float | None:
    """Speed-up over the parent that the best program in the prompt has: what copying earns.

    1.0 where nothing shown beats the parent; none where there is no timed parent.
    """
    parent = sample.brief.parent
    old = speedup_of(parent.evaluation) if parent is not None else None
    if old is None:
        return None
    shown = [found.value for each in sample.shown if (found := speedup_of(each.evaluation))]
    return max(shown) / old.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaks:
    """How much a set of samples gives away."""

    samples: int
    show_answer: int
    """Prompts that hold their own answer."""
    show_better: int
    exposed: int
    """Answers that stand in the prompt of another sample of the set."""
    copying: float
    """Mean speed-up over the parent of a policy that copies the best program it is shown."""

    @property
    def share_exposed(self) -> float:
        """Of all samples."""
        return self.exposed / self.samples if self.samples else 0.0


def leaks_of(samples: Sequence[Sample]) -> Leaks:
    """Measure a set; the data card prints it."""
    shown_by: dict[str, set[str]] = {}
    for each in samples:
        for exemplar in each.shown:
            shown_by.setdefault(bare(exemplar.candidate.source), set()).add(each.id)
    exposed = sum(
        bool(shown_by.get(bare(each.candidate.source), set()) - {each.id}) for each in samples
    )
    gains = [gain for each in samples if (gain := copying_gain(each)) is not None]
    return Leaks(
        samples=len(samples),
        show_answer=sum(shows_answer(each) for each in samples),
        show_better=sum(shows_better(each) for each in samples),
        exposed=exposed,
        copying=sum(gains) / len(gains) if gains else 1.0,
    )


def unnamed(source: str) -> str:
    """A program by its structure: what it assigns to is numbered, so a renamed copy is the same.

    Numbers and whatever it calls stay: another block size is another program, and so is ``min``
    for ``max``.
    """
    text = bare(source)
    own = dict.fromkeys(_ASSIGNED.findall(text))
    numbers = {name: f"n{index}" for index, name in enumerate(own)}
    return _WORD.sub(lambda found: numbers.get(found[0], found[0]), text)
