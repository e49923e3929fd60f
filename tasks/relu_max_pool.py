"""ReLU, then the maximum of 3 by 3 neighbourhoods with stride 2."""

import torch
import torch.nn.functional as F

FAMILY = "pooling"
DIFFICULTY = 1
ORIGIN = "ResNet-50"

# ResNet-50: the end of the stem, 64 channels from 112 by 112 to 56 by 56.


class Model(torch.nn.Module):
    def forward(self, x):
        return F.max_pool2d(F.relu(x), 3, stride=2, padding=1)


def get_inputs(batch=1, channels=64, size=56):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "resnet-50 stem at 112 px",
            "inputs": {"batch": 1, "channels": 64, "size": 56},
        },
        {
            "name": "googlenet, 192 channels at 28 by 28",
            "inputs": {"batch": 2, "channels": 192, "size": 28},
        },
        {
            "name": "gpu: resnet-50 stem, 64 images",
            "inputs": {"batch": 64, "channels": 64, "size": 112},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 19, "size": 37},
            "held_out": True,
        },
    ]
