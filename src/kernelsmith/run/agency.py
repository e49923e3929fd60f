"""A run whose proposer is a coding agent that comes and goes.

There is no server: whoever brings replies takes the run up, has them judged, and leaves once
everything in flight waits for further replies. Several agents may do so; one at a time judges.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.domain.trajectory import Step
from kernelsmith.errors import UsageError
from kernelsmith.propose.agent import AgentProposer
from kernelsmith.propose.mailbox import Mailbox, Order
from kernelsmith.run.config import RunConfig
from kernelsmith.run.journal import read
from kernelsmith.run.loop import Run
from kernelsmith.run.progress import Watch
from kernelsmith.run.recorded import Recorded, Stage
from kernelsmith.run.result import Result
from kernelsmith.run.start import JOURNAL, Judges, resume, start

_LOOK_EVERY_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of one reply."""

    number: int
    step: Step | None = None
    """Once search was told; steps are told in the order of their numbers."""
    evaluation: Evaluation | None = None
    """As soon as it was judged."""
    waiting_for: int | None = None
    """The earlier brief whose reply is missing, where that is why there is no step yet."""


def mailbox_of(folder: Path) -> Mailbox:
    """Where a run's briefs and replies lie."""
    return Mailbox(folder / "agent")


def begin(
    task: Task,
    folder: Path,
    config: RunConfig,
    *,
    judges: Judges | None = None,
    watch: Watch | None = None,
) -> Result:
    """Make a run that waits for agents, with its first briefs posted."""
    proposer = AgentProposer(mailbox_of(folder), options=config.prompt)
    run = start(task, folder, config, proposer=proposer, judges=judges, watch=watch)
    return asyncio.run(_until_waiting(run, proposer))


def ask(folder: Path, *, count: int, agent: str) -> list[Order]:
    """Claim briefs of a run."""
    _must_be_run(folder)
    return mailbox_of(folder).claim(count, agent)


def tell(
    folder: Path,
    replies: Mapping[int, str],
    *,
    judges: Judges | None = None,
    watch: Watch | None = None,
    waiting: Callable[[], None] | None = None,
) -> list[Answer]:
    """Bring replies, have them judged, and say what became of each.

    Args:
        folder: Of the run.
        replies: By number of the brief: a source file's text, or prose with a fenced block.
        judges: Processes on this machine if not given.
        watch: Called after each step.
        waiting: Called once where another process is judging, before waiting for it.

    Raises:
        UsageError: A number or a reply is no good; nothing was taken then.
    """
    _must_be_run(folder)
    box = mailbox_of(folder)
    for number, text in replies.items():
        box.reply(number, text)
    with _turn(folder, waiting):
        made: list[AgentProposer] = []

        def proposer_of(recorded: Recorded) -> AgentProposer:
            made.append(AgentProposer(box, options=recorded.config.prompt))
            return made[0]

        run = resume(folder, proposer_of=proposer_of, judges=judges, watch=watch)
        asyncio.run(_until_waiting(run, made[0]))
    return [_answer(read(folder / JOURNAL), box, number) for number in replies]


def orders_of(folder: Path) -> list[Order]:
    """Briefs of a run that wait, and who has claimed them."""
    _must_be_run(folder)
    return mailbox_of(folder).orders()


async def _until_waiting(run: Run, proposer: AgentProposer) -> Result:
    """Go on until nothing is under way but waiting for replies, or the run has ended."""
    going = asyncio.ensure_future(run.go())
    idle = 0
    while not going.done():
        await asyncio.wait([going], timeout=_LOOK_EVERY_S)
        idle = idle + 1 if 0 < run.under_way == proposer.waiting else 0
        if idle == 2:  # twice in a row: nothing was just about to begin
            run.stop()
            run.stop()
    return await going


def _answer(recorded: Recorded, box: Mailbox, number: int) -> Answer:
    if number < len(recorded.steps):
        step = recorded.steps[number]
        return Answer(number=number, step=step, evaluation=step.evaluation)
    judged = recorded.judged.get((number, Stage.FIRST))
    missing = [order.number for order in box.orders() if order.number < number]
    return Answer(
        number=number,
        evaluation=judged.evaluation if judged is not None else None,
        waiting_for=min(missing, default=None),
    )


def _must_be_run(folder: Path) -> None:
    if not (folder / JOURNAL).exists():
        raise UsageError(
            f"no run in {str(folder)!r}; begin one: kernelsmith agent start TASK --out {folder}"
        )


@contextmanager
def _turn(folder: Path, waiting: Callable[[], None] | None) -> Iterator[None]:
    """Wait until nobody else judges for this run."""
    fd = os.open(folder / ".turn", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if waiting is not None:
                waiting()
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
