"""Causal depthwise convolution over time, as in Mamba, with silu behind it."""

import torch
import torch.nn.functional as F

FAMILY = "transposed convolution"
DIFFICULTY = 2
ORIGIN = "Mamba-370m"


class Model(torch.nn.Module):
    def __init__(self, channels, width=4):
        super().__init__()
        self.width = width
        self.conv = torch.nn.Conv1d(channels, channels, width, groups=channels)

    def forward(self, x):
        x = F.pad(x, (self.width - 1, 0))
        return F.silu(self.conv(x))


def get_inputs(batch=2, channels=256, length=512):
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels=256):
    return [channels]


def get_workloads():
    return [
        {
            "name": "small mamba, 512 steps",
            "inputs": {"batch": 2, "channels": 256, "length": 512},
            "init": {"channels": 256},
        },
        {
            "name": "one stream, 2048 steps",
            "inputs": {"batch": 1, "channels": 128, "length": 2048},
            "init": {"channels": 128},
        },
        {
            "name": "gpu: mamba-370m, 2048 steps",
            "inputs": {"batch": 4, "channels": 2048, "length": 2048},
            "init": {"channels": 2048},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 37, "length": 101},
            "init": {"channels": 37},
            "held_out": True,
        },
    ]
