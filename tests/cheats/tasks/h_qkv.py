"""One linear layer, returned in three slices that share memory."""

import torch


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.linear = torch.nn.Linear(dim, 3 * dim)

    def forward(self, x):
        return self.linear(x).chunk(3, dim=-1)


def get_inputs():
    return [torch.randn(64, 64)]


def get_init_inputs():
    return [64]
