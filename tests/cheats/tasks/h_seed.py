"""Weights matched by seed only, as foreign suites do it."""

import torch

WEIGHTS = "seed"


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, 96]
