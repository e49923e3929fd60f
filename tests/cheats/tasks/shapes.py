"""Softmax over rows of several lengths, some of which nobody is told."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs(rows=64, cols=1024):
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {"name": "square", "inputs": {"rows": 64, "cols": 1024}},
        {"name": "odd", "inputs": {"rows": 37, "cols": 331}, "held_out": True},
    ]
