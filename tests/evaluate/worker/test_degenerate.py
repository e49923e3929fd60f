"""Tasks that ask for less than they seem to are named, from one set of inputs at a time."""

import weakref

import pytest
import torch

from kernelsmith.evaluate.worker.answers import Case
from kernelsmith.evaluate.worker.degenerate import examine
from kernelsmith.evaluate.worker.inputs import InputSet


def a_set(*leaves: torch.Tensor) -> InputSet:
    return InputSet([{"t": i} for i in range(len(leaves))], list(leaves), keywords=False)


def reasons(function, sets=3) -> list[str]:
    torch.manual_seed(0)
    drawn = [a_set(torch.rand(6, 4), torch.rand(6, 4)) for _ in range(sets)]
    return examine(Case(None, function, None, None, None), drawn)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda x, y: x @ y.T, []),
        (lambda x, y: torch.arange(24.0).view(6, 4).sin(), ["does not depend on the inputs"]),
        (lambda x, y: torch.full((6, 4), x.sum().item()), ["is constant"]),
        (lambda x, y: y.clone(), ["is one of the inputs unchanged"]),
        (lambda x, y: (x * y).clamp(-5, 5), ["clamp.default returns its input unchanged"]),
        (lambda x, y: (x > 2).long(), []),
        (lambda x, y: (x * y, y.clone()), ["output 1 is one of the inputs unchanged"]),
    ],
)
def test_what_a_task_does_not_need_is_named(function, said):
    found = reasons(function)
    assert len(found) == len(said)
    assert all(part in line for part, line in zip(said, found, strict=True))


def test_an_output_must_be_the_same_input_on_every_set():
    seen = iter(range(3))

    def in_turns(x, y):
        return (x if next(seen) % 2 else y).clone()

    assert reasons(in_turns) == []


def test_one_set_alone_does_not_show_that_inputs_do_not_matter():
    assert reasons(lambda x, y: x @ y.T, sets=1) == []


def test_a_set_is_let_go_before_the_next_one_is_drawn():
    """Three sets of a large task, and their outputs, were more than its share of a device."""
    leaves: list[weakref.ref] = []

    def drawn():
        for _ in range(3):
            assert sum(each() is not None for each in leaves) <= 1
            leaf = torch.rand(6, 4)
            leaves.append(weakref.ref(leaf))
            yield a_set(leaf)
            del leaf

    assert examine(Case(None, torch.sin, None, None, None), drawn()) == []
    assert len(leaves) == 3
