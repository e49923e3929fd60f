"""What the reference says, and that asking leaves it as it was."""

import weakref

import pytest
import torch

from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.cuda.footprint import _Live
from kernelsmith.evaluate.worker.inputs import InputSet


class Counting(torch.nn.Module):
    """Changes a buffer in each call, and a parameter in those that it is told."""

    def __init__(self, *, learns=lambda calls: False):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4))
        self.offset = torch.nn.Parameter(torch.zeros(4))
        self.register_buffer("calls", torch.zeros(()))
        self.seen = 0
        self._learns = learns

    def forward(self, x):
        self.seen += 1
        self.calls += 1
        if self._learns(self.seen):
            with torch.no_grad():
                self.offset += 1
        return x * self.weight + self.offset


def asked(model):
    chosen = InputSet([{"t": 0}], [torch.randn(8, 4)], keywords=False)
    return Case(model, None, None, None, None), chosen


def test_a_changed_buffer_is_an_answer_and_is_put_back():
    case, chosen = asked(Counting())
    for _ in range(3):
        answer = case.answer(chosen, nudges=0)
        assert [key for key, _ in answer.buffers] == ["calls"]
        assert answer.buffers[0][1].eager == answer.buffers[0][1].exact == 1
        assert case.model.calls == 0


class Halving(torch.nn.Module):
    def forward(self, x, places, scale):
        x.mul_(0.5)
        places.add_(1)
        return x * scale


def test_inputs_that_a_call_writes_are_answers_and_stay_as_they_were():
    leaves = [torch.randn(8, 4), torch.arange(3), torch.tensor([2.0, float("nan"), 1.0, 3.0])]
    before = [leaf.clone() for leaf in leaves]
    chosen = InputSet([{"t": 0}, {"t": 1}, {"t": 2}], leaves, keywords=False)
    answer = Case(Halving(), None, None, None, None).answer(chosen, nudges=0)
    assert [leaf for leaf, _ in answer.mutated] == [0, 1]
    halved, moved = (output for _, output in answer.mutated)
    assert torch.equal(halved.exact, before[0].double() / 2)
    assert torch.equal(moved.exact, torch.arange(1, 4))
    assert all(torch.equal(now, then) for now, then in zip(leaves[:2], before[:2], strict=True))


def test_after_the_first_call_only_what_may_change_is_copied():
    case, chosen = asked(Counting())
    assert set(case._set_aside(case.model)) == {"weight", "offset", "calls"}
    case.answer(chosen, nudges=0)
    assert set(case._set_aside(case.model)) == {"calls"}


def test_a_parameter_that_every_call_changes_is_put_back():
    case, chosen = asked(Counting(learns=lambda calls: True))
    for _ in range(3):
        answer = case.answer(chosen, nudges=0)
        assert sorted(key for key, _ in answer.buffers) == ["calls", "offset"]
        assert torch.equal(answer.outputs[0].eager, chosen.leaves[0] + 1)
        assert torch.equal(case.model.offset, torch.zeros(4))


def test_earlier_calls_count_and_are_undone():
    case, chosen = asked(Counting(learns=lambda calls: True))
    answer = case.answer_after(chosen, [chosen, chosen], nudges=0)
    assert torch.equal(answer.outputs[0].eager, chosen.leaves[0] + 3)
    assert dict(answer.buffers)["calls"].exact == 3
    assert case.model.calls == 0
    assert torch.equal(case.model.offset, torch.zeros(4))


def test_a_parameter_that_only_later_calls_change_is_noticed():
    case, chosen = asked(Counting(learns=lambda calls: calls > 1))
    case.run(chosen, chosen.leaves, double=False)
    with pytest.raises(ValueError, match="parameter offset in some calls only"):
        case.run(chosen, chosen.leaves, double=False)


class Tidy(torch.nn.Module):
    """Writes a parameter in place, and mostly what is there already."""

    def __init__(self, add=0.0):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.full((4,), 0.5))
        self._add = add

    def forward(self, x):
        with torch.no_grad():
            self.weight.clamp_(0, 1).add_(self._add)
        return x * self.weight


