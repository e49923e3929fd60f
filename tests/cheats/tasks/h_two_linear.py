"""Two linear maps without anything in between: they could be one."""

import torch


class Model(torch.nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = torch.nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = torch.nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def forward(self, x):
        return x @ self.first @ self.second


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return [64, 128, 32]
