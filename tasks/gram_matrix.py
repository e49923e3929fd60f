"""Products of all pairs of channels over an image, and their distance from a style's: symmetric."""

import torch

FAMILY = "matmul"
DIFFICULTY = 2
ORIGIN = "VGG-19 style transfer"

# VGG-19 for neural style: 64 channels at 256 by 256 up to 512 at 32 by 32.


class Model(torch.nn.Module):
    def forward(self, features, style):
        flat = features.flatten(2)
        gram = flat @ flat.transpose(1, 2) / flat.shape[2]
        return gram, (gram - style).square().mean(dim=(1, 2))


def get_inputs(batch=1, channels=64, size=32):
    return [torch.randn(batch, channels, size, size), torch.randn(batch, channels, channels)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "vgg-19 relu1_1, 64 px",
            "inputs": {"batch": 1, "channels": 64, "size": 64},
        },
        {
            "name": "vgg-19 relu3_1, 128 px",
            "inputs": {"batch": 1, "channels": 256, "size": 16},
        },
        {
            "name": "gpu: vgg-19 relu3_1, 512 px, batch 8",
            "inputs": {"batch": 8, "channels": 256, "size": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 37, "size": 11},
            "held_out": True,
        },
    ]
