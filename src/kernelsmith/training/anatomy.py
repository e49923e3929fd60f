"""What best steps have in common, and what of it says in advance that a step will gain.

The paper found that best steps are what to train on, and left open why. Each step gets features
that are known before it is judged; each feature is asked how well it ranks gains on tasks that it
has not seen.
"""

import difflib
import math
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelsmith.errors import UsageError
from kernelsmith.propose.header import body, header_of
from kernelsmith.training.data.sample import Sample

Surprise = Callable[[Sample], float | None]
"""How unlikely a student finds the step; none where its form cannot say it."""
_RESAMPLES = 400
_LEAST_STEPS = 3
"""Steps of a task from which an order of them means something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anatomy:
    """One improvement or failed attempt at one, taken apart."""

    id: str
    task: str
    best: bool
    """Whether it was the run's best when it came."""
    log_gain: float
    """Over the parent."""
    features: Mapping[str, str | float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictor:
    """How well one feature ranks the steps of a task by gain, of tasks it was not fitted on."""

    feature: str
    steps: int
    rank_correlation: float
    low: float
    high: float
    """95 % over tasks."""


def taken_apart(samples: Sequence[Sample], surprise: Surprise | None = None) -> list[Anatomy]:
    """Features of every correct step that had a parent; the header of the rules is left out."""
    found = []
    for each in samples:
        gain, parent = each.gain, each.brief.parent
        if gain is None or parent is None or not each.correct:
            continue
        features = features_of(parent.candidate.source, each.candidate.source)
        features["parent speed-up"] = _parent_speed(each)
        features["depth"] = float(each.depth)
        unlikely = surprise(each) if surprise is not None else None
        if unlikely is not None:
            features["surprise"] = unlikely
        found.append(
            Anatomy(
                id=each.id, task=each.task.name, best=each.step.placement.is_best,
                log_gain=math.log(gain.value), features=features,
            )
        )  # fmt: skip
    return found


def features_of(old: str, new: str) -> dict[str, str | float]:
    """What changes between two programs, without running them."""
    before, after = body(old).split("\n"), body(new).split("\n")
    ops = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    removed = [line for tag, i1, i2, _, _ in ops if tag != "equal" for line in before[i1:i2]]
    added = [line for tag, _, _, j1, j2 in ops if tag != "equal" for line in after[j1:j2]]
    return {
        "kind": kind_of(old, new, removed, added),
        "region": _region(before, ops),
        "changed lines": float(len(removed) + len(added)),
        "net lines": float(len(added) - len(removed)),
    }


def kind_of(old: str, new: str, removed: Sequence[str], added: Sequence[str]) -> str:
    """One word for the transformation: the rules' parameter, else how the text changed."""
    one, other = header_of(old), header_of(new)
    if one is not None and other is not None:
        if one[0] != other[0]:
            return f"family {other[0]}"
        changed = sorted(name for name in other[1] if one[1].get(name) != other[1][name])
        return re.sub(r"k\d+_", "k_", "+".join(changed[:2])) if changed else "none"

    def plain(lines: Sequence[str]) -> list[str]:
        return [re.sub(r"\d+(\.\d+)?", "0", line).strip() for line in lines if line.strip()]

    if plain(removed) == plain(added):
        return "numbers"
    if not added:
        return "removal"
    return "addition" if not removed else "rewrite"


def predictors(steps: Sequence[Anatomy], *, seed: int = 0) -> list[Predictor]:
    """Rank features by how well they predict gains on held-out tasks, task by task.

    Words are replaced by the mean gain that they had on the other tasks; numbers stay.

    Raises:
        UsageError: There are too few tasks to hold any out.
    """
    tasks = sorted({each.task for each in steps})
    if len(tasks) < 3:
        raise UsageError(f"this takes steps of at least 3 tasks; there are {len(tasks)}")
    names = sorted({name for each in steps for name in each.features})
    found = []
    for name in names:
        pairs = _held_out_pairs(steps, tasks, name)
        used = [task for task in tasks if len(pairs[task]) >= _LEAST_STEPS]
        if len(used) < 2:
            continue
        # Inside each task: what says which step to take there, not which task is easy.
        ranked = {task: _spearman(pairs[task]) for task in used}
        center = _mean([ranked[task] for task in used])
        draw = random.Random(seed)
        again = sorted(
            _mean([ranked[task] for task in draw.choices(used, k=len(used))])
            for _ in range(_RESAMPLES)
        )
        low, high = again[int(0.025 * _RESAMPLES)], again[int(0.975 * _RESAMPLES)]
        found.append(
            Predictor(
                feature=name, steps=sum(len(pairs[task]) for task in used),
                rank_correlation=center, low=min(low, center), high=max(high, center),
            )
        )  # fmt: skip
    return sorted(found, key=lambda each: -abs(each.rank_correlation))


def table_of(steps: Sequence[Anatomy], found: Sequence[Predictor]) -> str:
    """Both tables in Markdown: what best steps share beside the others, and what predicts gain."""
    best, rest = [s for s in steps if s.best], [s for s in steps if not s.best]
    lines = ["| feature | best steps | other steps |", "|---|---|---|",
             f"| how many | {len(best)} | {len(rest)} |",
             f"| gain, geometric mean | {_mean_gain(best)} | {_mean_gain(rest)} |"]  # fmt: skip
    for name in sorted({name for each in steps for name in each.features}):
        lines.append(f"| {name} | {_typical(best, name)} | {_typical(rest, name)} |")
    lines += ["", "| feature | steps | rank correlation with gain on unseen tasks | 95 % |",
              "|---|---|---|---|"]  # fmt: skip
    lines += [
        f"| {each.feature} | {each.steps} | {each.rank_correlation:+.2f} | "
        f"{each.low:+.2f} to {each.high:+.2f} |"
        for each in found
    ]
    return "\n".join(lines) + "\n"


def _held_out_pairs(
    steps: Sequence[Anatomy], tasks: Sequence[str], name: str
) -> dict[str, list[tuple[float, float]]]:
    pairs: dict[str, list[tuple[float, float]]] = {task: [] for task in tasks}
    for task in tasks:
        seen = [each for each in steps if each.task != task]
        known: dict[str, list[float]] = {}
        for each in seen:
            value = each.features.get(name)
            if isinstance(value, str):
                known.setdefault(value, []).append(each.log_gain)
        for each in steps:
            value = each.features.get(name)
            if each.task != task or value is None:
                continue
            if isinstance(value, str):
                if value not in known:
                    continue
                value = sum(known[value]) / len(known[value])
            pairs[task].append((value, each.log_gain))
    return pairs


def _spearman(pairs: Sequence[tuple[float, float]]) -> float:
    ranks = [_ranks([pair[side] for pair in pairs]) for side in (0, 1)]
    centred = [[rank - sum(own) / len(own) for rank in own] for own in ranks]
    squares = [math.fsum(rank * rank for rank in own) for own in centred]
    if min(squares) == 0:
        return 0.0
    both = math.fsum(a * b for a, b in zip(*centred, strict=True))
    return both / math.sqrt(squares[0] * squares[1])


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=lambda index: values[index])
    found = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for place in range(at, end + 1):
            found[order[place]] = (at + end) / 2
        at = end + 1
    return found


