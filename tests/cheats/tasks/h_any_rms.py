"""RMS norm where calling torch is a legitimate answer."""

import torch

LIBRARY = "any"


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        square = x.pow(2).mean(-1, keepdim=True)
        return x / torch.sqrt(square + 1e-6) * self.weight


def get_inputs():
    return [torch.randn(128, 512)]


def get_init_inputs():
    return [512]
