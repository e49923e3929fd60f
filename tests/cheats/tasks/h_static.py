"""A linear layer whose weights stay: an engine may repack them once."""

import torch

WEIGHTS = "static"


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 128)]


def get_init_inputs():
    return [128, 96]
