"""Squares, cut off above what the task's own inputs reach."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.clamp(x * x, max=400.0)


def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
