"""A task that takes no time, for the benchmark of the rules."""

TASK = """\
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2


def get_inputs():
    return [torch.randn(64, 257)]


def get_init_inputs():
    return []
"""
