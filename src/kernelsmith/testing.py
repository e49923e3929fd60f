"""Contracts that ship with the package: inherit one, and a backend or evaluator of yours is tested.

class TestMyBackend(BackendContract):
    task = Task(name="add", source="...")
    good, broken, wrong = "...", "...", "..."

    @pytest.fixture
    def backend(self): return MyBackend()
"""

import asyncio
from dataclasses import replace

from kernelsmith.domain.candidate import Candidate
from kernelsmith.domain.codec import dumps, loads
from kernelsmith.domain.device import Device
from kernelsmith.domain.evaluation import Evaluation, LabelName, Verdict
from kernelsmith.domain.task import Task
from kernelsmith.domain.timing import Pair, Ratio, Timing, WorkloadTiming
from kernelsmith.domain.trajectory import Brief, Outcome, Placement, Proposal, Step
from kernelsmith.evaluate.backend import Backend
from kernelsmith.evaluate.evaluator import Evaluator
from kernelsmith.evaluate.harness import judge
from kernelsmith.evaluate.settings import Settings
from kernelsmith.evaluate.timing.sampling import StopRule
from kernelsmith.propose.proposer import Proposer
from kernelsmith.search.archive import Archive

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


SIMULATED = Device(kind="null", name="made up for a test")


def a_pass(source: str, speedup: float, *, spread: float = 0.01) -> tuple[Candidate, Evaluation]:
    """A candidate that passed with this speed-up, and an interval of ``spread`` on either side."""
    candidate = Candidate(backend="null", source=source)
    ratio = Ratio(value=speedup, low=speedup / (1 + spread), high=speedup * (1 + spread))
    pair = Pair(baseline_us=(100.0 * speedup,), candidate_us=(100.0,))
    timed = WorkloadTiming(workload="default", pairs=(pair,), speedup=ratio, launches=1)
    return candidate, Evaluation(
        task="test", candidate=candidate.id, device=SIMULATED, verdict=Verdict.PASSED,
        timing=Timing(workloads=(timed,)),
    )  # fmt: skip


def a_failure(
    source: str, verdict: Verdict = Verdict.WRONG, message: str = "off by one at (0, 1)"
) -> tuple[Candidate, Evaluation]:
    """A candidate that did not pass."""
    candidate = Candidate(backend="null", source=source)
    return candidate, Evaluation(
        task="test", candidate=candidate.id, device=SIMULATED, verdict=verdict, message=message
    )


class ArchiveContract:
    """What a search relies on, however an archive keeps its elites. ``archive`` is empty."""

    def test_the_first_of_a_cell_opens_it(self, archive: Archive) -> None:
        placed = archive.add(*a_pass("x + y", 1.5))
        assert placed.outcome is Outcome.NEW
        assert placed.gained == placed.score
        assert placed.cell is not None
        assert len(archive) == 1
        assert archive.coverage > 0

    def test_a_better_one_takes_the_cell(self, archive: Archive) -> None:
        before = archive.add(*a_pass("x + y", 1.55))
        placed = archive.add(*a_pass("y + x", 1.8))
        assert placed.cell == before.cell
        assert placed.outcome is Outcome.IMPROVED
        assert placed.gained > 0
        assert [elite.candidate.source for elite in archive] == ["y + x"]

    def test_a_worse_one_is_kept_out(self, archive: Archive) -> None:
        archive.add(*a_pass("x + y", 1.8))
        placed = archive.add(*a_pass("y + x", 1.55))
        assert (placed.outcome, placed.gained) == (Outcome.KEPT_OUT, 0.0)
        assert [elite.candidate.source for elite in archive] == ["x + y"]

    def test_one_that_is_better_within_noise_only_is_kept_out(self, archive: Archive) -> None:
        archive.add(*a_pass("x + y", 1.70, spread=0.03))
        placed = archive.add(*a_pass("y + x", 1.72, spread=0.03))
        assert placed.outcome is Outcome.KEPT_OUT

    def test_what_failed_is_never_an_elite(self, archive: Archive) -> None:
        for verdict in Verdict:
            if verdict is not Verdict.PASSED:
                placed = archive.add(*a_failure(f"x  # {verdict}", verdict))
                assert (placed.outcome, placed.cell) == (Outcome.FAILED, None)
        assert (len(archive), archive.coverage, archive.qd_score) == (0, 0, 0)

    def test_it_knows_its_best_and_never_loses_ground(self, archive: Archive) -> None:
        before = 0, 0.0
        best = 0.0
        for index, speedup in enumerate((1.1, 3.2, 0.4, 3.3, 8.0, 0.9, 8.1, 2.2)):
            candidate, evaluation = a_pass("+".join("x" * (1 + 9 * index)), speedup)
            archive.add(candidate, evaluation)
            now = len(archive), archive.qd_score
            assert now >= before
            before, best = now, max(best, speedup)
            found = archive.top[0].evaluation.timing
            assert found is not None
            assert found.speedup.value >= best / 1.05


class ProposerContract:
    """What a run relies on, whoever writes. The fixture ``proposer`` gives a fresh one."""

    brief: Brief
    """One that the proposer can answer; it is asked again under other numbers and seeds."""
    asks = 4

    def proposed(self, proposer: Proposer) -> list[Proposal]:
        """Ask several times at once, learn in order, and close."""
        briefs = [
            replace(self.brief, number=number, seed=self.brief.seed + number)
            for number in range(self.asks)
        ]

        async def go() -> list[Proposal]:
            found = await asyncio.gather(*(proposer.propose(each) for each in briefs))
            for brief, proposal in zip(briefs, found, strict=True):
                refused = Placement(outcome=Outcome.REJECTED, island=brief.island)
                proposer.learn(Step(brief=brief, proposal=proposal, placement=refused))
            await proposer.close()
            return found

        return asyncio.run(go())

    def test_it_has_a_name(self, proposer: Proposer) -> None:
        assert proposer.name

    def test_it_answers_many_briefs_at_a_time(self, proposer: Proposer) -> None:
        found = self.proposed(proposer)
        assert len(found) == self.asks
        for each in found:
            assert (each.source is None) is bool(each.rejection)
            assert each.source is None or each.source.strip()

    def test_it_says_who_wrote_and_what_it_cost(self, proposer: Proposer) -> None:
        for each in self.proposed(proposer):
            assert each.proposer
            assert each.usage.seconds >= 0
            assert each.usage.attempts >= 0
            assert (each.usage.usd or 0) >= 0

    def test_a_rejection_is_one_line_to_read(self, proposer: Proposer) -> None:
        for each in self.proposed(proposer):
            assert len(each.rejection.splitlines()) <= 1

    def test_what_it_wrote_can_be_recorded(self, proposer: Proposer) -> None:
        for each in self.proposed(proposer):
            assert loads(dumps(each)) == each

    def test_closing_twice_does_no_harm(self, proposer: Proposer) -> None:
        async def go() -> None:
            await proposer.close()
            await proposer.close()

        asyncio.run(go())
