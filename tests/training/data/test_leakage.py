"""What a prompt gives away, and what the paper found about training on all steps."""

import pytest
from training_parts import a_sample, null_runs

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.errors import UsageError
from kernelsmith.training.data.leakage import copying_gain, guarded, leaks_of, shows_answer
from kernelsmith.training.data.sample import Stage
from kernelsmith.training.data.select import STRATEGIES, select
from kernelsmith.training.data.steps import read_samples


def a_trajectory():
    """Five steps, each improving the best so far, which later prompts show beside a weak parent."""
    steps = [a_sample(0, source="k0", speedup=1.0)]
    for number in range(1, 5):
        best = (f"k{number - 1}", 1.0 + 0.5 * (number - 1))
        steps.append(a_sample(number, source=f"k{number}", speedup=1.0 + 0.5 * number, parent=best))
    # The same later on: a weak parent is sampled for diversity, and the archive's best stands by.
    steps += [
        a_sample(5 + number, source=f"d{number}", speedup=1.2, parent=("k0", 1.0),
                 others=(("k4", 3.0), ("k3", 2.5)), best=False)
        for number in range(4)
    ]  # fmt: skip
    return steps


def test_training_on_all_steps_pays_for_copying_and_training_on_best_steps_does_not():
    """The paper's finding: with all steps rewards rise and little is learnt."""
    trajectory = a_trajectory()
    every, best = select(trajectory, "all"), select(trajectory, "best")
    assert leaks_of(every).copying > 1.5
    assert leaks_of(best).copying == 1.0
    assert leaks_of(every).show_better == 4
    assert leaks_of(best).show_better == 0
    copied = [each for each in every if (gain := copying_gain(each)) is not None and gain > 1]
    assert len(copied) == 4, "in four of nine prompts the reward is there for the taking"


def test_with_all_steps_the_answers_stand_in_other_prompts():
    leaks = leaks_of(select(a_trajectory(), "all"))
    assert leaks.share_exposed > 0.5


def test_the_same_is_seen_in_real_runs(tmp_path):
    null_runs(tmp_path, count=4, steps=40)
    samples = read_samples([tmp_path], Stage.COLD_START)
    every, best = leaks_of(select(samples, "all")), leaks_of(select(samples, "best"))
    assert every.copying > 1.05 > best.copying == 1.0
    assert every.show_better > 0
    assert best.show_better == best.show_answer == 0
    assert best.samples > 0


def test_a_prompt_that_holds_the_answer_is_left_out():
    leaking = a_sample(
        0, source="k9", speedup=2.0, parent=("k0", 1.0), others=(("k9 # same", 2.0),)
    )
    assert shows_answer(leaking)
    assert guarded([leaking]) == []


def test_a_parent_that_differs_in_one_line_is_no_leak():
    lines = [f"line {n}" for n in range(80)]
    parent, child = "\n".join(lines), "\n".join([*lines[:40], "faster", *lines[41:]])
    sample = a_sample(0, source=child, speedup=2.0, parent=(parent, 1.0))
    assert guarded([sample]) == [sample]


def test_a_copy_with_other_names_is_a_leak_and_another_number_or_call_is_none():
    answer = "block = 4\nout = tl.max(block, x)\n"
    renamed = "size = 4\nresult = tl.max(size, x)  # new\n"
    for other, leaks in (
        (renamed, True), (answer.replace("4", "8"), False), (answer.replace("max", "min"), False),
    ):  # fmt: skip
        sample = a_sample(0, source=answer, speedup=2.0, parent=("p", 1.0), others=((other, 1.5),))
        assert shows_answer(sample) is leaks


def test_strategies_select_what_they_say():
    steps = [
        a_sample(0, source="a", speedup=1.0),
        a_sample(1, source="b", speedup=1.5, parent=("a", 1.0), lineage="a"),
        a_sample(2, source="c", speedup=1.2, parent=("a", 1.0), best=False, lineage="a"),
        a_sample(3, source="d", speedup=1.1, parent=("a", 1.0), best=False, lineage="a"),
        a_sample(4, source="e", verdict=Verdict.WRONG, speedup=None, parent=("a", 1.0), best=False),
    ]
    numbers = {
        name: sorted({each.brief.number for each in select(steps, name)}) for name in STRATEGIES
    }
    assert numbers["best"] == [1]
    assert numbers["all"] == [0, 1, 2, 3, 4]
    assert numbers["initial"] == [0]
    assert numbers["top-k"] == [1, 2], "the two largest gains of the lineage"
    assert set(numbers["gain-weighted"]) <= {1, 2, 3}


def test_gain_weighted_draws_large_gains_more_often():
    steps = [a_sample(n, source=f"s{n}", speedup=1.01, parent=("p", 1.0)) for n in range(50)]
    steps += [a_sample(99, source="big", speedup=4.0, parent=("p", 1.0))]
    drawn = select(steps, "gain-weighted", seed=3)
    assert sum(each.brief.number == 99 for each in drawn) > len(drawn) / 3
    assert [each.id for each in drawn] == [
        each.id for each in select(steps, "gain-weighted", seed=3)
    ]


def test_an_unknown_selection_is_named():
    with pytest.raises(UsageError, match="no selection 'beste'; known are best"):
        select([], "beste")
