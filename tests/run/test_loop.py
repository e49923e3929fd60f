"""The loop: in order, within its budget, the same every time, and hard to kill."""

import asyncio
import os
import signal
import time

import pytest
from run_parts import (
    TASK,
    Counting,
    Sources,
    Writer,
    a_config,
    a_run,
    gone,
    resumed,
    steps_of,
)

from kernelsmith.domain.evaluation import Evaluation, Roofline, Verdict
from kernelsmith.domain.trajectory import Outcome, Usage
from kernelsmith.errors import EvaluationLost, UsageError
from kernelsmith.run.canonical import canonical
from kernelsmith.run.config import Budget, Remeasure
from kernelsmith.run.journal import Journal, read
from kernelsmith.run.recorded import Stage
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.run.start import JOURNAL
from kernelsmith.run.stopping import Stop


def recorded_in(folder):
    return read(folder / JOURNAL)


def test_a_run_ends_with_a_better_candidate_and_everything_in_its_folder(tmp_path):
    result = gone(a_run(tmp_path / "run"))
    assert (result.stop, result.steps) == (Stop.STEPS, 40)
    assert result.confirmed
    assert result.best.evaluation.timing.speedup.value > 1.2
    assert sorted(each.name for each in (tmp_path / "run").iterdir()) == [
        "best.py", "config.toml", "journal.jsonl", "task.py",
    ]  # fmt: skip
    best = (tmp_path / "run" / "best.py").read_text()
    assert best.endswith(result.best.candidate.source)
    for said in ("'add'", str(result.best.evaluation.timing.speedup), "simulated/1", "confirmed"):
        assert said in best
    assert (tmp_path / "run" / "task.py").read_text() == TASK.source


def test_the_same_seed_gives_the_same_journal_apart_from_times(tmp_path):
    for name in "ab":
        gone(a_run(tmp_path / name, seed=3))
    gone(a_run(tmp_path / "c", seed=4))
    a, b, c = (canonical(recorded_in(tmp_path / name)) for name in "abc")
    assert a == b
    assert a != c


def test_eight_in_flight_with_random_delays_are_told_in_the_order_of_the_asks(tmp_path):
    searches = []
    for name, delay in (("a", 0.0), ("b", 0.01), ("c", 0.02)):
        writer = Writer(delay=delay)
        run = a_run(
            tmp_path / name, concurrency=8, proposer=writer, evaluator=Counting(delay=delay)
        )
        gone(run)
        assert writer.learned == list(range(40))
        searches.append(run.search.fingerprint())
    assert len(set(searches)) == 1
    assert len({canonical(recorded_in(tmp_path / name)) for name in "abc"}) == 1


def test_a_candidate_is_judged_once_however_often_it_is_proposed(tmp_path):
    evaluator = Counting(delay=0.01)
    proposer = Sources(*["x + y  # us: 50"] * 12)
    gone(
        a_run(
            tmp_path / "r",
            proposer=proposer,
            evaluator=evaluator,
            confirmer=SimulatedEvaluator(),
            budget=Budget(steps=12),
        )
    )
    assert len(evaluator.judged) == 1
    outcomes = [step.placement.outcome for step in steps_of(tmp_path / "r")]
    assert outcomes == [Outcome.NEW] + [Outcome.DUPLICATE] * 11


class Flaky(SimulatedEvaluator):
    """Loses whoever the test says, and breaks in ways that nobody foresaw."""

    def __init__(self, error, *, times=10**9):
        super().__init__()
        self.error, self.left, self.calls = error, times, 0

    async def evaluate(self, task, candidate, *, baseline=None):
        if "lose me" in candidate.source:
            self.calls += 1
            if self.left > 0:
                self.left -= 1
                raise self.error
        return await super().evaluate(task, candidate, baseline=baseline)


@pytest.mark.parametrize("error", [EvaluationLost("device gone"), OSError("no route")])
def test_a_lost_evaluation_is_asked_for_again_and_then_recorded_as_lost(tmp_path, error):
    evaluator = Flaky(error)
    proposer = Sources("x + y  # us: 50", "x + y  # lose me", "x + y  # us: 40")
    result = gone(
        a_run(tmp_path / "r", proposer=proposer, evaluator=evaluator, budget=Budget(steps=3))
    )
    assert evaluator.calls == 3
    lost = steps_of(tmp_path / "r")[1]
    assert lost.placement.outcome is Outcome.LOST
    assert str(error) in lost.lost
    assert result.steps == 3
    assert result.best.candidate.source == "x + y  # us: 40"


