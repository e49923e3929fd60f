"""Mean and variance of every channel over batch and image, as batch norm takes them in training."""

import torch

FAMILY = "reduction"
DIFFICULTY = 2
ORIGIN = "ResNet-50"

# ResNet-50: 64 channels at 56 by 56 after the stem, 256 after the first stage.


class Model(torch.nn.Module):
    def forward(self, x):
        mean = x.mean(dim=(0, 2, 3))
        variance = (x - mean[:, None, None]).square().mean(dim=(0, 2, 3))
        return mean, variance


def get_inputs(batch=4, channels=64, size=28):
    spread, shift = torch.rand(channels, 1, 1) + 0.5, torch.randn(channels, 1, 1)
    return [torch.randn(batch, channels, size, size) * spread + shift]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "resnet-50 stage 1, 2 images",
            "inputs": {"batch": 2, "channels": 64, "size": 56},
        },
        {
            "name": "resnet-50 stage 3, 4 images",
            "inputs": {"batch": 4, "channels": 256, "size": 14},
        },
        {
            "name": "gpu: resnet-50 stage 1, 128 images",
            "inputs": {"batch": 128, "channels": 256, "size": 56},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 37, "size": 13},
            "held_out": True,
        },
    ]
