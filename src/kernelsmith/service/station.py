"""Where judging happens in a fleet: one backend, kept open, and the same judge as everywhere."""

from collections import OrderedDict
from dataclasses import dataclass

from kernelsmith import __version__
from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import Json, decode, dumps, encode
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation
from kernelsmith.domain.task import Task
from kernelsmith.errors import BackendUnavailable, EvaluationLost, UsageError
from kernelsmith.evaluate.backend import load_backend
from kernelsmith.evaluate.evaluator import LocalEvaluator
from kernelsmith.evaluate.harness import JUDGE
from kernelsmith.evaluate.settings import Settings
from kernelsmith.service.scrub import Scrub
from kernelsmith.service.wire import USUAL

_EFFORTS = 2
"""Settings whose references stay open: a search has one for everybody, one for champions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """Who works there; pinned for as long as it does."""

    device: Device
    judge: str = JUDGE
    version: str = __version__
    references: int = 1
    """Tasks whose references it keeps open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be judged."""

    task: Task
    candidate: Candidate
    baseline: Candidate | None = None
    settings: Settings = USUAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of it: an evaluation, or why there is none."""

    evaluation: Evaluation | None = None
    refused: str = ""
    """The task cannot be judged: whoever asked has to change something."""
    lost: str = ""
    """The judge or the device failed: another worker may do better."""

    def __post_init__(self) -> None:
        said = (self.evaluation is not None, bool(self.refused), bool(self.lost))
        if sum(said) != 1:
            raise ValueError("a report holds an evaluation, or one reason why there is none")

    @property
    def line(self) -> str | None:
        """The evaluation as it is stored."""
        return None if self.evaluation is None else dumps(self.evaluation)


class _Shared(LocalEvaluator):
    """One of several on a backend that outlives it."""

    def release(self) -> None:
        """Close references, and leave the backend open."""
        for task in list(self._judges):
            self._forget(task)


class Station:
    """Judges one job at a time. Whatever it says has no path of this machine in it."""

    def __init__(self, backend: str) -> None:
        """Open a backend.

        Raises:
            BackendUnavailable: It cannot work here.
            UsageError: There is none of this name.
        """
        self._backend = load_backend(backend)
        if not getattr(self._backend, "runs", True):
            said = self._backend.device().name
            self._backend.close()
            raise BackendUnavailable(f"backend {backend!r}: {said}")
        self._by_settings: OrderedDict[Settings, _Shared] = OrderedDict()
        self._scrub = Scrub()

    def hello(self) -> Hello:
        """Say who works here; asks the device whether it answers."""
        return Hello(device=self._backend.device(), references=self._backend.references)

    def judge(self, job: Job) -> Report:
        """Judge, and turn what the judge raises on purpose into words.

        Anything else is a defect of ours, and ends the process that this runs in.
        """
        evaluator = self._evaluator(job.settings)
        try:
            found = evaluator.judge(job.task, job.candidate, baseline=job.baseline)
        except UsageError as error:
            return Report(refused=self._scrub.text(str(error)))
        except (EvaluationLost, BackendUnavailable) as error:
            return Report(lost=self._scrub.text(str(error)))
        return Report(evaluation=self._scrub.evaluation(found))

    def close(self) -> None:
        """End every process."""
        for each in self._by_settings.values():
            each.release()
        self._backend.close()

    def _evaluator(self, settings: Settings) -> _Shared:
        if settings not in self._by_settings:
            while len(self._by_settings) >= _EFFORTS:
                self._by_settings.popitem(last=False)[1].release()
            self._by_settings[settings] = _Shared(self._backend, settings)
        self._by_settings.move_to_end(settings)
        return self._by_settings[settings]


def to_json(value: Hello | Job | Report) -> Json:
    """For a worker in another process or on another machine."""
    return encode(value)


def job_from(said: Json) -> Job:
    """Undo ``to_json``."""
    found = decode(said, Job)
    assert isinstance(found, Job)
    return found


def report_from(said: Json) -> Report:
    """Undo ``to_json``.

    Raises:
        ValueError: It is none, or of another version.
    """
    found = decode(said, Report)
    assert isinstance(found, Report)
    return found


def hello_from(said: Json) -> Hello:
    """Undo ``to_json``.

    Raises:
        ValueError: It is none, or of another version.
    """
    found = decode(said, Hello)
    assert isinstance(found, Hello)
    return found
