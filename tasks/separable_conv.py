"""Depthwise separable convolution: 3 by 3 per channel, 1 by 1 across, batch norm and ReLU6 each."""

import torch
import torch.nn.functional as F

FAMILY = "transposed convolution"
DIFFICULTY = 3
ORIGIN = "MobileNet-v1"

# MobileNet-v1: 64 to 128 channels at 56 by 56, 512 to 512 at 14 by 14.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.deep = torch.nn.Conv2d(inputs, inputs, 3, padding=1, groups=inputs, bias=False)
        self.deep_norm = torch.nn.BatchNorm2d(inputs)
        self.across = torch.nn.Conv2d(inputs, outputs, 1, bias=False)
        self.across_norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        x = F.relu6(self.deep_norm(self.deep(x)))
        return F.relu6(self.across_norm(self.across(x)))


def get_inputs(batch=1, channels=64, size=28):
    return [4.0 * torch.randn(batch, channels, size, size)]


def get_init_inputs(inputs=64, outputs=128):
    return [inputs, outputs]


def get_workloads():
    return [
        {
            "name": "mobilenet-v1 at 112 px, 64 to 128",
            "inputs": {"batch": 1, "channels": 64, "size": 28},
            "init": {"inputs": 64, "outputs": 128},
        },
        {
            "name": "mobilenet-v1, 512 to 512 at 7 by 7",
            "inputs": {"batch": 1, "channels": 512, "size": 7},
            "init": {"inputs": 512, "outputs": 512},
        },
        {
            "name": "gpu: mobilenet-v1, 64 to 128, 64 images",
            "inputs": {"batch": 64, "channels": 64, "size": 56},
            "init": {"inputs": 64, "outputs": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 23, "size": 15},
            "init": {"inputs": 23, "outputs": 37},
            "held_out": True,
        },
    ]
