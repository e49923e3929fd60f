"""At the end those that measured alike are measured well, and the fastest is the result."""

from dataclasses import replace

import pytest
from run_parts import Counting, Sources, a_run, gone, resumed, steps_of

from kernelsmith.domain.evaluation import Evaluation, Verdict
from kernelsmith.domain.timing import Ratio, Timing
from kernelsmith.run.config import Budget, Remeasure
from kernelsmith.run.journal import read
from kernelsmith.run.recorded import Stage
from kernelsmith.run.simulated import SimulatedEvaluator
from kernelsmith.run.start import JOURNAL

ALIKE = ("x + y  # us: 41", "x + y  # us: 39", "x + y  # us: 40", "x + y  # us: 90")
ONCE = Remeasure(champions=False, gain=False, final=2, rivals=2)


class Coarse(SimulatedEvaluator):
    """A clock that cannot tell 39 from 41, and says so."""

    async def evaluate(self, task, candidate, *, baseline=None):
        found = await super().evaluate(task, candidate, baseline=baseline)
        assert found.timing is not None
        value = 2.5 if found.timing.speedup.value > 2 else 1.1
        wide = Ratio(value=value, low=value * 0.95, high=value * 1.05)
        workloads = tuple(replace(each, speedup=wide) for each in found.timing.workloads)
        return replace(found, timing=Timing(workloads=workloads))


class Fine(Counting):
    """Exact, and refuses whom it is told to refuse."""

    def __init__(self, *wrong):
        super().__init__()
        self.wrong = wrong

    async def evaluate(self, task, candidate, *, baseline=None):
        found = await super().evaluate(task, candidate, baseline=baseline)
        if candidate.source in self.wrong:
            return Evaluation(task=task.name, candidate=candidate.id, device=found.device,
                              verdict=Verdict.WRONG, message="not on these")  # fmt: skip
        return found


def a_runoff(folder, confirmer, rules=ONCE, sources=ALIKE):
    return gone(
        a_run(folder, proposer=Sources(*sources), evaluator=Coarse(), confirmer=confirmer,
              budget=Budget(steps=len(sources)), concurrency=1, remeasure=rules)
    )  # fmt: skip


def test_the_fastest_of_those_that_measured_alike_is_the_result(tmp_path):
    confirmer = Fine()
    result = a_runoff(tmp_path / "r", confirmer)
    first, *_ = steps_of(tmp_path / "r")
    assert first.placement.is_best, "the others did not beat it beyond the noise"
    assert result.best.candidate.source == "x + y  # us: 39"
    assert result.confirmed
    assert "# us: 39" in (tmp_path / "r" / "best.py").read_text()
    assert len(confirmer.judged) == 3, "the slow one is no rival"


def test_the_journal_says_who_was_measured_and_who_won(tmp_path):
    a_runoff(tmp_path / "r", Fine())
    recorded = read(tmp_path / "r" / JOURNAL)
    assert recorded.final.candidate.source == "x + y  # us: 39"
    assert (4, Stage.RUNOFF) in recorded.judged
    again = Fine()
    result = gone(resumed(tmp_path / "r", proposer=Sources(), confirmer=again))
    assert result.best.candidate.source == "x + y  # us: 39"
    assert again.judged == []


def test_a_rival_that_fails_does_not_win(tmp_path):
    result = a_runoff(tmp_path / "r", Fine("x + y  # us: 39"))
    assert result.best.candidate.source == "x + y  # us: 40"
    result = a_runoff(tmp_path / "all", Fine(*ALIKE))
    assert not result.confirmed
    last = read(tmp_path / "all" / JOURNAL).judged[4, Stage.FINAL]
    assert last.evaluation.verdict is Verdict.WRONG


@pytest.mark.parametrize("rivals", [0, 1])
def test_no_more_rivals_are_measured_than_asked_for(rivals, tmp_path):
    confirmer = Fine()
    result = a_runoff(tmp_path / "r", confirmer, replace(ONCE, rivals=rivals))
    assert len(confirmer.judged) == 1 + rivals
    assert result.best.candidate.source == ALIKE[rivals]
