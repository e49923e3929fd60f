"""From steps to numbers: what was best when, whose doing it was, and what it cost."""

from dataclasses import replace

import pytest
from run_factories import a_line, a_step, an_evaluation, journalled, recorded

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.timing import Ratio
from kernelsmith.domain.trajectory import Outcome, Proposal, Usage
from kernelsmith.report.numbers import FATES, first_line, numbers_of
from kernelsmith.run.recorded import Judged, Stage


def counted(steps, **changes):
    return numbers_of(recorded(steps, **changes))


def test_a_run_without_steps_has_no_winner_and_nothing_to_count():
    found = counted([])
    assert found.winner is None
    assert (found.points, found.lineage, found.cells, found.tally) == ((), (), (), ())
    assert found.usd is None
    assert found.tokens is None


def test_the_curve_holds_each_best_with_its_interval():
    steps = [
        a_step(0, speedup=1.5, is_best=True),
        a_step(1, speedup=1.2),
        a_step(2, verdict=Verdict.WRONG),
        a_step(3, speedup=2.0, is_best=True),
    ]
    bests = counted(steps).bests
    assert [point.step for point in bests] == [0, 3]
    assert bests[1].speedup == Ratio(value=2.0, low=1.96, high=2.04)


def test_numbers_from_a_real_journal_are_those_of_its_steps(tmp_path):
    steps = [*a_line(1.1, 1.4, 1.9), a_step(3, verdict=Verdict.WRONG), a_step(4)]
    final = confirmed(steps[1])
    found = numbers_of(journalled(tmp_path / "journal.jsonl", steps, final=final))
    assert found == counted(steps, final=final)
    assert [step.brief.number for step in found.lineage] == [0, 1]


def confirmed(step, **changes):
    evaluation = an_evaluation(step.candidate, **changes)
    return Judged(stage=Stage.FINAL, candidate=step.candidate, evaluation=evaluation)


def test_the_winner_is_who_was_confirmed_though_another_led():
    steps = a_line(1.1, 1.4, 1.9)
    found = counted(steps, final=confirmed(steps[1], speedup=1.35))
    assert found.winner == steps[1]
    assert found.is_confirmed
    assert found.speedup.value == 1.35


def test_a_failed_confirmation_leaves_the_number_that_was_measured_before():
    steps = a_line(1.1, 1.9)
    found = counted(steps, final=confirmed(steps[1], verdict=Verdict.WRONG))
    assert found.winner == steps[1]
    assert not found.is_confirmed
    assert found.speedup.value == 1.9


def test_every_verdict_and_every_other_end_is_counted_once():
    steps = [a_step(number, verdict=verdict) for number, verdict in enumerate(Verdict)]
    steps = [step for step in steps if step.evaluation.verdict is not Verdict.PASSED]
    steps += [a_step(20, speedup=1.0), a_step(21)]
    steps.append(a_step(22, speedup=3.0, outcome=Outcome.DUPLICATE))
    steps.append(replace(a_step(23), lost="the device went away", placement=replace(
        a_step(23).placement, outcome=Outcome.LOST)))  # fmt: skip
    found = counted(steps)
    assert found.tally == tuple((fate, 1) for fate in FATES)
    assert found.judged == len(Verdict)
    assert found.passed == 1


def test_a_lineage_goes_back_to_the_first_and_leaves_others_out():
    steps = a_line(1.1, 1.4, 1.9)
    steps.append(a_step(3, speedup=1.2, parent=steps[0].candidate.id))
    assert [step.brief.number for step in counted(steps).lineage] == [0, 1, 2]


def test_a_parent_that_this_run_never_saw_ends_the_lineage():
    steps = [a_step(0, speedup=2.0, parent="0123456789ab", is_best=True)]
    assert counted(steps).lineage == (steps[0],)


def test_a_candidate_that_names_itself_as_its_parent_ends_the_lineage():
    own = a_step(0, speedup=2.0, source="x + y").candidate.id
    step = a_step(0, speedup=2.0, source="x + y", parent=own, is_best=True)
    assert counted([step]).lineage == (step,)


def test_a_cell_belongs_to_the_last_that_took_it():
    steps = [
        a_step(0, speedup=1.0, cell=(1, 2)),
        a_step(2, speedup=2.0, cell=(1, 2), outcome=Outcome.IMPROVED),
        a_step(4, speedup=1.5, cell=(1, 2), outcome=Outcome.KEPT_OUT),
        a_step(1, speedup=1.1, cell=(1, 2)),
    ]
    found = counted(steps).cells
    assert [(cell.island, cell.place, cell.score, cell.arrivals) for cell in found] == [
        (0, (1, 2), 2.0, 2),
        (1, (1, 2), 1.1, 1),
    ]


def by(step, proposer, **usage):
    return replace(step, proposal=replace(
        step.proposal, proposer=proposer, usage=Usage(**usage)))  # fmt: skip


def test_credit_goes_to_who_raised_the_best():
    first, second, third = a_line(1.5, 3.0, 4.5)
    steps = [by(first, "a"), by(second, "b"), by(third, "a"), by(a_step(3), "c")]
    credits = {credit.proposer: credit for credit in counted(steps).credits}
    assert credits["a"].lifted == pytest.approx(1.5 * 1.5)
    assert credits["b"].lifted == pytest.approx(2.0)
    assert credits["c"].lifted == 1.0
    assert [credits[name].bests for name in "abc"] == [2, 1, 0]
    assert list(credits) == ["a", "b", "c"]


def test_raising_a_slow_first_candidate_to_eager_is_no_credit():
    slow, fast = a_line(0.5, 0.9)
    assert counted([slow, fast]).credits[0].lifted == 1.0


def test_what_nobody_counted_stays_unknown():
    steps = [by(step, "rules", seconds=0.5) for step in a_line(1.5, 3.0)]
    (credit,) = counted(steps).credits
    assert (credit.input_tokens, credit.output_tokens, credit.usd) == (None, None, None)
    assert credit.seconds == 1.0
    assert counted(steps).usd is None


def test_costs_add_up():
    found = counted(a_line(1.5, 3.0))
    assert found.usd == pytest.approx(0.02)
    assert found.tokens == 2400


def test_stages_add_up_and_duplicates_cost_nothing():
    steps = [*a_line(1.5, 3.0), a_step(2, speedup=3.0, outcome=Outcome.DUPLICATE)]
    assert dict(counted(steps).stages) == {"propose": 3.0, "build": 1.0, "check": 0.5}


def test_a_message_is_its_first_line_that_says_something():
    assert first_line("\n\n  error: no\nmore") == "error: no"
    assert len(first_line("x" * 1000)) == 160


def test_a_rejection_is_the_message_of_its_step():
    step = replace(a_step(0), proposal=Proposal(source=None, rejection="no fence in the reply"))
    assert counted([step]).points[0].message == "no fence in the reply"
