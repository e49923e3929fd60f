"""A transposed convolution that doubles an image, batch norm by running statistics, ReLU."""

import torch
import torch.nn.functional as F

FAMILY = "transposed convolution"
DIFFICULTY = 2
ORIGIN = "DCGAN"

# DCGAN: 4 by 4 with stride 2, from 512 channels at 4 by 4 down to 64 at 32 by 32.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def get_inputs(batch=1, channels=128, size=16):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(inputs=128, outputs=64):
    return [inputs, outputs]


def get_workloads():
    return [
        {
            "name": "dcgan, 128 to 64 at 16 by 16",
            "inputs": {"batch": 1, "channels": 128, "size": 16},
            "init": {"inputs": 128, "outputs": 64},
        },
        {
            "name": "dcgan, 256 to 128 at 8 by 8",
            "inputs": {"batch": 2, "channels": 256, "size": 8},
            "init": {"inputs": 256, "outputs": 128},
        },
        {
            "name": "gpu: dcgan, 128 to 64, 128 images",
            "inputs": {"batch": 128, "channels": 128, "size": 16},
            "init": {"inputs": 128, "outputs": 64},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 17, "size": 9},
            "init": {"inputs": 17, "outputs": 11},
            "held_out": True,
        },
    ]
