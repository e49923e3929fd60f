"""Attention inside small windows with a learned bias for every relative position."""

import math

import torch

FAMILY = "attention"
DIFFICULTY = 3
ORIGIN = "Swin-T"
STRUCTURE = "queries and keys of unit scale"

# Swin-T: windows of 7 by 7, heads of 32, 3 heads in the first stage and 24 in the last.
# Their scale is promised: scores of hundreds would magnify rounding and hide half precision.


class Model(torch.nn.Module):
    def __init__(self, window, heads):
        super().__init__()
        side = 2 * window - 1
        self.table = torch.nn.Parameter(0.5 * torch.randn(side * side, heads))
        rows, columns = torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")
        rows, columns = rows.flatten(), columns.flatten()
        down = rows[:, None] - rows + window - 1
        right = columns[:, None] - columns + window - 1
        self.register_buffer("index", down * side + right)

    def forward(self, q, k, v):
        bias = self.table[self.index].permute(2, 0, 1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1]) + bias
        return torch.softmax(scores, dim=-1) @ v


def get_inputs(windows=16, heads=3, window=7, dim=32):
    return [torch.randn(windows, heads, window * window, dim) for _ in range(3)]


def get_init_inputs(window=7, heads=3):
    return [window, heads]


def get_workloads():
    return [
        {
            "name": "swin-t stage 1, 16 windows",
            "inputs": {"windows": 16, "heads": 3, "window": 7, "dim": 32},
            "init": {"window": 7, "heads": 3},
        },
        {
            "name": "swin-t stage 4, 2 images",
            "inputs": {"windows": 2, "heads": 24, "window": 7, "dim": 32},
            "init": {"window": 7, "heads": 24},
        },
        {
            "name": "gpu: swin-t stage 1, 32 images",
            "inputs": {"windows": 2048, "heads": 3, "window": 7, "dim": 32},
            "init": {"window": 7, "heads": 3},
        },
        {
            "name": "gpu: swin v2-style windows of 16, 16 images",
            "inputs": {"windows": 256, "heads": 4, "window": 16, "dim": 32},
            "init": {"window": 16, "heads": 4},
        },
        {
            "name": "odd sizes",
            "inputs": {"windows": 5, "heads": 2, "window": 5, "dim": 19},
            "init": {"window": 5, "heads": 2},
            "held_out": True,
        },
    ]
