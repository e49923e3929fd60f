"""Training and held-out tasks."""

import pytest

from kernelsmith.domain.task import Task
from kernelsmith.errors import UsageError
from kernelsmith.training.data.split import likeness, shingles_of, split


def module(body, name="Model"):
    head = f"import torch\n\nclass {name}(torch.nn.Module):\n"
    return f"{head}    def forward(self, x):\n        {body}\n"


LONG = "return torch.softmax(x * 2.0 + 1.0, dim=-1).sum(dim=0).relu().exp().log().mean()"
OTHER = "return torch.sort(x, dim=1).values.cumsum(dim=1)[..., :4].flip(1).contiguous()"


def named(name, body):
    return Task(name=name, source=module(body))


def test_copies_of_a_task_stay_on_one_side():
    tasks = [named(f"copy{n}", LONG.replace("2.0", "3.0") if n else LONG) for n in range(3)]
    tasks += [
        named(f"t{n}", f"return x.roll({n}).narrow(0, {n}, 9).div({n}).erf()") for n in range(7)
    ]
    for seed in range(5):
        parted = split(tasks, share=0.5, seed=seed)
        sides = {name in parted.held_out for name in ("copy0", "copy1", "copy2")}
        assert len(sides) == 1
        assert parted.held_out
        assert parted.train


def test_copies_of_a_benchmarks_tasks_are_dropped():
    tasks = [named("mine", LONG), named("other", OTHER)]
    parted = split(tasks, benchmark=[Task(name="kb", source=module(LONG, "Net"))], share=0.0)
    assert parted.dropped == {"mine"}
    assert parted.train == {"other"}


def test_named_tasks_are_held_out_with_their_copies():
    tasks = [named("a", LONG), named("b", LONG), named("c", OTHER)]
    assert split(tasks, held_out=("a",)).held_out == {"a", "b"}
    with pytest.raises(UsageError, match="no task 'z'"):
        split(tasks, held_out=("z",))


def test_recipes_for_inputs_do_not_make_tasks_alike():
    inputs = (
        "\ndef get_inputs():\n    return [torch.randn(3, 3), torch.randn(4, 4), torch.zeros(1)]\n"
    )
    one, other = shingles_of(module(LONG) + inputs), shingles_of(module(OTHER) + inputs)
    assert likeness(one, other) < 0.3
    assert likeness(one, shingles_of(module(LONG))) == 1.0
