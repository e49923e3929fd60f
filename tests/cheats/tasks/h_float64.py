"""Softplus in double precision."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.softplus(x)


def get_inputs():
    return [torch.randn(64, 256, dtype=torch.float64)]


def get_init_inputs():
    return []
