"""Running sums along the last dimension."""

import torch

FAMILY = "scan"
DIFFICULTY = 1
ORIGIN = "time series"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x, dim=-1)


def get_inputs(rows=256, dim=2048):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "256 series of 2048",
            "inputs": {"rows": 256, "dim": 2048},
        },
        {
            "name": "16 series of 16384",
            "inputs": {"rows": 16, "dim": 16384},
        },
        {
            "name": "gpu: 4096 series of 4096",
            "inputs": {"rows": 4096, "dim": 4096},
        },
        {
            "name": "odd length",
            "inputs": {"rows": 29, "dim": 1537},
            "held_out": True,
        },
    ]
