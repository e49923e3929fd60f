"""Long sums in C++: small terms are not lost, however long a lane's share is."""

import numpy as np
import pytest
import torch

from kernelsmith.domain.task import Task
from kernelsmith.evaluate.worker.program import execute
from kernelsmith.propose.rules.kinds import kinds_for
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


INFINITE = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return {text}


def get_inputs():
    return [torch.randn(7, 9)]
"""


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("function", ["logsumexp", "softmax"])
def test_infinities_come_out_of_one_sweep_as_they_come_out_of_two(function, dim):
    text = f"torch.{function}(x, dim={dim})"
    task = Task(name="infinite", source=INFINITE.format(text=text))
    family = kinds_for(task, "cpu")[0] if dim == 0 else template_for(task, "cpu")
    chosen = family.space.defaults | {"passes": "online", "width": "4", "unroll": "1"}
    x = torch.randn(9, 9)
    x[1, 2] = x[5, 2] = x[3, 3] = x[3, 7] = torch.inf
    x[0, 4] = torch.nan
    x[6] = x[:, 6] = -torch.inf
    got, want = execute(family.source(chosen)).ModelNew()(x), getattr(torch, function)(x, dim=dim)
    torch.testing.assert_close(got, want, equal_nan=True)
