"""Row-wise log-sum-exp over several shapes, one of which is held out."""

import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=-1)


def get_inputs(rows=64, columns=512):
    return [torch.randn(rows, columns)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {"name": "wide", "inputs": {"rows": 64, "columns": 512}},
        {"name": "narrow", "inputs": {"rows": 512, "columns": 24}},
        {"name": "odd", "inputs": {"rows": 37, "columns": 131}, "held_out": True},
    ]
