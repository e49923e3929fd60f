"""Foreign recipes run in the judge's sandbox, so that a suite knows its workloads in advance."""

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelsmith.domain.task import Task
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.evaluate.backends.cpu import CpuBackend
from kernelsmith.evaluate.builder import default_cache


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One call that a suite's tests or timing script make."""

    said: str
    """Shapes and options in a few words."""
    dtype: str
    bytes: int
    count: int
    """How many tensors it takes."""
    empty: bool
    bad: str
    """Why it cannot be judged; empty where it can."""
    random: bool
    fixed: bool
    """Whether every draw gives the same values: they are written down in the test."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What a task's own tests and timing script call it with."""

    tests: tuple[Case, ...]
    timings: tuple[Case, ...]
    why: str
    """What went wrong on the way, where something did."""


class SurveyBackend(CpuBackend):
    """Loads once, and not in every process, what tensors without memory need."""

    _preload = (*CpuBackend._preload, "torch._dynamo")


class Surveyor:
    """Opens sources in the sandbox, each in a process of its own, on the processor.

    Processes start when first needed and end with the ``with`` block.
    """

    def __init__(
        self, make: Callable[[], CpuBackend] = SurveyBackend, *, cache: Path | None = None
    ) -> None:
        self._make = make
        self._cache = (cache or default_cache()) / "surveys"
        self._backend: CpuBackend | None = None

    def ask(self, task: Task) -> object:
        """Return what the source's ``get_workloads()`` returns, as a tree of plain values.

        Raises:
            UsageError: The source does not run; the message says why.
        """
        if self._backend is None:
            self._backend = self._make()
        try:
            oracle = self._backend.oracle(task)
        except EvaluationLost as error:
            raise UsageError(f"its recipe ended its process: {error}") from error
        try:
            found: object = oracle.workloads
            return found
        finally:
            oracle.close()

    def text(self, task: Task) -> str:
        """Return the JSON that ``get_workloads()`` returns; the same source is asked once.

        Raises:
            UsageError: The source does not run; the message says why.
        """
        key = hashlib.sha256(f"{metadata.version('torch')} {task.source}".encode()).hexdigest()
        kept = self._cache / f"{key[:32]}.json"
        with suppress(OSError, ValueError, RecursionError):  # torn or unreadable: ask again
            said = kept.read_text()
            json.loads(said)
            return said
        said = str(self.ask(task))
        draft = kept.with_suffix(f".{os.getpid()}")
        with suppress(OSError):  # what cannot be kept is asked for again
            self._cache.mkdir(parents=True, exist_ok=True)
            draft.write_text(said)
            draft.replace(kept)
        return said

    def calls(self, task: Task) -> Calls:
        """Survey a generated task; see ``parts/survey.py``.

        Raises:
            UsageError: The source does not run, or says something else.
        """
        try:
            return _calls(self.text(task))
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, UsageError):
                raise
            raise UsageError(f"its recipe says no calls: {error!r}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._backend is not None:
            self._backend.close()
            self._backend = None


def _calls(text: str) -> Calls:
    said = json.loads(text)
    return Calls(
        tests=tuple(Case(**each) for each in said["tests"]),
        timings=tuple(Case(**each) for each in said["timings"]),
        why=said["tests_why"] or said["timings_why"],
    )
