"""The end of a residual block at inference: batch norm by running statistics, residual, ReLU."""

import torch
import torch.nn.functional as F

FAMILY = "normalisation"
DIFFICULTY = 1
ORIGIN = "ResNet-50"

# ResNet-50: 256 channels at 56 by 56 in the first stage, 2048 at 7 by 7 in the last.


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(channels)

    def forward(self, x, residual):
        return F.relu(self.norm(x) + residual)


def get_inputs(batch=1, channels=256, size=28):
    return [torch.randn(batch, channels, size, size), torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=256):
    return [channels]


def get_workloads():
    return [
        {
            "name": "resnet-50 stage 1, one image",
            "inputs": {"batch": 1, "channels": 256, "size": 56},
            "init": {"channels": 256},
        },
        {
            "name": "resnet-50 stage 4, 4 images",
            "inputs": {"batch": 4, "channels": 2048, "size": 7},
            "init": {"channels": 2048},
        },
        {
            "name": "gpu: resnet-50 stage 1, 64 images",
            "inputs": {"batch": 64, "channels": 256, "size": 56},
            "init": {"channels": 256},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 37, "size": 13},
            "init": {"channels": 37},
            "held_out": True,
        },
    ]
