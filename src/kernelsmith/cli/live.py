"""A run as it goes: one changing panel on a terminal, plain lines elsewhere."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelsmith.domain.timing import Ratio
from kernelsmith.run.config import Budget
from kernelsmith.run.progress import Curve, Progress

_BARS = "▁▂▃▄▅▆▇█"
_EVERY_S = 2.0
"""Between two plain lines, unless there is a new best."""
_CURVE = 48

Say = Callable[[str], None]


class Plain:
    """Writes a line a step, and fewer where steps are fast."""

    def __init__(self, say: Say, clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._last, self._best = -_EVERY_S, -1

    def __call__(self, progress: Progress) -> None:
        """Show one more step, or leave it to the next."""
        best = -1 if progress.best_step is None else progress.best_step
        is_last = progress.told >= progress.of
        if self._clock() - self._last < _EVERY_S and best == self._best and not is_last:
            return
        self._last, self._best = self._clock(), best
        self._say(line(progress))


class Shown:
    """What a terminal shows; rich draws it several times a second."""

    def __init__(self, title: str, budget: Budget) -> None:
        self._title, self._budget = title, budget
        self._progress: Progress | None = None
        self._at = time.monotonic()
        self.note = "waiting for the first verdict"

    def __call__(self, progress: Progress) -> None:
        """Take note of one more step."""
        self._progress, self._at = progress, time.monotonic()
        self.note = "confirming the best" if progress.told >= progress.of else ""

    def __rich__(self) -> RenderableType:
        """Draw it as of now."""
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column()
        since = time.monotonic() - self._at
        if self._progress is None:
            rows.add_row("time", clock_of(since))
        else:
            for name, shown in _rows(self._progress, self._budget, since):
                rows.add_row(name, shown)
        if self.note:
            rows.add_row("now", Text(self.note, style="yellow"))
        return Panel(Group(rows), title=self._title, title_align="left", border_style="blue")


def is_live() -> bool:
    """Whether progress can be drawn over itself."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


@contextmanager
def watching(title: str, budget: Budget, *, quiet: bool = False) -> Iterator[tuple["Watcher", Say]]:
    """Give a watcher of a run, and a way to say something beside it; all of it on stderr."""
    if is_live() and not quiet:
        shown = Shown(title, budget)
        console = Console(stderr=True, highlight=False)
        with Live(shown, console=console, refresh_per_second=4, transient=True):

            def note(text: str) -> None:
                shown.note = text

            yield shown, note
        return

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    say(title)
    yield Plain(say), say


Watcher = Plain | Shown


def line(progress: Progress) -> str:
    """One step as a line of text."""
    ends = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in ends_of(progress))
    best = (
        f"best {short(progress.best)} at step {progress.best_step}" if progress.best else "no best"
    )
    left = f"; {clock_of(progress.eta_s)} left" if progress.eta_s else ""
    return f"step {progress.told}/{progress.of}  {best}  ({ends}{left})"


def ends_of(progress: Progress) -> Sequence[tuple[str, int]]:
    """Verdicts and other ends, those that passed first, then the most frequent."""
    return sorted(progress.verdicts, key=lambda each: (each[0] != "passed", -each[1], each[0]))


def sparkline(curve: Curve, told: int, width: int = _CURVE) -> str:
    """Draw the best speed-up against step, one character a stretch of steps."""
    if not curve:
        return ""
    width = max(1, min(width, told))
    best: list[float | None] = [None] * width
    for step, ratio in curve:
        best[min(step * width // max(told, 1), width - 1)] = ratio.value
    low, high = 1.0, max(ratio.value for _, ratio in curve)
    low = min(low, curve[0][1].value)
    drawn, now = [], None
    for each in best:
        now = each if each is not None else now
        share = 0.0 if now is None or high <= low else (now - low) / (high - low)
        drawn.append(" " if now is None else _BARS[min(int(share * len(_BARS)), len(_BARS) - 1)])
    return "".join(drawn)


def short(ratio: Ratio | None) -> str:
    """A speed-up with its interval, for a line."""
    return "-" if ratio is None else f"{ratio.value:.2f}x [{ratio.low:.2f}, {ratio.high:.2f}]"


def clock_of(seconds: float) -> str:
    """Minutes and seconds."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def cost_of(tokens: int, usd: float | None) -> str:
    """Money and tokens, as far as anybody counted."""
    said = [] if usd is None else [f"${usd:.2f}"]
    return ", ".join([*said, f"{tokens:,} tokens"]) if tokens or said else "nothing"


def _rows(progress: Progress, budget: Budget, since: float) -> Iterator[tuple[str, RenderableType]]:
    if progress.best is not None:
        found = Text(f"{progress.best.value:.3f}x", style="bold green")
        found.append(
            f"  95 % interval {progress.best.low:.3f} to {progress.best.high:.3f}, "
            f"step {progress.best_step}",
            style="default",
        )
        yield "best", found
        yield "curve", Text(sparkline(progress.curve, progress.told), style="green")
    else:
        yield "best", Text("nothing has passed yet", style="dim")
    bar = Table.grid(padding=(0, 2))
    flying = progress.asked - progress.told
    bar.add_row(
        ProgressBar(total=max(progress.of, 1), completed=progress.told, width=30),
        f"{progress.told} of {progress.of}" + (f", {flying} under way" if flying else ""),
    )
    yield "steps", bar
    yield (
        "ends",
        ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in ends_of(progress)),
    )
    yield "archive", f"{progress.cells} cells, {progress.coverage:.1%} of all"
    yield "cost", cost_of(progress.tokens, progress.usd) + _limits(budget)
    left = _left(progress, budget, since)
    yield (
        "time",
        clock_of(progress.elapsed_s + since) + (f", {clock_of(left)} left" if left else ""),
    )


def _limits(budget: Budget) -> str:
    said = [] if budget.usd is None else [f"${budget.usd:g}"]
    said += [] if budget.tokens is None else [f"{budget.tokens:,} tokens"]
    return f" of {' or '.join(said)}" if said else ""


def _left(progress: Progress, budget: Budget, since: float) -> float | None:
    ends = [] if progress.eta_s is None else [max(progress.eta_s - since, 0.0)]
    if budget.seconds is not None:
        ends.append(max(budget.seconds - progress.elapsed_s - since, 0.0))
    return min(ends, default=None)
