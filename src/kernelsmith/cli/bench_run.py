"""A bench from the command line: a plan from options, progress while it runs, tables at the end."""

import argparse
import os
import re
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from kernelsmith.bench.crew import Progress
from kernelsmith.bench.entrant import Entrant, fixed, recorded, searching
from kernelsmith.bench.numbers.findings import Findings
from kernelsmith.bench.output import folder as outputs
from kernelsmith.bench.output import tables
from kernelsmith.bench.plan import PAPER_TESTS, Plan, load
from kernelsmith.bench.protocol import Ended, Show, Status, carried_out
from kernelsmith.bench.record import Fault, Key, Missing, Record
from kernelsmith.bench.suite import open_suite, settled
from kernelsmith.cli.bench_elsewhere import WORKER, staff_for
from kernelsmith.cli.bench_results import say_corrupt
from kernelsmith.cli.choices import (
    laid_out,
    models_of,
    names_folder,
    refuse_unpriced,
    student_in,
    with_options,
)
from kernelsmith.cli.elsewhere import LOCAL
from kernelsmith.cli.live import clock_of, is_live, short
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.triton import has_gpu
from kernelsmith.run.config import ProposerSpec, dump_config, preset_of

INTERRUPTED = 130
_SAID = 200
"""Of a reason, in a line of progress."""


def begun(suite: str, args: argparse.Namespace) -> int:
    """Begin a bench, or go on with the one in ``--out``."""
    open_suite(suite)  # says what is wrong with the name before anything else does
    plan = plan_from(suite, args)
    folder = args.out or Path("runs", "bench", re.sub(r"[^\w.-]+", "-", suite).strip("-"))
    return _gone(plan, folder, args)


def resumed(args: argparse.Namespace) -> int:
    """Go on as it was begun."""
    plan = load(args.resume)
    changes: dict[str, object] = {"max_seconds": args.max_seconds}
    if args.max_usd is not None:
        changes["max_usd"] = args.max_usd
    if args.jobs is not None:
        changes["workers"] = args.jobs
    if args.devices:
        changes["devices"] = _devices(args.devices)
    if args.evaluator:
        changes["evaluators"] = () if args.evaluator == [LOCAL] else tuple(args.evaluator)
    return _gone(replace(plan, **changes), args.resume, args)  # type: ignore[arg-type]


def plan_from(suite: str, args: argparse.Namespace) -> Plan:
    """What the options ask for.

    Raises:
        UsageError: Some of it is unknown or contradicts the rest.
    """
    where = args.evaluator[0] if args.evaluator else None
    said = vars(args) | {"policy": None, "evaluator": where}
    config = with_options(laid_out(args), argparse.Namespace(**said))
    if config.budget.steps < 1:  # a run may have none, to take up what was judged; a bench may not
        raise UsageError("--steps is at least 1: a search without a candidate says nothing; got 0")
    entrants = tuple(_entrants(args, config.proposer))
    if args.max_usd is not None or config.budget.usd is not None:
        for each in entrants:
            refuse_unpriced(each.proposer or ProposerSpec())
    evaluators = tuple(args.evaluator) or (config.evaluator,)
    config = replace(config, evaluator=LOCAL)  # who judges changes no number
    if args.early_stop is not None:
        config = replace(config, budget=replace(config.budget, stale_steps=args.early_stop))
    effort = args.effort or config.confirm_effort
    preset = (preset_of(args.config) if args.config else "") or args.preset or ""
    tests = PAPER_TESTS if preset == "paper" and args.tests is None else args.tests or 0
    return Plan(
        suite=settled(suite),
        entrants=entrants,
        config=dump_config(replace(config, proposer=ProposerSpec())),
        samples=args.samples, seed=config.seed,
        baselines=_words(args.baseline) or ("eager",),
        tests=tests, effort=effort, preset=preset,
        only=tuple(args.only), levels=tuple(args.level), limit=args.limit, sample=args.sample,
        workers=1 if args.jobs is None else args.jobs,
        devices=_devices(args.devices),
        evaluators=() if evaluators == (LOCAL,) else evaluators,
        max_usd=args.max_usd, max_seconds=args.max_seconds,
    )  # fmt: skip