def test_an_evaluation_lost_once_is_judged_after_all(tmp_path):
    evaluator = Flaky(EvaluationLost("once"), times=1)
    proposer = Sources("x + y  # lose me us: 3")
    gone(a_run(tmp_path / "r", proposer=proposer, evaluator=evaluator, budget=Budget(steps=1)))
    assert steps_of(tmp_path / "r")[0].passed


class Failing(Writer):
    def __init__(self, error):
        super().__init__()
        self._error = error

    def proposal(self, brief):
        if brief.number == 2:
            raise self._error
        return super().proposal(brief)


def test_a_proposer_that_breaks_is_a_rejection_with_one_line(tmp_path):
    gone(a_run(tmp_path / "r", proposer=Failing(KeyError("no\nkey"))))
    step = steps_of(tmp_path / "r")[2]
    assert step.placement.outcome is Outcome.REJECTED
    assert step.proposal.rejection.startswith("the proposer failed: KeyError")
    assert "\n" not in step.proposal.rejection
    assert len(steps_of(tmp_path / "r")) == 40


def test_a_proposer_that_can_never_work_ends_the_run(tmp_path):
    with pytest.raises(UsageError, match="no such model"):
        gone(a_run(tmp_path / "r", proposer=Failing(UsageError("no such model"))))
    assert len(steps_of(tmp_path / "r")) == 2


@pytest.mark.parametrize("source", ["", "   \n", "x \ud800"])
def test_a_source_that_is_no_text_is_a_rejection(tmp_path, source):
    gone(a_run(tmp_path / "r", proposer=Sources(source), budget=Budget(steps=2)))
    assert steps_of(tmp_path / "r")[0].placement.outcome is Outcome.REJECTED


class Lucky(SimulatedEvaluator):
    """Believes ``# lucky`` to be ten times as fast; the confirmer does not."""

    async def evaluate(self, task, candidate, *, baseline=None):
        source = candidate.source
        if "lucky" in source:
            changed = type(candidate)(backend="null", source=source.replace("50", "5"))
            found = await super().evaluate(task, changed, baseline=baseline)
            return type(found)(
                task=found.task, candidate=candidate.id, device=found.device,
                verdict=found.verdict, timing=found.timing, judge=found.judge,
            )  # fmt: skip
        return await super().evaluate(task, candidate, baseline=baseline)


def test_a_winner_by_luck_is_not_believed(tmp_path):
    proposer = Sources("x + y  # us: 40", "x + y  # us: 50 lucky")
    result = gone(
        a_run(
            tmp_path / "r", proposer=proposer, evaluator=Lucky(),
            confirmer=SimulatedEvaluator(), budget=Budget(steps=2), concurrency=1,
        )
    )  # fmt: skip
    lucky = recorded_in(tmp_path / "r").judged[1, Stage.FIRST]
    assert lucky.evaluation.timing.speedup.value > 15
    step = steps_of(tmp_path / "r")[1]
    assert step.evaluation.timing.speedup.value == pytest.approx(2, rel=0.01)
    assert not step.placement.is_best
    assert result.best.candidate.source == "x + y  # us: 40"


