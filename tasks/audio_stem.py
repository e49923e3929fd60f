"""Whisper's way into its encoder: two convolutions over time with GELU, then fixed positions."""

import torch
import torch.nn.functional as F

FAMILY = "convolution"
DIFFICULTY = 2
ORIGIN = "Whisper tiny"

# Whisper tiny: 80 mel bands to 384 channels, the second convolution halves the frames.


class Model(torch.nn.Module):
    def __init__(self, bands, dim, frames):
        super().__init__()
        self.first = torch.nn.Conv1d(bands, dim, 3, padding=1)
        self.second = torch.nn.Conv1d(dim, dim, 3, stride=2, padding=1)
        self.positions = torch.nn.Parameter(torch.randn(frames // 2, dim))

    def forward(self, mel):
        x = F.gelu(self.first(mel))
        x = F.gelu(self.second(x))
        return x.transpose(1, 2) + self.positions


def get_inputs(batch=1, bands=80, frames=100):
    return [torch.randn(batch, bands, frames)]


def get_init_inputs(bands=80, dim=384, frames=100):
    return [bands, dim, frames]


def get_workloads():
    return [
        {
            "name": "whisper tiny, one second",
            "inputs": {"batch": 1, "bands": 80, "frames": 100},
            "init": {"bands": 80, "dim": 384, "frames": 100},
        },
        {
            "name": "half of whisper tiny, two clips",
            "inputs": {"batch": 2, "bands": 80, "frames": 128},
            "init": {"bands": 80, "dim": 192, "frames": 128},
        },
        {
            "name": "gpu: whisper tiny, 16 clips of 30 s",
            "inputs": {"batch": 16, "bands": 80, "frames": 3000},
            "init": {"bands": 80, "dim": 384, "frames": 3000},
        },
        {
            "name": "gpu: whisper large-v3 in bfloat16, 4 clips",
            "inputs": {"batch": 4, "bands": 128, "frames": 3000},
            "init": {"bands": 128, "dim": 1280, "frames": 3000},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "bands": 13, "frames": 38},
            "init": {"bands": 13, "dim": 29, "frames": 38},
            "held_out": True,
        },
    ]
