"""Where candidates' Triton kernels are compiled ahead: processes that see no device at all."""

import logging
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.task import Task, Weights, Workload
from kernelsmith.errors import EvaluationLost
from kernelsmith.evaluate.sandbox.limits import Limits
from kernelsmith.evaluate.sandbox.order import Profile
from kernelsmith.evaluate.sandbox.process import Zygote

_WORKER = "kernelsmith.evaluate.worker.cuda"
_PRELOAD = ("torch", "triton", f"{_WORKER}.warm", f"{_WORKER}.tensorless", f"{_WORKER}.rehearsal")
_HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}
_SHARE = 0.8
"""Of the time: what no launch begins after, so that what was compiled can still be handed over."""
logger = logging.getLogger(__name__)


class Rehearsals:
    """One process to fork them from, apart from all that see the device. For any thread."""

    def __init__(
        self, environment: Callable[[], Mapping[str, str]], folders: Callable[[], list[Path]],
        limits: Limits,
    ) -> None:  # fmt: skip
        self._environment, self._folders, self._limits = environment, folders, limits
        self._zygote: Zygote | None = None
        self._fails = False
        """Whether it was seen that it cannot start: trying takes seconds, and is done once."""
        self._starting = threading.Lock()

    def compiled(
        self, task: Task, candidate: Candidate, facts: Mapping[str, object], *, timeout_s: float
    ) -> dict[str, object]:
        """Files that the candidate's launches leave in Triton's cache; none where it goes wrong.

        Args:
            task: Whose inputs it is called with.
            candidate: What to compile.
            facts: What is known of the device: name, major, minor, multi_processor_count. A
                candidate that asks for more is followed no further.
            timeout_s: How long it may take.

        Raises:
            SmithError: The process could not be made, or died, or took too long.
        """
        zygote = self._opened()
        if zygote is None:
            return {}
        with zygote.spawn(
            entry=f"{_WORKER}.rehearsal:serve", profile=Profile.BUILD, limits=self._limits,
            readable=self._folders(),
        ) as child:  # fmt: skip
            known = {"facts": dict(facts), "seconds": _SHARE * timeout_s}
            said = child.call(_asked(task, candidate) | known, timeout_s=timeout_s)
        if ended := said.get("said"):
            logger.debug("the rehearsal of candidate %s ended early: %s", candidate.id, ended)
        files = said.get("cache")
        return files if isinstance(files, dict) else {}

    def close(self) -> None:
        """End the process and all that come from it."""
        with self._starting:
            if self._zygote is not None:
                self._zygote.close()
                self._zygote = None

    def _opened(self) -> Zygote | None:
        with self._starting:
            if self._zygote is not None and not self._zygote.alive:
                self._zygote.close()
                self._zygote = None
            if self._zygote is None and not self._fails:
                try:
                    environment = {**self._environment(), **_HIDDEN}
                    self._zygote = Zygote(preload=_PRELOAD, environment=environment)
                except EvaluationLost:
                    self._fails = True
                    raise
            return self._zygote


def _asked(task: Task, candidate: Candidate) -> dict[str, object]:
    """All but what depends on the device; workloads that are timed come first."""
    return {
        "do": "rehearse", "source": candidate.source, "entry": task.candidate_entry,
        "function": task.is_function, "task": task.source, "training": task.training,
        "prepare": task.weights is Weights.STATIC,
        "workloads": [_described(each) for each in sorted(task.workloads, key=_is_held_out)],
    }  # fmt: skip


def _is_held_out(workload: Workload) -> bool:
    return workload.held_out


def _described(workload: Workload) -> dict[str, object]:
    return {
        "arguments": dict(workload.arguments), "init": dict(workload.init), "dtype": workload.dtype,
    }  # fmt: skip