class Forgetful(SimulatedEvaluator):
    """Passes everyone at first, and at the end only those that are not ``# fragile``."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    async def evaluate(self, task, candidate, *, baseline=None):
        if "fragile" in candidate.source and candidate.id in self.seen:
            return Evaluation(
                task=task.name, candidate=candidate.id, device=(self.judge(task, candidate)).device,
                verdict=Verdict.WRONG, message="not on these inputs",
            )  # fmt: skip
        self.seen.add(candidate.id)
        return await super().evaluate(task, candidate, baseline=baseline)


def test_a_best_that_fails_at_the_end_gives_way_to_the_next(tmp_path):
    proposer = Sources("x + y  # us: 40", "x + y  # us: 10 fragile")
    result = gone(
        a_run(
            tmp_path / "r", proposer=proposer, evaluator=SimulatedEvaluator(),
            confirmer=Forgetful(), budget=Budget(steps=2), concurrency=1,
        )
    )  # fmt: skip
    assert result.confirmed
    assert result.best.candidate.source == "x + y  # us: 40"
    assert "us: 40" in (tmp_path / "r" / "best.py").read_text()


def test_the_gain_over_the_parent_is_measured_beside_it(tmp_path):
    proposer = Sources("x + y  # us: 40", "x + y  # us: 20", "x + y  # us: 90")
    evaluator = Counting()
    gone(
        a_run(
            tmp_path / "r", proposer=proposer, evaluator=evaluator, budget=Budget(steps=3),
            concurrency=1,
        )
    )  # fmt: skip
    first, better, worse = steps_of(tmp_path / "r")
    assert first.gain is None
    assert better.gain.value == pytest.approx(2, rel=0.01)
    assert worse.gain is None
    assert (better.candidate.id, first.candidate.id) in evaluator.judged


CHEAP = Usage(input_tokens=80, output_tokens=20, usd=0.01)


@pytest.mark.parametrize(
    ("budget", "stop", "steps"),
    [
        (Budget(steps=7), Stop.STEPS, (7, 7)),
        (Budget(steps=0), Stop.STEPS, (0, 0)),
        (Budget(steps=99, tokens=1000), Stop.TOKENS, (8, 11)),
        (Budget(steps=99, usd=0.1), Stop.USD, (8, 11)),
        (Budget(steps=99, target_speedup=1.2), Stop.TARGET, (2, 60)),
        (Budget(steps=500, stale_steps=6), Stop.STALE, (6, 300)),
    ],
)
def test_a_run_ends_by_its_budget(tmp_path, budget, stop, steps):
    result = gone(a_run(tmp_path / "r", budget=budget, proposer=Writer(usage=CHEAP)))
    assert result.stop is stop
    assert steps[0] <= result.steps <= steps[1]
    if stop is Stop.TARGET:
        assert result.best.evaluation.timing.speedup.low >= 1.2


def test_a_run_ends_when_its_time_is_over(tmp_path):
    writer = Writer(delay=0.05)
    result = gone(a_run(tmp_path / "r", budget=Budget(steps=10**6, seconds=0.3), proposer=writer))
    assert result.stop is Stop.SECONDS
    assert 0 < result.steps < 200
    assert result.elapsed_s < 5


class AtTheRoof(SimulatedEvaluator):
    async def evaluate(self, task, candidate, *, baseline=None):
        found = await super().evaluate(task, candidate, baseline=baseline)
        if found.timing is None:
            return found
        share = min(1.0, found.timing.speedup.value / 3)
        roof = Roofline(workload="default", bytes=1, floor_us=1.0, bandwidth_share=share)
        return type(found)(
            task=found.task, candidate=found.candidate, device=found.device,
            verdict=found.verdict, timing=found.timing, rooflines=(roof,),
        )  # fmt: skip


def test_a_run_ends_at_the_roof(tmp_path):
    budget = Budget(steps=500, roofline_share=0.9)
    result = gone(a_run(tmp_path / "r", budget=budget, evaluator=AtTheRoof()))
    assert result.stop is Stop.ROOFLINE
    assert result.best.evaluation.timing.speedup.value >= 2.7


def test_a_watcher_sees_every_step_once_it_lasts(tmp_path):
    seen = []

    def watch(progress):
        assert len(steps_of(tmp_path / "r")) >= progress.told
        seen.append(progress)

    result = gone(a_run(tmp_path / "r", watch=watch, proposer=Writer(usage=CHEAP)))
    assert [each.told for each in seen] == list(range(1, 41))
    last = seen[-1]
    assert last.curve[-1][1] == last.best
    assert sum(count for _, count in last.verdicts) == 40
    assert last.tokens == 4000 == result.tokens
    assert last.usd == pytest.approx(0.4)
    assert last.eta_s == 0
    assert last.cells >= 1
    assert 0 < last.coverage < 1


def test_many_steps_share_one_flush_to_the_disk(tmp_path, monkeypatch):
    flushed = []
    real = os.fdatasync
    monkeypatch.setattr(os, "fdatasync", lambda fd: (flushed.append(fd), real(fd)))
    gone(a_run(tmp_path / "r", budget=Budget(steps=200)))
    assert len(flushed) < 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_and_resuming_makes_it_whole(tmp_path, number):
    whole = a_run(tmp_path / "whole")
    gone(whole)
    evaluator = Counting(delay=0.01)
    run = a_run(tmp_path / "r", proposer=Writer(delay=0.01), evaluator=evaluator)

    async def interrupted():
        asyncio.get_running_loop().call_later(0.15, os.kill, os.getpid(), number)
        return await run.go()

    result = asyncio.run(interrupted())
    assert result.stopped
    assert result.stop is Stop.INTERRUPTED
    assert result.resume == f"kernelsmith resume {tmp_path / 'r'}"
    assert 0 < result.steps < 40
    left = recorded_in(tmp_path / "r")
    assert len(left.steps) == result.steps
    again = Counting()
    second = resumed(tmp_path / "r", evaluator=again)
    assert not gone(second).stopped
    assert second.search.fingerprint() == whole.search.fingerprint()
    first_stage = [id for id, baseline in again.judged if baseline is None]
    done = {judged.candidate.id for (_, s), judged in left.judged.items() if s is Stage.FIRST}
    confirmed = {
        judged.candidate.id
        for (_, stage), judged in recorded_in(tmp_path / "r").judged.items()
        if stage in (Stage.CONFIRM, Stage.FINAL)
    }
    assert not done & (set(first_stage) - confirmed)


def test_a_second_signal_does_not_wait_for_work_in_flight(tmp_path):
    run = a_run(tmp_path / "r", evaluator=Counting(delay=10**4), grace_s=10**4)

    async def interrupted():
        loop = asyncio.get_running_loop()
        loop.call_later(0.05, os.kill, os.getpid(), signal.SIGINT)
        loop.call_later(0.10, os.kill, os.getpid(), signal.SIGINT)
        return await run.go()

    result = asyncio.run(asyncio.wait_for(interrupted(), 10))
    assert result.stopped
    assert len(recorded_in(tmp_path / "r").proposals) >= 3


def test_who_counts_what_is_being_judged_hears_of_it_when_a_run_is_taken_up(tmp_path):
    class Recalls(Writer):
        def __init__(self):
            super().__init__()
            self.recalled = []

        def recall(self, brief, proposal):
            self.recalled.append((brief.number, proposal))

    run = a_run(tmp_path / "r", evaluator=Counting(delay=10**4), grace_s=0.0, concurrency=3)

    async def interrupted():
        asyncio.get_running_loop().call_later(0.1, run.stop)
        return await run.go()

    assert asyncio.run(interrupted()).stopped
    left = recorded_in(tmp_path / "r").proposals
    writer = Recalls()
    gone(resumed(tmp_path / "r", proposer=writer))
    assert writer.recalled == sorted(left.items())
    assert writer.asked == [number for number in range(40) if number not in left]


class Held(SimulatedEvaluator):
    """Takes half a second over the first candidate, and never comes back from the next."""

    begun = 0

    async def evaluate(self, task, candidate, *, baseline=None):
        self.begun += 1
        await asyncio.sleep(0.5 if self.begun == 1 else 3600)
        return await super().evaluate(task, candidate, baseline=baseline)


def test_time_that_a_killed_session_spent_on_a_step_is_the_steps(tmp_path):
    folder = tmp_path / "r"
    child = os.fork()
    if child == 0:
        signal.alarm(90)  # it must not outlive a test that fails
        try:
            gone(a_run(folder, evaluator=Held(), budget=Budget(steps=1), concurrency=1))
        finally:
            os._exit(0)
    until = time.monotonic() + 60
    while not (folder / JOURNAL).exists() or not recorded_in(folder).judged:
        assert time.monotonic() < until
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = recorded_in(folder)
    assert not left.steps
    assert left.elapsed_s >= 0.5
    gone(resumed(folder))
    (step,) = steps_of(folder)
    assert step.seconds >= 0.5
    assert recorded_in(folder).elapsed_s >= step.seconds


def test_resuming_a_finished_run_judges_nothing_and_finds_the_same(tmp_path):
    first = gone(a_run(tmp_path / "r"))
    evaluator, writer = Counting(), Writer()
    second = gone(resumed(tmp_path / "r", evaluator=evaluator, proposer=writer))
    assert evaluator.judged == []
    assert writer.asked == []
    assert writer.learned == list(range(40))
    assert (second.best, second.steps, second.stop) == (first.best, 40, Stop.STEPS)


def test_a_finished_run_goes_on_with_a_larger_budget_and_replays_afterwards(tmp_path):
    gone(a_run(tmp_path / "r"))
    run = resumed(tmp_path / "r", budget=Budget(steps=60))
    assert gone(run).steps == 60
    again = resumed(tmp_path / "r")
    assert again.config.budget.steps == 60
    assert gone(again).steps == 60
    assert again.search.fingerprint() == run.search.fingerprint()


def test_a_journal_of_another_search_is_not_gone_on_with(tmp_path):
    gone(a_run(tmp_path / "r", seed=1))
    path = tmp_path / "r" / JOURNAL
    text = path.read_text().replace('"seed": 1,', '"seed": 2,', 1)
    lines = text.splitlines(keepends=True)
    lines[0] = lines[0].replace('"seed": 1', '"seed": 2')
    path.write_text("".join(lines))
    with pytest.raises(UsageError, match=r"step \d+ of .* does not replay"):
        gone(resumed(tmp_path / "r"))


def test_two_runs_cannot_share_a_folder(tmp_path):
    gone(a_run(tmp_path / "r", budget=Budget(steps=1)))
    with pytest.raises(UsageError, match="kernelsmith resume"):
        a_run(tmp_path / "r")
    with Journal.open(tmp_path / "r" / JOURNAL), pytest.raises(UsageError, match="another run"):
        resumed(tmp_path / "r")


def test_without_remeasuring_every_candidate_is_judged_once(tmp_path):
    evaluator = Counting()
    rules = Remeasure(champions=False, gain=False, final=0)
    result = gone(a_run(tmp_path / "r", evaluator=evaluator, remeasure=rules))
    assert len(evaluator.judged) == len(set(evaluator.judged))
    assert not result.confirmed
    assert a_config().remeasure.champions


def test_every_answer_of_an_evaluator_is_in_the_journal(tmp_path):
    evaluator = Counting()
    gone(a_run(tmp_path / "r", evaluator=evaluator, concurrency=1))
    recorded = recorded_in(tmp_path / "r")
    assert len(recorded.judged) == len(evaluator.judged)
    assert set(recorded.proposals) == set(range(40))


def test_a_final_that_failed_is_not_taken_for_the_result_when_resumed(tmp_path):
    proposer = Sources("x + y  # us: 40", "x + y  # us: 10 fragile")
    gone(
        a_run(
            tmp_path / "r",
            proposer=proposer,
            confirmer=Forgetful(),
            budget=Budget(steps=2),
            concurrency=1,
            remeasure=Remeasure(final=1),
        )
    )
    recorded = recorded_in(tmp_path / "r")
    assert recorded.judged[2, Stage.FINAL].evaluation.verdict is Verdict.WRONG
    assert recorded.final is None
    again = gone(resumed(tmp_path / "r", proposer=proposer))
    assert not again.confirmed


def test_a_full_disk_ends_the_run_in_one_line_and_what_was_synced_is_safe(tmp_path, monkeypatch):
    left, real = [1], os.fdatasync  # of a slow disk there are few: one at the start, one at the end

    def fdatasync(fd):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(28, "No space left on device")
        real(fd)

    whole = a_run(tmp_path / "whole")
    gone(whole)
    run = a_run(tmp_path / "r", proposer=Writer(delay=0.02))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fdatasync)
        with pytest.raises(UsageError, match="cannot write the journal: No space left on device"):
            gone(run)
    again = resumed(tmp_path / "r")
    gone(again)
    assert again.search.fingerprint() == whole.search.fingerprint()
