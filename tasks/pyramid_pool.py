"""Averages of an image in 1, 2 by 2, 3 by 3 and 6 by 6 bins, side by side."""

import torch
import torch.nn.functional as F

FAMILY = "pooling"
DIFFICULTY = 2
ORIGIN = "PSPNet"

# PSPNet on ResNet-50: 2048 channels at 60 by 60 for 473 px.


class Model(torch.nn.Module):
    def forward(self, x):
        levels = [F.adaptive_avg_pool2d(x, bins).flatten(2) for bins in (1, 2, 3, 6)]
        return torch.cat(levels, dim=2)


def get_inputs(batch=1, channels=256, size=30):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "an eighth of pspnet, one image",
            "inputs": {"batch": 1, "channels": 256, "size": 30},
        },
        {
            "name": "spp-net conv5, 13 by 13",
            "inputs": {"batch": 4, "channels": 256, "size": 13},
        },
        {
            "name": "gpu: pspnet, 8 images",
            "inputs": {"batch": 8, "channels": 2048, "size": 60},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 31, "size": 17},
            "held_out": True,
        },
    ]
