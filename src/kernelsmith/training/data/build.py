"""A data set from runs: read, split, filtered or selected, balanced, written and described."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.training.data.balance import balanced
from kernelsmith.training.data.card import Card, card_of
from kernelsmith.training.data.filters import CONTEXT_TOKENS, Filter, deduplicated, filtered
from kernelsmith.training.data.leakage import leaks_of
from kernelsmith.training.data.rows import Row, rows_of, write_rows
from kernelsmith.training.data.sample import Sample, Stage
from kernelsmith.training.data.select import select
from kernelsmith.training.data.split import Split, split
from kernelsmith.training.data.steps import read_samples
from kernelsmith.training.forms.form import Form, form_named

SFT, RL, HELD_OUT = "sft.jsonl", "rl.jsonl", "held_out.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How a data set is made of runs."""

    form: str = "typed"
    stage: Stage = Stage.COLD_START
    select: str = "best"
    """The strategy for reinforcement."""
    guard: bool | None = None
    """Whether leaking samples are left out; by default for all strategies but ``all``."""
    filter: Filter = field(default_factory=Filter)
    most: int | None = None
    """Samples per file, balanced over families and difficulties."""
    held_out_share: float = 0.2
    held_out: tuple[str, ...] = ()
    """Names of tasks to hold out instead of a drawn share."""
    centres: tuple[str, ...] = ()
    """The only tasks to take; for the stage ``expert`` the annotated cluster centres."""
    compiler: bool = True
    """Whether questions may be about tasks for which a compiler is asked before a reply is read;
    such steps are imitated in any case."""
    context_tokens: int = CONTEXT_TOKENS
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """What came of it."""

    sft: tuple[Row, ...]
    rl: tuple[Row, ...]
    held_out: tuple[Row, ...]
    split: Split
    card: Card


def build(
    runs: Sequence[Path], recipe: Recipe, out: Path | None = None, *,
    benchmark: Sequence[Task] = (), form: Form | None = None,
) -> Built:  # fmt: skip
    """Make a data set, and write it to ``out`` where one is given.

    Args:
        runs: Folders of runs, or journals.
        recipe: What to take.
        out: Gets ``sft.jsonl``, ``rl.jsonl``, ``held_out.jsonl`` and ``card.md``.
        benchmark: Tasks that results will be reported on; copies of them are dropped.
        form: Instead of the recipe's, for backends that need more than its name.

    Raises:
        UsageError: There is no run, or nothing is left to train on.
    """
    samples = read_samples(runs, recipe.stage, recipe.centres or None)
    if not samples:
        raise UsageError("these runs hold no judged step; nothing can be learnt from them")
    backends = sorted({each.brief.backend for each in samples})
    if form is None and len(backends) > 1 and recipe.form == "typed":
        raise UsageError(
            f"typed edits are of one backend; these runs have {', '.join(backends)}; make one data "
            "set each, or use the form diff"
        )
    form = form or form_named(recipe.form, backends[0], budget_tokens=recipe.context_tokens // 2)
    tasks = list({each.task.name: each.task for each in samples}.values())
    parted = split(
        tasks, share=recipe.held_out_share, seed=recipe.seed, benchmark=benchmark,
        held_out=recipe.held_out,
    )  # fmt: skip
    train, rest = parted.of(samples)
    quick = {each.name for each in tasks if recipe.compiler or form.at_hand(each)}
    imitated = balanced(deduplicated(filtered(train, recipe.filter)), recipe.most, seed=recipe.seed)
    asked_of = [each for each in train if each.task.name in quick]
    chosen = select(deduplicated(asked_of), recipe.select, seed=recipe.seed, guard=recipe.guard)
    chosen = balanced(chosen, recipe.most, seed=recipe.seed)
    limit = recipe.context_tokens
    sft = tuple(rows_of(imitated, form, limit=limit))
    rl = tuple(rows_of(chosen, form, answered=False, limit=limit))
    asked = tuple(
        rows_of(
            _probes([each for each in rest if each.task.name in quick]),
            form,
            answered=False,
            limit=limit,
        )
    )
    card = card_of(
        samples=samples, imitated=imitated, chosen=chosen, sft=sft, rl=rl, held_out=asked,
        split=parted, leaks=leaks_of(chosen), about=recipe_lines(recipe),
    )  # fmt: skip
    built = Built(sft=sft, rl=rl, held_out=asked, split=parted, card=card)
    if out is not None:
        for name, rows in ((SFT, sft), (RL, rl), (HELD_OUT, asked)):
            write_rows(rows, out / name)
        (out / "card.md").write_text(card.to_markdown(), encoding="utf-8")
    return built


def recipe_lines(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """What a card says about how a set was made."""
    return (
        ("form", recipe.form), ("stage", recipe.stage.value),
        ("imitated", f"first steps: correct; later ones: correct and faster than "
                     f"{recipe.filter.over.value}"
                     + (" beyond the noise" if recipe.filter.beyond_noise else "")),
        ("reinforced", recipe.select
         + ("" if recipe.compiler else ", of tasks that need no compiler")),
        ("context", f"{recipe.context_tokens} tokens"),
        ("seed", str(recipe.seed)),
    )  # fmt: skip


def _probes(samples: Sequence[Sample]) -> list[Sample]:
    """Questions to measure on: each parent of a held-out task once, first steps once a task."""
    seen: set[tuple[str, str]] = set()
    kept = []
    for each in samples:
        parent = each.brief.parent
        key = (each.task.name, parent.candidate.id if parent is not None else "")
        if key not in seen:
            seen.add(key)
            kept.append(each)
    return kept