def _entrants(args: argparse.Namespace, laid: ProposerSpec) -> Iterator[Entrant]:
    """Everyone who is named, else whom the file names, else the rules."""
    policies = args.policy or [""]
    models = models_of(args, laid)
    proposers = list(args.proposer)
    if not proposers and not models and not args.entrant:
        proposers = [laid.kind if args.config else "rules"]
    for word in proposers:
        kind, _, path = word.partition(":")
        if kind == "runs" and path:
            yield recorded(Path(path))
        elif word != "llm" or not models:  # else each of them, below
            spec = _spec(word, laid)
            yield from (searching(spec, policy) for policy in policies)
    for model in models:
        if names_folder(model.name) and model.base_url is None:
            spec = student_in(model.name, laid)
        else:
            spec = ProposerSpec(kind="llm", models=(model,))
        yield from (searching(spec, policy) for policy in policies)
    yield from (fixed(name) for name in _words(args.entrant))


def _devices(said: str | None) -> tuple[str, ...]:
    """GPUs by number or by name.

    Raises:
        UsageError: None has such a name.
    """
    found = _words([said] if said else [])
    wrong = [each for each in found if not re.fullmatch(r"\d+|(GPU|MIG)-[\w-]+", each)]
    if wrong:
        raise UsageError(f"--devices are numbers or names of GPUs, such as 0,1; got {wrong[0]!r}")
    return found


def _spec(word: str, laid: ProposerSpec) -> ProposerSpec:
    """Who is meant by a word, as the file says where it says more of them."""
    kind, _, path = word.partition(":")
    known = laid if laid.kind == kind else ProposerSpec()
    if kind == "rules" and not path:
        return ProposerSpec(kind="rules")
    if kind == "llm" and not path:
        if not known.models:
            raise UsageError("--proposer llm needs a model: --model NAME")
        return known
    if kind == "replay" and (path or known.path):
        recording = Path(path or str(known.path)).resolve()
        if not recording.exists():
            raise UsageError(f"cannot read a recording at {recording}: it does not exist")
        return ProposerSpec(kind="replay", path=str(recording))
    if kind == "student":
        return student_in(path or known.path, laid)
    raise UsageError(
        f"no proposer {word!r}; known are rules, student:FOLDER, replay:PATH, runs:FOLDER, and "
        "--model"
    )


def _gone(plan: Plan, folder: Path, args: argparse.Namespace) -> int:
    if not args.json:
        names = ", ".join(each.name for each in plan.entrants)
        print(f"{plan.suite}: {names} -> {folder}", file=sys.stderr)
    if plan.devices and not has_gpu():
        raise UsageError("--devices are GPUs, and this machine has none; leave it out")
    staff = staff_for(plan)
    with _watching() as show:
        ended = carried_out(plan, folder, show, staff=staff, local=(WORKER,))
    return reported(ended, folder, args)


def reported(ended: Ended, folder: Path, args: argparse.Namespace) -> int:
    """Show what there is, name what there is not, and return the exit status.

    Raises:
        UsageError: The bench was ended because no job can work as things are.
    """
    results = ended.results
    again = f"kernelsmith bench --resume {shlex.quote(str(folder))}"
    if ended.fatal and not results.records:
        say_corrupt(results)
        raise UsageError(ended.fatal)
    if results.records:
        found = outputs.write(results, folder)
        with _read_or_not(sys.stdout):
            _show(found, folder, args)
    unjudged = [each for each in results.missing if each.entrant]
    with _read_or_not(sys.stderr):
        say_corrupt(results)
        _say_open(ended, unjudged, again)
    if ended.stopped:
        return INTERRUPTED
    if ended.fatal:
        raise UsageError(f"{ended.fatal}; then go on with: {again}")
    if any(each.fault is Fault.OURS for each in unjudged):
        return 3
    return 2 if unjudged or ended.unbegun or not results.records else 0


@contextmanager
def _read_or_not(stream: TextIO) -> Iterator[None]:
    """Where nobody reads what is said any more, the exit status still says what came of it."""
    try:
        yield
        stream.flush()
    except (BrokenPipeError, SystemExit):  # the latter is rich's answer to the former
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _show(found: Findings, folder: Path, args: argparse.Namespace) -> None:
    if args.json:
        print((folder / outputs.RESULTS).read_text())
        return
    console = Console(highlight=False, markup=False, emoji=False)
    tables.terminal(found, console, full=args.full)
    for name in (outputs.RESULTS, outputs.REPORT, outputs.MARKDOWN, outputs.LATEX):
        console.print(str(folder / name), soft_wrap=True)


