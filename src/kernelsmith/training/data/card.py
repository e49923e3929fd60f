"""The data card: what is in a set, where it comes from, what was left out, what it gives away."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelsmith.propose.tokens import count
from kernelsmith.training.data.leakage import Leaks
from kernelsmith.training.data.rows import Row
from kernelsmith.training.data.sample import Sample
from kernelsmith.training.data.split import Split

Line = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A data set in numbers."""

    counts: tuple[Line, ...]
    verdicts: tuple[tuple[str, int], ...]
    cells: tuple[tuple[str, int, int], ...]
    """Family, difficulty, imitated samples."""
    lengths: tuple[Line, ...]
    leaks: Leaks
    split: Split
    devices: tuple[str, ...]
    judges: tuple[str, ...]
    about: tuple[Line, ...]

    def to_markdown(self) -> str:
        """As a page."""
        leaks = self.leaks
        parts = [
            "# Data card",
            _table(("what", "how many"), self.counts),
            "## How it was made",
            _table(("choice", "value"), self.about),
            _table(("source", "value"), (("devices", ", ".join(self.devices)),
                                         ("judges", ", ".join(self.judges)))),
            "## Verdicts of all steps read",
            _table(("verdict", "steps"), [(name, str(n)) for name, n in self.verdicts]),
            "## Imitated, by family and difficulty",
            _table(("family", "difficulty", "samples"),
                   [(name, str(level), str(n)) for name, level, n in self.cells]),
            "## Lengths",
            _table(("what", "tokens"), self.lengths),
            "## What the reinforced prompts give away",
            _table(("leak", "samples"), (
                ("show their own answer", f"{leaks.show_answer} of {leaks.samples}"),
                ("show a kernel as fast as the answer", f"{leaks.show_better} of {leaks.samples}"),
                ("answer stands in another prompt", f"{leaks.exposed} of {leaks.samples}"),
                ("copying the best shown earns, over the parent", f"{leaks.copying:.3f}x"),
            )),
            "## Held out",
            ", ".join(sorted(self.split.held_out)) or "nothing",
        ]  # fmt: skip
        if self.split.dropped:
            parts += ["## Dropped as copies of a benchmark", ", ".join(sorted(self.split.dropped))]
        return "\n\n".join(parts) + "\n"


def card_of(
    *, samples: Sequence[Sample], imitated: Sequence[Sample], chosen: Sequence[Sample],
    sft: Sequence[Row], rl: Sequence[Row], held_out: Sequence[Row], split: Split, leaks: Leaks,
    about: tuple[Line, ...],
) -> Card:  # fmt: skip
    """Count everything."""
    cells = Counter((each.family, each.difficulty) for each in imitated)
    counts = (
        ("runs", str(len({each.run for each in samples}))),
        ("tasks", str(len({each.task.name for each in samples}))),
        ("judged steps", str(len(samples))),
        ("first steps", str(sum(each.is_first for each in samples))),
        ("imitated samples", str(len(sft))),
        ("imitated, but the form or the context cannot hold them", str(len(imitated) - len(sft))),
        ("reinforced prompts", str(len(rl))),
        ("reinforced, but they do not fit", str(len(chosen) - len(rl))),
        ("held-out prompts", str(len(held_out))),
        ("tasks to train on, held out, dropped",
         f"{len(split.train)}, {len(split.held_out)}, {len(split.dropped)}"),
    )  # fmt: skip
    return Card(
        counts=counts,
        verdicts=tuple(sorted(Counter(each.evaluation.verdict.value for each in samples).items())),
        cells=tuple((family, level, n) for (family, level), n in sorted(cells.items())),
        lengths=(
            ("prompt", _spread(sum(count(m.content) for m in each.prompt) for each in sft)),
            ("answer", _spread(count(each.completion) for each in sft)),
        ),
        leaks=leaks,
        split=split,
        devices=tuple(sorted({each.evaluation.device.name for each in samples})),
        judges=tuple(sorted({each.evaluation.judge or "unknown" for each in samples})),
        about=about,
    )


def _spread(lengths: Iterable[int]) -> str:
    found = sorted(lengths)
    if not found:
        return "none"
    return f"{found[0]} to {found[-1]}, median {statistics.median(found):g}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
