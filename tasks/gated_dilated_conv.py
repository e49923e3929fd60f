"""A WaveNet layer: causal dilated convolution, tanh times sigmoid, residual and skip outputs."""

import torch
import torch.nn.functional as F

FAMILY = "convolution"
DIFFICULTY = 3
ORIGIN = "WaveNet"

# WaveNet: 64 residual channels, 256 skip channels, width 2, dilation doubling up to 512.


class Model(torch.nn.Module):
    def __init__(self, channels, skip, dilation):
        super().__init__()
        self.dilation = dilation
        self.conv = torch.nn.Conv1d(channels, 2 * channels, 2, dilation=dilation)
        self.out = torch.nn.Conv1d(channels, channels + skip, 1)
        self.channels = channels

    def forward(self, x):
        value, gate = self.conv(F.pad(x, (self.dilation, 0))).chunk(2, dim=1)
        both = self.out(torch.tanh(value) * torch.sigmoid(gate))
        return x + both[:, : self.channels], both[:, self.channels :].contiguous()


def get_inputs(batch=1, channels=64, length=512):
    return [torch.randn(batch, channels, length)]


def get_init_inputs(channels=64, skip=256, dilation=8):
    return [channels, skip, dilation]


def get_workloads():
    return [
        {
            "name": "wavenet, dilation 8, 512 samples",
            "inputs": {"batch": 1, "channels": 64, "length": 512},
            "init": {"channels": 64, "skip": 256, "dilation": 8},
        },
        {
            "name": "narrow wavenet, dilation 64, 1024 samples",
            "inputs": {"batch": 2, "channels": 32, "length": 1024},
            "init": {"channels": 32, "skip": 64, "dilation": 64},
        },
        {
            "name": "gpu: wavenet, dilation 512, 16 clips",
            "inputs": {"batch": 16, "channels": 64, "length": 16384},
            "init": {"channels": 64, "skip": 256, "dilation": 512},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 11, "length": 101},
            "init": {"channels": 11, "skip": 17, "dilation": 5},
            "held_out": True,
        },
    ]
