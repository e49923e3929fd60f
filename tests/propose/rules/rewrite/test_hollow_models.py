"""A constructor that looks at the contents of tensors does not keep its forward from being read."""

import pytest

torch = pytest.importorskip("torch")

SOURCE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.5, 3)]
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4, bias=False)
        self.b.weight = self.a.weight
    def forward(self, x):
        return self.b(self.a(x)) * self.rates[1]

def get_inputs():
    return [torch.randn(2, 4)]

def get_init_inputs():
    return []
"""
REQUEST = {"source": SOURCE, "entry": "Model", "training": False, "dtype": None, "arguments": {},
           "init": {}}  # fmt: skip


def test_numbers_that_a_constructor_takes_out_of_tensors_are_known():
    from kernelsmith.propose.rules.rewrite.recorder import trace

    found = trace(REQUEST)["calls"]
    assert [each["name"].rpartition(".")[2] for each in found] == ["linear", "linear", "mul"]
    first, second = (each["args"] for each in found[:2])
    assert first[1] == second[1]  # one weight under two names stays one
    assert found[2]["args"][1] == 0.25
