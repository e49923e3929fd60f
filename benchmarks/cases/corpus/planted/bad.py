"""No class here is a task: none may come through as one."""

import os
import sys

import torch
from flash_nothing import fast_attention
from torch import nn


class Nothing(nn.Module):
    def forward(self, x):
        return x


class OnlyViews(nn.Module):
    def forward(self, x):
        return x.flatten(1).t().contiguous()


class AlmostNothing(nn.Module):
    """Its input within rounding."""

    def forward(self, x):
        return (x * 3.0) / 3.0


class TestLayer(nn.Module):
    """Would run, and was written to test something else with."""

    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x):
        return self.layer(x).tanh()


class Constant(nn.Module):
    def forward(self, x):
        return torch.ones_like(x) * 3.0


class IgnoresInputs(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.table = nn.Parameter(torch.randn(dim))

    def forward(self, x):
        return self.table.expand(x.shape[0], -1) * 2.0


class IgnoresWeights(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layer = nn.Linear(dim, dim)

    def forward(self, x):
        return torch.relu(x) + 0.0 * self.layer(x)


class NotANumber(nn.Module):
    def forward(self, x):
        return torch.log(-x.abs() - 1.0)


class Endless(nn.Module):
    def forward(self, x):
        while True:
            x = x + 1
        return x


class EndlessRecursion(nn.Module):
    def forward(self, x):
        return self.forward(x * 0.5)


class Enormous(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1 << 17, 1 << 17)

    def forward(self, x):
        return self.layer(x)


class HiddenWeights(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weights = [torch.randn(dim, dim)]

    def forward(self, x):
        return x @ self.weights[0]


class Leaves(nn.Module):
    def forward(self, x):
        sys.exit(0)


class DiesHard(nn.Module):
    def forward(self, x):
        os._exit(0)


class NeedsWhatIsNotHere(nn.Module):
    def forward(self, q, k, v):
        return fast_attention(q, k, v)


class Abstract(nn.Module):
    def forward(self, x):
        raise NotImplementedError


class Talks(nn.Module):
    def forward(self, x):
        while True:
            os.write(1, b"x" * 65536)


class Words(nn.Module):
    def forward(self, x):
        return str(x.shape)


class Shrinking(nn.Module):
    """Another number of outputs on every call: nothing to compare with."""

    def forward(self, x):
        self.count = getattr(self, "count", 0) + 1
        return x.reshape(-1)[: self.count] * 2.0


class Unset(nn.Module):
    """Its framework would have set the weights; nobody here does."""

    def __init__(self, dim=64):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(dim, dim))

    def forward(self, x):
        return x @ self.weight