@pytest.mark.parametrize("add", [0.0, 1e-9])
def test_a_parameter_may_be_written_without_being_changed(add):
    case, chosen = asked(Tidy(add))
    for _ in range(3):
        answer = case.answer(chosen, nudges=0)
        assert answer.exact
        assert answer.buffers == []
        assert torch.equal(case._double.weight, torch.full((4,), 0.5, dtype=torch.float64))


class Growing(torch.nn.Module):
    def forward(self, x):
        if not hasattr(self, "seen"):
            self.register_buffer("seen", x.mean())
        return x


def test_a_state_that_grows_is_refused_by_name():
    case, chosen = asked(Growing())
    with pytest.raises(ValueError, match="adds seen to its state"):
        case.run(chosen, chosen.leaves, double=False)


class Fading(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("once", torch.ones(()))

    def forward(self, x):
        self.once = None
        return x


def test_a_buffer_that_is_dropped_is_no_longer_compared():
    case, chosen = asked(Fading())
    assert case.run(chosen, chosen.leaves, double=False).state == {}


def test_to_see_whether_it_is_random_two_results_are_held_at_a_time():
    held: list[weakref.ref] = []

    def drawn(x):
        assert sum(each() is not None for each in held) <= 2
        result = x + 1
        held.append(weakref.ref(result))
        return result

    chosen = InputSet([{"t": 0}], [torch.randn(8, 4)], keywords=False)
    assert not Case(None, drawn, None, None, None).differs(chosen)
    assert len(held) == 3


def test_a_third_run_may_show_that_it_is_random():
    calls = iter((0.0, 0.0, 1.0))
    chosen = InputSet([{"t": 0}], [torch.randn(8, 4)], keywords=False)
    assert Case(None, lambda x: x + next(calls), None, None, None).differs(chosen)


def most_of(inputs, ask):
    """The most memory that is alive while it is asked, in times of the inputs'."""
    with _Live() as live:
        chosen = InputSet([{"t": 0}], [inputs], keywords=False)
        ask(chosen)
        return (inputs.nbytes + live.peak) / inputs.nbytes


@pytest.fixture
def small_blocks(monkeypatch):
    """What is drawn at once is a small part of the inputs, as it is of large ones."""
    monkeypatch.setattr("kernelsmith.evaluate.worker.answers._BLOCK", 1 << 12)


@pytest.mark.parametrize("search", [torch.argmax, torch.topk])
@pytest.mark.usefixtures("small_blocks")
def test_where_something_is_is_found_with_one_copy_in_float64_at_a_time(search):
    def forward(x):
        return search(x, 2) if search is torch.topk else search(x, -1)

    case = Case(None, forward, None, None, None)
    answers = []
    most = most_of(
        torch.rand(64, 1 << 14), lambda chosen: answers.append(case.answer(chosen, nudges=4))
    )
    assert most < 1 + 2 + 0.5
    indices = answers[0].outputs[-1]
    assert len(indices.alternatives) == 4
    assert not any(each.is_floating_point() for each in indices.alternatives)


@pytest.mark.usefixtures("small_blocks")
def test_runs_that_say_which_places_may_differ_are_there_one_at_a_time():
    case = Case(None, lambda x: (torch.cat([x] * 8), torch.argmax(x, -1)), None, None, None)
    x = torch.rand(64, 1 << 14)
    one, four = (most_of(x, lambda c, n=n: case.answer(c, nudges=n)) for n in (1, 4))
    assert four < one + 0.5


@pytest.mark.usefixtures("small_blocks")
def test_outputs_on_other_inputs_are_there_one_run_at_a_time():
    case = Case(None, lambda x: torch.cat([x] * 8), None, None, None)
    seen = []

    def ask(chosen):
        for run in case.shifted(chosen, 4):
            seen.append(run[0].double().sum().item())
            del run

    most = most_of(torch.rand(64, 1 << 14), ask)
    assert len(set(seen)) == 4
    assert most < 1 + 2 + 2 * 8 + 0.5  # the inputs, and both in float64; four runs are 64 more


def test_inputs_that_are_numbers_are_copied_for_every_run():
    def forward(x, at):
        at += 1
        return x[at]

    at = torch.zeros(3, dtype=torch.int64)
    chosen = InputSet([{"t": 0}, {"t": 1}], [torch.randn(8), at], keywords=False)
    for _ in Case(None, forward, None, None, None).shifted(chosen, 3):
        assert at.tolist() == [0, 0, 0]
