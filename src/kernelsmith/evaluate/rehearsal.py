"""Rehearsal: what can be compiled of a candidate before its turn, while others have the device.

It decides nothing. A candidate whose rehearsal fails, or that gets none, is compiled by the judge.
"""

import logging
from typing import Protocol, runtime_checkable

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task
from kernelsmith.errors import SmithError
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.failure import ProgramFailed
from kernelsmith.evaluate.guards.static import inspect_source
from kernelsmith.evaluate.settings import Settings

_FAILURES = (
    SmithError, ProgramFailed, ArithmeticError, AssertionError, AttributeError, LookupError,
    MemoryError, OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""All that can come of it: none of them may cost an evaluation."""
logger = logging.getLogger(__name__)


@runtime_checkable
class Rehearses(Protocol):
    """A backend that can compile ahead. Called from any thread, while others judge."""

    def rehearse(self, task: Task, candidate: Candidate, *, timeout_s: float) -> None:
        """Compile what the candidate will launch, without the device, and keep it for its turn."""
        ...


def rehearse(backend: Backend, task: Task, candidate: Candidate, settings: Settings) -> None:
    """Have a candidate compiled ahead where the backend can; a refused source is not run."""
    if not settings.rehearse or not isinstance(backend, Rehearses):
        return
    if candidate.backend != backend.name:
        return
    looked_at = settings.static and candidate.backend != "null"
    if looked_at and inspect_source(candidate, task) is not None:
        return
    try:
        backend.rehearse(task, candidate, timeout_s=settings.timeout_s)
    except _FAILURES as error:
        logger.debug("candidate %s was not rehearsed: %s", candidate.id, error)
