"""Evaluations that a training has paid for, on disk: a resumed one does not pay again."""

import hashlib
import threading
from pathlib import Path

from kernelsmith.domain.candidate import Candidate, CandidateId
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.evaluate.harness import JUDGE


class Store:
    """Remembers evaluations by task and candidate; those of another judge are forgotten.

    Timings of two machines do not compare: keep one file for each.
    """

    def __init__(self, path: Path, *, judge: str = JUDGE) -> None:
        self._path, self._lock = path, threading.Lock()
        self._known: dict[tuple[str, CandidateId], Evaluation] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, _, body = line.partition(" ")
                try:
                    found = loads(body)
                except ValueError:
                    continue  # the last line of a process that was killed
                if isinstance(found, Evaluation) and found.judge == judge:
                    self._known[key, found.candidate] = found
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from error

    def __len__(self) -> int:
        return len(self._known)

    def get(self, task: Task, candidate: CandidateId) -> Evaluation | None:
        """What is known of it."""
        return self._known.get((_key(task), candidate))

    def put(self, task: Task, evaluation: Evaluation) -> None:
        """Remember it."""
        with self._lock:
            self._known[_key(task), evaluation.candidate] = evaluation
            self._file.write(f"{_key(task)} {dumps(evaluation)}\n")
            self._file.flush()

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class Remembering:
    """An evaluator that asks another one only for what the store does not know."""

    def __init__(self, evaluator: Evaluator, store: Store) -> None:
        self._evaluator, self._store = evaluator, store

    async def evaluate(
        self, task: Task, candidate: Candidate, *, baseline: Candidate | None = None
    ) -> Evaluation:
        """What is known, else what is found now; beside a baseline nothing is."""
        if baseline is not None:
            return await self._evaluator.evaluate(task, candidate, baseline=baseline)
        if (known := self._store.get(task, candidate.id)) is not None:
            return known
        found = await self._evaluator.evaluate(task, candidate)
        self._store.put(task, found)
        return found


def _key(task: Task) -> str:
    return hashlib.sha256(dumps(task).encode()).hexdigest()[:16]
