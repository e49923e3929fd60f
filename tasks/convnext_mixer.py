"""A 7 by 7 depthwise convolution, then layer norm over channels in channels-last order."""

import torch

FAMILY = "transposed convolution"
DIFFICULTY = 3
ORIGIN = "ConvNeXt-T"

# ConvNeXt-T: 96 channels at 56 by 56, 192 at 28, 384 at 14, 768 at 7.


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = torch.nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = torch.nn.LayerNorm(channels, eps=1e-6)

    def forward(self, x):
        return self.norm(self.conv(x).permute(0, 2, 3, 1))


def get_inputs(batch=1, channels=96, size=28):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=96):
    return [channels]


def get_workloads():
    return [
        {
            "name": "convnext-t stage 1 at 112 px",
            "inputs": {"batch": 1, "channels": 96, "size": 28},
            "init": {"channels": 96},
        },
        {
            "name": "convnext-t stage 3, one image",
            "inputs": {"batch": 1, "channels": 384, "size": 14},
            "init": {"channels": 384},
        },
        {
            "name": "gpu: convnext-t stage 1, 32 images",
            "inputs": {"batch": 32, "channels": 96, "size": 56},
            "init": {"channels": 96},
        },
        {
            "name": "gpu: convnext-t stage 3, 64 images",
            "inputs": {"batch": 64, "channels": 384, "size": 14},
            "init": {"channels": 384},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 29, "size": 13},
            "init": {"channels": 29},
            "held_out": True,
        },
    ]
