"""Upsampling in a vocoder: leaky ReLU, then a transposed convolution with overlapping windows."""

import torch
import torch.nn.functional as F

FAMILY = "transposed convolution"
DIFFICULTY = 2
ORIGIN = "HiFi-GAN V1"

# HiFi-GAN V1: 512 to 256 channels, width 16, stride 8; later 128 to 64, width 4, stride 2.


class Model(torch.nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv = torch.nn.ConvTranspose1d(
            inputs, outputs, 2 * stride, stride=stride, padding=stride // 2
        )

    def forward(self, x):
        return self.conv(F.leaky_relu(x, 0.1))


def get_inputs(batch=1, channels=128, length=256):
    return [torch.randn(batch, channels, length)]


def get_init_inputs(inputs=128, outputs=64, stride=2):
    return [inputs, outputs, stride]


def get_workloads():
    return [
        {
            "name": "hifi-gan v1, 128 to 64, stride 2",
            "inputs": {"batch": 1, "channels": 128, "length": 256},
            "init": {"inputs": 128, "outputs": 64, "stride": 2},
        },
        {
            "name": "hifi-gan v2, 128 to 64, stride 8",
            "inputs": {"batch": 1, "channels": 128, "length": 32},
            "init": {"inputs": 128, "outputs": 64, "stride": 8},
        },
        {
            "name": "gpu: hifi-gan v1, 512 to 256, stride 8, 16 clips",
            "inputs": {"batch": 16, "channels": 512, "length": 256},
            "init": {"inputs": 512, "outputs": 256, "stride": 8},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 19, "length": 41},
            "init": {"inputs": 19, "outputs": 7, "stride": 4},
            "held_out": True,
        },
    ]