def _say_open(ended: Ended, unjudged: Sequence[Missing], again: str) -> None:
    """What has no record, why, and how to go on."""
    for each in unjudged:
        print(f"{each.entrant} on {each.entry}: {each.reason}", file=sys.stderr)
    if ended.unbegun:
        said = "the money is spent, or the time is over"
        what = f"{ended.unbegun} jobs were not begun or not finished"
        print(f"{what}: {said}; go on with: {again}", file=sys.stderr)
    if ended.stopped:
        print(f"stopped; go on with: {again}", file=sys.stderr)
    elif unjudged:
        jobs = "1 job has" if len(unjudged) == 1 else f"{len(unjudged)} jobs have"
        print(f"{jobs} no record; to try again: {again}", file=sys.stderr)


_QUIET_S = 60.0
"""After which somebody who sees lines only wants to know that it goes on."""


class Lines:
    """A line for every job that ended, and one a minute where none does."""

    def __init__(self) -> None:
        self._last: Record | Missing | None = None
        self._note = ""
        self._said_s = time.monotonic()

    def __call__(self, status: Status) -> None:
        """Say what is new."""
        if status.note != self._note:
            self._note = status.note
            print(status.note, file=sys.stderr, flush=True)
        if status.last is self._last or status.last is None:
            if time.monotonic() - self._said_s > _QUIET_S and status.running:
                self._said_s = time.monotonic()
                under_way = ", ".join(_under_way(key, each) for key, each in status.running.items())
                print(
                    f"[{status.ended}/{status.total}] at {under_way}", file=sys.stderr, flush=True
                )
            return
        self._said_s = time.monotonic()
        self._last = status.last
        left = f"; {clock_of(status.eta_s)} left" if status.eta_s and status.left else ""
        print(
            f"[{status.ended}/{status.total}] {_outcome(status.last)}{left}",
            file=sys.stderr,
            flush=True,
        )


class Panel:
    """What a terminal shows: a bar, what is under way, what ended last."""

    def __init__(self) -> None:
        self._status: Status | None = None

    def __call__(self, status: Status) -> None:
        """Take note."""
        self._status = status

    def __rich__(self) -> RenderableType:
        """Draw it as of now."""
        status = self._status
        if status is None:
            return Text("opening the suite", style="yellow")
        bar = Table.grid(padding=(0, 2))
        money = f", ${status.usd:.2f}" if status.usd else ""
        left = f", {clock_of(status.eta_s)} left" if status.eta_s else ""
        bar.add_row(
            ProgressBar(total=max(status.total, 1), completed=status.ended, width=30),
            f"{status.ended} of {status.total}{money}, "
            f"{clock_of(time.monotonic() - status.begun)}{left}",
        )
        rows = Table.grid(padding=(0, 2))
        for key, progress in status.running.items():
            said = "" if progress is None else f"step {progress.told}/{progress.of}"
            best = "" if progress is None or progress.best is None else f"best {progress.best:.2f}x"
            what = Text(f"{key.entry} #{key.seed}")  # as it is: names are not ours
            rows.add_row(Text(key.entrant, style="dim"), what, said, best)
        parts: list[RenderableType] = [bar, rows]
        if status.last is not None:
            parts.append(Text(_outcome(status.last), style="dim"))
        if status.note:
            parts.append(Text(status.note, style="yellow"))
        return Group(*parts)


def _job(entrant: str, entry: str, seed: int) -> str:
    return f"{entrant} on {entry}" + (f" seed {seed}" if seed else "")


def _under_way(key: Key, progress: Progress | None) -> str:
    said = _job(*key)
    if progress is None:
        return said
    best = "" if progress.best is None else f", best {progress.best:.2f}x"
    if progress.told >= progress.of:
        return f"{said}: its {progress.of} steps are done{best}, the winner is judged"
    return f"{said}: step {progress.told} of {progress.of}{best}"


def _outcome(last: Record | Missing) -> str:
    where = _job(last.entrant, last.entry, last.seed)
    if isinstance(last, Missing):
        return f"{where}: not judged: {last.reason}"
    if not last.passed:
        if last.verdict is None:
            return f"{where}: no candidate{_because(last.message)}"
        return f"{where}: {last.verdict.value.replace('_', ' ')}"
    return f"{where}: {short(last.speedup())}"


def _because(message: str) -> str:
    said = " ".join(message.split())
    return f": {said[:_SAID]} ..." if len(said) > _SAID else f": {said}" if said else ""


@contextmanager
def _watching() -> Iterator[Show]:
    if not is_live():
        yield Lines()
        return
    panel = Panel()
    console = Console(stderr=True, highlight=False)
    with Live(panel, console=console, refresh_per_second=4, transient=True):
        yield panel


def _words(said: list[str]) -> tuple[str, ...]:
    return tuple(word.strip() for each in said for word in each.split(",") if word.strip())
