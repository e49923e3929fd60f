"""The paper's two filters, duplicates, lengths, balance."""

from collections import Counter

import pytest
from training_parts import a_sample, a_task

from kernelsmith.domain.evaluation import Verdict
from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.training.data.balance import balanced
from kernelsmith.training.data.filters import Filter, Over, deduplicated, filtered
from kernelsmith.training.data.rows import row_of
from kernelsmith.training.forms.form import form_named


def test_a_first_step_need_only_be_right():
    slow, wrong = a_sample(0, speedup=0.4), a_sample(1, verdict=Verdict.WRONG, speedup=None)
    assert filtered([slow, wrong], Filter()) == [slow]


def test_a_later_step_must_also_be_faster_than_eager():
    parent = ("p", 0.5)
    slow, fast = a_sample(0, speedup=0.9, parent=parent), a_sample(1, speedup=1.1, parent=parent)
    assert filtered([slow, fast], Filter()) == [fast]


def test_by_option_the_whole_interval_must_lie_above_one():
    noisy = a_sample(0, speedup=1.05, parent=("p", 0.5), width=0.3)
    assert Filter().keeps(noisy)
    assert not Filter(beyond_noise=True).keeps(noisy)


def test_by_option_a_later_step_must_beat_its_parent_beyond_the_interval():
    parent = ("p", 1.5)
    noise, gain = a_sample(0, speedup=1.51, parent=parent), a_sample(1, speedup=1.8, parent=parent)
    worse = a_sample(2, speedup=1.2, parent=parent)
    assert filtered([noise, gain, worse], Filter(over=Over.PARENT)) == [gain]
    assert filtered([noise, gain, worse], Filter()) == [noise, gain, worse]


def test_by_option_a_first_step_must_beat_the_baseline():
    slow, noise, fast = (a_sample(n, speedup=s) for n, s in enumerate((0.9, 1.005, 1.5)))
    samples = [slow, noise, fast]
    assert filtered(samples, Filter(translations=False)) == [noise, fast]
    assert filtered(samples, Filter(over=Over.PARENT, translations=False)) == [fast]
    assert filtered(samples, Filter(over=Over.PARENT)) == samples


def test_an_unknown_filter_is_named():
    with pytest.raises(UsageError, match="no filter 'best'"):
        Filter(over="best")


def test_the_same_question_with_the_same_answer_teaches_once():
    one = a_sample(0, source="a = 1  # this way\n", parent=("p", 1.0))
    again = a_sample(1, source="a  =  1\n\n", parent=("p", 1.0))
    other = a_sample(2, source="a = 2\n", parent=("p", 1.0))
    assert deduplicated([one, again, other]) == [one, other]


def test_for_the_null_backend_a_comment_is_the_clock():
    one, other = a_sample(0, source="x + y  # us: 3"), a_sample(1, source="x + y  # us: 2")
    assert deduplicated([one, other]) == [one, other]


def test_what_does_not_fit_the_context_is_left_out():
    task = Task(name="t", source="class Model: pass")
    sample = a_sample(0, source="class ModelNew: pass", task=task, backend="cpu")
    form = form_named("whole", "cpu")
    assert row_of(sample, form) is not None
    assert row_of(sample, form, limit=200) is None


def test_small_cells_stay_whole_and_large_ones_share_the_rest():
    many = [a_sample(n, family="norm", task=a_task(f"n{n % 3}")) for n in range(30)]
    few = [a_sample(100 + n, family="scan", task=a_task("s")) for n in range(4)]
    chosen = balanced([*many, *few], 14)
    assert Counter(each.family for each in chosen) == {"norm": 10, "scan": 4}
    tasks = Counter(each.task.name for each in chosen if each.family == "norm")
    assert max(tasks.values()) - min(tasks.values()) <= 1


def test_balance_does_not_depend_on_the_order():
    samples = [a_sample(n, family="ab"[n % 2]) for n in range(20)]
    one = {each.id for each in balanced(samples, 6)}
    assert one == {each.id for each in balanced(samples[::-1], 6)}
    assert len(one) == 6
