"""A float32 product that may be computed in bfloat16."""

import torch

COMPUTE_DTYPE = "bfloat16"


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(inputs, outputs))

    def forward(self, x):
        return x @ self.weight


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256, 96]
