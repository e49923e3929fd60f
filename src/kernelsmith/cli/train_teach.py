"""``kernelsmith train teach``: the rules over many tasks, for as many steps as are wanted."""

import argparse
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from kernelsmith.cli.elsewhere import cores_posts, crew_of, device_of_post
from kernelsmith.cli.ending import INTERRUPTED
from kernelsmith.cli.session import load
from kernelsmith.cli.suite import tasks_in
from kernelsmith.domain.device import Device
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.propose.proposer import Proposer
from kernelsmith.run.config import Budget, RunConfig
from kernelsmith.run.start import Judges, settings_of
from kernelsmith.training.evolve import OpenJudges, quick_run
from kernelsmith.training.forms.algebra import AlgebraTeacher
from kernelsmith.training.teach import Lessons, Teaching


def teach(args: argparse.Namespace) -> int:
    """Teach until it is enough; Ctrl-C and the same command go on."""
    usual = quick_run()
    run = replace(
        usual, backend=args.backend, seed=args.seed, budget=Budget(steps=args.steps),
        search=replace(usual.search, islands=1),
    )  # fmt: skip
    judges, device, lanes = _judged(args, run)
    lessons = Lessons(
        run=run, until=args.until, lanes=lanes, max_seconds=args.max_seconds,
        slow_ones=not args.no_compiler,
    )  # fmt: skip
    teaching = Teaching(
        _tasks(args.tasks, run, short=args.one_workload), args.out, lessons,
        lambda task, place: _teacher(run),
        ready=partial(_at_hand, backend=args.backend), say=_say, judges=judges, device=device,
    )  # fmt: skip
    with _stopped_by_signals(teaching):
        taught = teaching.go()
    pace = taught.new / taught.seconds * 60
    print(
        f"{taught.judged} judged steps of {taught.tasks} tasks in {args.out}; {taught.new} new in "
        f"{taught.seconds:.0f} s, {pace:.1f} a minute; {taught.skipped} tasks cannot be judged"
    )
    enough = args.until is not None and taught.judged >= args.until
    if (taught.late or taught.interrupted) and not enough:
        _say("the same command goes on")
    elif taught.waiting and args.no_compiler:
        _say(f"{taught.waiting} more tasks need torch's compiler: leave out --no-compiler")
    return INTERRUPTED if taught.interrupted else 0


def _judged(
    args: argparse.Namespace, run: RunConfig
) -> tuple[Callable[[int], OpenJudges] | None, Device | None, int]:
    """Who judges in each lane, on what, and how many lanes there are."""
    if args.cores is None:
        return None, None, args.lanes or 2
    posts = cores_posts(args.cores, run.backend)
    settings = settings_of(run.effort, run)

    def lane(number: int) -> OpenJudges:
        def opened(stack: AsyncExitStack) -> Judges:
            crew = crew_of([posts[number % len(posts)]])
            stack.push_async_callback(crew.close)
            return Judges(evaluator=crew.evaluator(settings))

        return opened

    return lane, device_of_post(posts[0]), args.lanes or len(posts)


def _tasks(
    folders: list[Path], run: RunConfig, *, short: bool
) -> list[tuple[str, Callable[[], Task]]]:
    found: dict[str, Callable[[], Task]] = {}
    for folder in folders:
        for name, path in tasks_in(folder):
            if name in found:
                raise UsageError(f"two folders hold a task {name!r}; teach them apart")
            found[name] = partial(_loaded, path, run, short=short)
    return list(found.items())


def _loaded(path: Path, run: RunConfig, *, short: bool) -> Task:
    task = load(path, run)
    if not short:
        return task
    timed = [each for each in task.workloads if not each.held_out]
    return replace(task, workloads=tuple(w for w in task.workloads if w.held_out or w is timed[0]))


def _teacher(run: RunConfig) -> Proposer:
    from kernelsmith.propose.rules.proposer import RulesProposer

    if run.backend == "null":
        return AlgebraTeacher()
    return RulesProposer(run.backend, in_flight=run.concurrency, hurried=True)


def _at_hand(task: Task, backend: str) -> bool:
    """Whether the rules know the task from its source; else they ask torch's compiler."""
    from kernelsmith.propose.rules.families import templates_only

    return backend == "null" or bool(templates_only(task, backend).members)


@contextmanager
def _stopped_by_signals(teaching: Teaching) -> Iterator[None]:
    def asked(number: int, frame: object) -> None:
        _say("stopping: what is under way is finished first; Ctrl-C again stops at once")
        teaching.stop()

    before = {each: signal.signal(each, asked) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
