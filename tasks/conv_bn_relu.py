"""A 3 by 3 convolution, batch norm by running statistics, ReLU."""

import torch
import torch.nn.functional as F

FAMILY = "convolution"
DIFFICULTY = 2
ORIGIN = "ResNet-50"

# ResNet-50: 64 channels at 56 by 56, 128 at 28, 256 at 14, 512 at 7.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv = torch.nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(outputs)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


def get_inputs(batch=1, channels=64, size=28):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(inputs=64, outputs=64, stride=1):
    return [inputs, outputs, stride]


def get_workloads():
    return [
        {
            "name": "resnet-50 stage 1 at 112 px",
            "inputs": {"batch": 1, "channels": 64, "size": 28},
            "init": {"inputs": 64, "outputs": 64, "stride": 1},
        },
        {
            "name": "resnet-50 stage 3, with stride",
            "inputs": {"batch": 1, "channels": 128, "size": 28},
            "init": {"inputs": 128, "outputs": 128, "stride": 2},
        },
        {
            "name": "gpu: resnet-50 stage 1, 32 images",
            "inputs": {"batch": 32, "channels": 64, "size": 56},
            "init": {"inputs": 64, "outputs": 64, "stride": 1},
        },
        {
            "name": "gpu: resnet-50 stage 4, 64 images",
            "inputs": {"batch": 64, "channels": 512, "size": 7},
            "init": {"inputs": 512, "outputs": 512, "stride": 1},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 13, "size": 17},
            "init": {"inputs": 13, "outputs": 19, "stride": 2},
            "held_out": True,
        },
    ]
