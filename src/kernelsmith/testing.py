"""Contracts that ship with the package: inherit one, and a backend or evaluator of yours is tested.

class TestMyBackend(BackendContract):
    task = Task(name="add", source="...")
    good, broken, wrong = "...", "...", "..."

    @pytest.fixture
    def backend(self): return MyBackend()
"""

import asyncio

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.evaluation import LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.evaluate.harness import judge
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule

QUICK = Settings(
    stop=StopRule(target_width=1.0, min_pairs=1, max_pairs=1, min_samples=3),
    sample_us=1000.0, max_launches=16, warmups=1, robust=False,
)  # fmt: skip
"""For tests: every stage runs, the speed-up is not worth quoting."""


class BackendContract:
    """What the judge relies on, whatever the hardware."""

    task: Task
    good: str
    """Source that is right."""
    broken: str
    """Source that does not build."""
    wrong: str
    """Source that builds, runs and is wrong."""

    def judged(self, backend: Backend, source: str) -> Verdict:
        """Judge ``source`` once."""
        candidate = Candidate(backend=backend.name, source=source)
        return judge(self.task, candidate, backend=backend, settings=QUICK).verdict

    def test_it_names_its_device(self, backend: Backend) -> None:
        device = backend.device()
        assert device.kind
        assert device.name

    def test_a_right_candidate_passes_with_a_timing_or_says_why_not(self, backend: Backend) -> None:
        candidate = Candidate(backend=backend.name, source=self.good)
        found = judge(self.task, candidate, backend=backend, settings=QUICK)
        assert found.verdict is Verdict.PASSED, found.message
        assert found.has(LabelName.UNTIMED) is not backend.timed
        if backend.timed:
            assert found.timing is not None
            assert found.timing.speedup.low <= found.timing.speedup.high
        assert loads(dumps(found)) == found

    def test_source_that_does_not_build_says_so(self, backend: Backend) -> None:
        candidate = Candidate(backend=backend.name, source=self.broken)
        found = judge(self.task, candidate, backend=backend, settings=QUICK)
        assert found.verdict is Verdict.BUILD_FAILED
        assert found.message

    def test_a_wrong_candidate_is_wrong(self, backend: Backend) -> None:
        assert self.judged(backend, self.wrong) is Verdict.WRONG

    def test_a_failure_leaves_no_trace_in_the_next_evaluation(self, backend: Backend) -> None:
        self.judged(backend, self.wrong)
        self.judged(backend, self.broken)
        assert self.judged(backend, self.good) is Verdict.PASSED


class EvaluatorContract:
    """What a search relies on, wherever the judging happens."""

    task: Task
    good: Candidate
    wrong: Candidate

    def test_it_returns_a_verdict_for_the_candidate_asked_about(self, evaluator: Evaluator) -> None:
        found = asyncio.run(evaluator.evaluate(self.task, self.good))
        assert found.candidate == self.good.id
        assert found.task == self.task.name
        assert found.verdict is Verdict.PASSED, found.message

    def test_a_failure_is_returned_not_raised(self, evaluator: Evaluator) -> None:
        found = asyncio.run(evaluator.evaluate(self.task, self.wrong))
        assert found.verdict is Verdict.WRONG
        assert found.message

    def test_a_candidate_is_measured_beside_another_on_request(self, evaluator: Evaluator) -> None:
        found = asyncio.run(evaluator.evaluate(self.task, self.good, baseline=self.good))
        assert found.timing is not None
        assert self.good.id in found.timing.baseline