def _region(before: Sequence[str], ops: Sequence[tuple[str, int, int, int, int]]) -> str:
    """The function or class around the first change."""
    first = next((i1 for tag, i1, _, _, _ in ops if tag != "equal"), 0)
    for line in reversed(before[: first + 1]):
        found = re.match(r"\s*(?:@?\w+\s+)*?(def|class|void|template)\b\s*(\w+)?", line)
        if found:
            word = found[1]
            return "module" if word == "class" else "host" if word == "def" else "kernel"
    return "head"


def _parent_speed(sample: Sample) -> float:
    parent = sample.brief.parent
    assert parent is not None
    timing = parent.evaluation.timing
    return timing.speedup.value if timing is not None else 0.0


def _mean_gain(steps: Sequence[Anatomy]) -> str:
    if not steps:
        return "-"
    return f"{math.exp(math.fsum(each.log_gain for each in steps) / len(steps)):.3f}x"


def _typical(steps: Sequence[Anatomy], name: str) -> str:
    values = [each.features[name] for each in steps if name in each.features]
    words = [each for each in values if isinstance(each, str)]
    if words:
        counts = sorted({w: words.count(w) for w in words}.items(), key=lambda item: -item[1])[:3]
        return ", ".join(f"{word} {count / len(words):.0%}" for word, count in counts)
    numbers = sorted(each for each in values if isinstance(each, float))
    return f"median {numbers[len(numbers) // 2]:.3g}" if numbers else "-"
