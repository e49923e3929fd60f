"""One judge for the length of a command: this machine's, a server's or a cluster's."""

import argparse
import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernelsmith.cli.elsewhere import LOCAL, backend_at, elsewhere
from kernelsmith.cli.options import settings
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.nvcc.cute import refuse_missing
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.tasks import load_candidate


class Judge(Protocol):
    """Judges now; for callers without a loop."""

    def __call__(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """Return the verdict."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """What a command that judges needs."""

    task: Task
    candidates: tuple[Candidate, ...]
    judge: Judge


@contextmanager
def judging(
    args: argparse.Namespace, task: Path, candidates: tuple[Path, ...]
) -> Iterator[Judging]:
    """Read a task and candidates for where the options say that they are judged.

    Raises:
        UsageError: A file, the backend or the evaluator is not as it must be.
    """
    where = args.evaluator or LOCAL
    args.backend = args.backend or ("cpu" if where == LOCAL else backend_at(where))
    chosen = settings(args)
    read = tuple(load_candidate(path, args.backend) for path in candidates)
    if where == LOCAL:
        refuse_missing(read)
    with (
        _here(args.backend, task, chosen)
        if where == LOCAL
        else _there(where, args.backend, task, chosen) as (loaded, judge)
    ):
        yield Judging(task=loaded, candidates=read, judge=judge)


@contextmanager
def _here(backend: str, path: Path, chosen: Settings) -> Iterator[tuple[Task, Judge]]:
    from kernelsmith.api import load_task
    from kernelsmith.cli.session import expression
    from kernelsmith.evaluate.evaluator import LocalEvaluator

    with LocalEvaluator(backend, chosen) as evaluator:
        is_null = backend == "null"
        task = expression(path) if is_null else load_task(path, backend=evaluator.backend)
        yield task, evaluator.judge


@contextmanager
def _there(where: str, backend: str, path: Path, chosen: Settings) -> Iterator[tuple[Task, Judge]]:
    from kernelsmith.cli.session import load
    from kernelsmith.run.config import RunConfig

    task = load(path, RunConfig(backend=backend, evaluator=where))
    place = elsewhere(where, backend)
    assert place is not None
    with asyncio.Runner() as runner:
        evaluator = place.evaluator(chosen)

        def judge(
            task: Task, candidate: Candidate, *, baseline: Candidate | None = None
        ) -> Evaluation:
            return runner.run(evaluator.evaluate(task, candidate, baseline=baseline))

        try:
            yield task, judge
        finally:
            runner.run(place.close())
