"""Inputs that do nothing, found one by one."""

import torch
from torch import nn

from kernelsmith.corpus.inputs.repair import Tensor
from kernelsmith.corpus.run.idle import busy


class Part(nn.Module):
    """Reads one of its inputs, looks only at the shape of another, and starts a third at zero."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(8, 8)
        nn.init.zeros_(self.gate.weight)

    def forward(self, x, like, late, extra=None):
        return x.expand_as(like) + self.gate(late)


class Noisy(Part):
    def forward(self, x, like):
        return x + torch.randn_like(x)


EACH = Tensor((16, 8))


def test_an_optional_input_that_does_nothing_is_left_out_and_a_required_one_is_named():
    state = tuple((name, EACH) for name in ("x", "like", "late", "extra"))
    left, notes = busy(Part, state, ["extra"])
    assert [name for name, _ in left] == ["x", "like", "late"]
    assert notes == ["input like does not affect the output"]


def test_a_layer_that_starts_at_zero_hides_no_input():
    assert not any("late" in note for note in busy(Part, (("x", EACH), ("like", EACH),
                                                          ("late", EACH)), [])[1])  # fmt: skip


def test_a_random_module_is_compared_under_one_seed():
    state = (("x", EACH), ("like", EACH))
    assert busy(Noisy, state, []) == (state, ["input like does not affect the output"])
