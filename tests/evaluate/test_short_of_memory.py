"""Who runs out of memory beside others is judged again without them."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.evaluate.backends.null import NullBackend, NullOracle
from kernelsmith.evaluate.failure import ProgramFailed, lacks_memory
from kernelsmith.evaluate.harness import judge
from kernelsmith.testing import QUICK

TASK = Task(name="add", source="x + y  # us: 20", entry="expression")


class Crowded(NullBackend):
    """A device on which others may be, and on which programs fail so many times."""

    def __init__(self, message: str, *, beside: bool, times: int) -> None:
        super().__init__()
        self.message, self.beside, self.times, self.alone = message, beside, times, 0

    @contextmanager
    def staying(
        self, oracle: object, *, alone: bool = False, batch_bytes: int | None = None
    ) -> Iterator[bool]:
        self.alone += alone
        yield self.beside and not alone

    def lane(self, name, *, timeout_s, oracle=None):
        if self.times:
            self.times -= 1
            raise ProgramFailed(Verdict.CRASHED, self.message)
        return super().lane(name, timeout_s=timeout_s, oracle=oracle)


@pytest.mark.parametrize(
    ("message", "beside", "times", "verdict"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory", True, 1, Verdict.PASSED),
        ("torch.OutOfMemoryError: CUDA out of memory", True, 2, Verdict.CRASHED),
        ("torch.OutOfMemoryError: CUDA out of memory", False, 1, Verdict.CRASHED),
        ("IndexError: no such thing", True, 1, Verdict.CRASHED),
    ],
)
def test_a_full_device_counts_against_a_candidate_only_where_it_was_alone(
    message, beside, times, verdict
):
    backend = Crowded(message, beside=beside, times=times)
    candidate = Candidate(backend="null", source="y + x  # us: 10")
    found = judge(TASK, candidate, backend=backend, settings=QUICK)
    assert found.verdict is verdict
    again = beside and "memory" in message
    assert backend.alone == (1 if again else 0)
    assert dict(found.device_log).get("judged again") == (message if again else None)


def test_who_can_have_more_rooms_is_judged_in_those_before_it_is_alone(monkeypatch):
    asked = iter((True, False))
    monkeypatch.setattr(NullOracle, "widen", lambda _: next(asked), raising=False)
    backend = Crowded("CUDA out of memory", beside=True, times=2)
    found = judge(
        TASK, Candidate(backend="null", source="y + x  # us: 10"), backend=backend, settings=QUICK
    )
    assert found.verdict is Verdict.PASSED
    assert backend.alone == 1
    assert next(asked, None) is None


@pytest.mark.parametrize(("times", "narrowed"), [(0, 0), (2, 1), (3, 1)])
def test_a_candidate_that_was_short_of_memory_by_itself_leaves_no_trace(
    monkeypatch, times, narrowed
):
    asked, seen = iter((True, False)), []
    monkeypatch.setattr(NullOracle, "widen", lambda _: next(asked), raising=False)
    monkeypatch.setattr(NullOracle, "narrow", lambda _: seen.append(1), raising=False)
    backend = Crowded("CUDA out of memory", beside=True, times=times)
    candidate = Candidate(backend="null", source="y + x  # us: 10")
    judge(TASK, candidate, backend=backend, settings=QUICK)
    assert len(seen) == narrowed


class NeverAlone(Crowded):
    """A device that others never leave."""

    @contextmanager
    def staying(
        self, oracle: object, *, alone: bool = False, batch_bytes: int | None = None
    ) -> Iterator[bool]:
        if alone:
            raise UsageError("out of memory beside others: this task needs the device alone")
        yield True


def test_where_nobody_can_be_alone_a_candidate_that_found_no_memory_has_crashed():
    backend = NeverAlone("CUDA out of memory", beside=True, times=1)
    candidate = Candidate(backend="null", source="y + x  # us: 10")
    found = judge(TASK, candidate, backend=backend, settings=QUICK)
    assert (found.verdict, found.message) == (Verdict.CRASHED, "CUDA out of memory")
    again = judge(TASK, candidate, backend=backend, settings=QUICK)
    assert again.verdict is Verdict.PASSED


@pytest.mark.parametrize(
    "said",
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        "RuntimeError: Triton Error [CUDA]: out of memory",
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate`",
        "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
        "RuntimeError: GET was unable to find an engine to execute this computation",
        "DriverError: cuMemAlloc_v2: CUDA error 2",
        "its memory cannot be mapped: cuIpcOpenMemHandle_v2: CUDA error 2",
    ],
)
def test_a_full_device_is_known_by_whatever_words_a_library_has_for_it(said):
    assert lacks_memory(said)


@pytest.mark.parametrize(
    "said",
    [
        "cuIpcOpenMemHandle_v2: CUDA error 201",
        "RuntimeError: CUDA error: an illegal memory access was encountered",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory",
        "CUBLAS_STATUS_EXECUTION_FAILED",
    ],
)
def test_other_failures_are_not_the_memory_s(said):
    assert not lacks_memory(said)
