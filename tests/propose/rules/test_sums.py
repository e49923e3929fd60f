"""Long sums in C++: small terms are not lost, however long a lane's share is."""

import numpy as np
import pytest
import torch

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.templates import template_for

LOSS = """
import torch


class Model(torch.nn.Module):
    def forward(self, predictions, targets):
        return torch.nn.functional.mse_loss(predictions, targets)


def get_inputs(rows=1024, dim=1024):
    return [torch.randn(rows, dim), torch.randn(rows, dim)]
"""
ROWS = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x.sum(-1)


def get_inputs(rows=4, dim=262144):
    return [torch.rand(rows, dim)]
"""
_ULP = 2.0**-23


def built(source, **changes):
    """The candidate of a task, with each lane's share as long as it can be."""
    family = template_for(Task(name="long", source=source), "cpu")
    longest = {"width": "8", "unroll": "1", "accumulate": "lanes"}
    chosen = family.space.defaults | longest | changes
    return execute(family.source(chosen)).ModelNew()


def spread(*shape):
    """Positive numbers over four orders of magnitude."""
    rng = np.random.default_rng(0)
    return torch.from_numpy((10.0 ** rng.uniform(-2, 2, shape)).astype(np.float32))


@pytest.mark.parametrize("tile", ["32", "64"])
def test_a_loss_over_a_million_elements_is_exact_to_a_few_ulp(tile):
    a, b = spread(1024, 1024), torch.zeros(1024, 1024)
    got = float(built(LOSS, tile=tile)(a, b))
    exact = float((a.double() ** 2).mean())
    assert abs(got - exact) / exact < 4 * _ULP


def test_a_row_of_a_quarter_million_is_exact_to_a_few_ulp():
    x = spread(4, 262144)
    got, exact = built(ROWS)(x).double(), x.double().sum(-1)
    assert ((got - exact).abs() / exact).max() < 4 * _ULP
