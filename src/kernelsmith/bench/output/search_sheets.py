"""Tables of how searches went: what steps buy, when to stop, what refining does."""

from collections.abc import Mapping

from kernelsmith.bench.numbers.findings import Search
from kernelsmith.bench.numbers.scores import Unit
from kernelsmith.bench.output.cells import Cell, Sheet, amount, cell, share


def reached(searches: Mapping[str, Search]) -> Sheet:
    """Share of the gain, and cost, after a few steps."""
    return Sheet(
        title="What few steps give",
        header=("system", "steps", "share of the gain", "best so far", "correct", "tokens", "cost",
                "time in steps"),
        rows=tuple(
            (
                Cell(name), Cell(str(each.steps)), cell(each.share, Unit.SHARE),
                cell(each.best, Unit.RATIO), cell(each.correct, Unit.SHARE),
                amount(each.tokens, Unit.COUNT), amount(each.usd, Unit.USD),
                amount(each.seconds, Unit.SECONDS),
            )
            for name, search in searches.items()
            for each in search.reached
        ),
        notes=("share of the logarithm of the whole search's speed-up; best: geometric mean over "
               "tasks, eager kept until beaten, as the search timed it; steps overlap, so their "
               "time adds up to more than the search's",
               *_uncounted_steps(searches)),
        text_columns=2, key="reached",
    )  # fmt: skip


def _uncounted_steps(searches: Mapping[str, Search]) -> list[str]:
    missing = {
        name: max((each.uncounted for each in search.reached), default=0)
        for name, search in searches.items()
    }
    return [
        f"{name}: what {count} steps took nobody counted; tokens and cost are without them"
        for name, count in missing.items()
        if count
    ]


def _uncounted_searches(searches: Mapping[str, Search]) -> list[str]:
    return [
        f"{name}: what {each.uncounted} searches took in {each.what} nobody counted"
        for name, search in searches.items()
        for each in search.prices
        if each.uncounted
    ]


def stopped(searches: Mapping[str, Search]) -> Sheet:
    """What rules to stop by would have saved and lost."""
    return Sheet(
        title="Rules to stop by, replayed",
        header=("system", "stop after", "steps", "share of the steps", "share of the gain", "best"),
        rows=tuple(
            (Cell(name), Cell(each.rule), Cell(f"{each.steps:.1f}"), cell(each.work, Unit.SHARE),
             cell(each.gain, Unit.SHARE), cell(each.best, Unit.RATIO))
            for name, search in searches.items()
            for each in search.stopped
        ),
        text_columns=2, key="stopped",
    )  # fmt: skip


def beyond(searches: Mapping[str, Search]) -> Sheet:
    """What later steps still gained, by level: why some levels stay weak."""
    return Sheet(
        title="What later steps still gain, by level",
        header=("system", "level", "after step", "until", "searches", "gain", "improved",
                "first pass later"),
        rows=tuple(
            (Cell(name), Cell(each.level), Cell(str(each.after)), Cell(str(each.until)),
             Cell(str(each.searches)), cell(each.gain, Unit.RATIO),
             cell(each.improved, Unit.SHARE), cell(each.rescued, Unit.SHARE))
            for name, search in searches.items()
            for each in search.beyond
        ),
        text_columns=3, key="beyond",
    )  # fmt: skip


def prices(searches: Mapping[str, Search]) -> Sheet:
    """What gains cost."""
    units = {"tokens": Unit.COUNT, "usd": Unit.USD, "seconds": Unit.SECONDS}
    return Sheet(
        title="What gains cost",
        header=("system", "counted in", "in all", "gains", "per gain", "per doubling of speed"),
        rows=tuple(
            (Cell(name), Cell(each.what), amount(each.total, units[each.what]),
             Cell(str(each.gains)), cell(each.each, units[each.what]),
             cell(each.doubling, units[each.what]))
            for name, search in searches.items()
            for each in search.prices
        ),
        notes=("a gain is a step that raised a task's best speed-up above eager and what was "
               "best before", *_uncounted_searches(searches)),
        text_columns=2, key="prices",
    )  # fmt: skip


def rounds(searches: Mapping[str, Search]) -> Sheet:
    """Rescued and persistent tasks from checkpoint to checkpoint."""

    def ratio(value: float | None) -> Cell:
        return amount(value, Unit.RATIO)

    return Sheet(
        title="Rescued and persistent from round to round",
        header=("system", "from step", "to step", "compiled by then", "correct by then",
                "average speed-up", "rescued", "their average", "persistent", "their average"),
        rows=tuple(
            (Cell(name), Cell(str(each.since)), Cell(str(each.to)), share(each.built),
             share(each.correct), ratio(each.average), Cell(str(each.rescued)),
             ratio(each.rescued_average), Cell(str(each.persistent)),
             ratio(each.persistent_average))
            for name, search in searches.items()
            for each in search.rounds
        ),
        text_columns=3, key="rounds",
    )  # fmt: skip


def flows(searches: Mapping[str, Search]) -> Sheet:
    """Candidates by what their parents were."""
    return Sheet(
        title="Candidates against the ones they were derived from",
        header=("system", "what happened", "candidates", "share", "speed-up", "over the parent",
                "faster than it"),
        rows=tuple(
            (Cell(name), Cell(each.kind), Cell(f"{each.count:,}"), share(each.share),
             amount(each.speedup, Unit.RATIO), amount(each.gain, Unit.RATIO),
             Cell(f"{each.faster:,}"))
            for name, search in searches.items()
            for each in search.flows
        ),
        text_columns=2, key="flows",
    )  # fmt: skip
