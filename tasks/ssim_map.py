"""Structural similarity of two images at every pixel, with a Gaussian window of 11 by 11."""

import torch
import torch.nn.functional as F

FAMILY = "image"
DIFFICULTY = 3
ORIGIN = "3D Gaussian Splatting"
STRUCTURE = "pixels in [0, 1]"

# 3D Gaussian splatting trains on it at 1600 px; images here are as in CelebA and DIV2K.


class Model(torch.nn.Module):
    def __init__(self, channels):
        super().__init__()
        line = torch.exp(-((torch.arange(11.0) - 5.0) ** 2) / (2 * 1.5**2))
        line = line / line.sum()
        self.register_buffer("window", torch.outer(line, line).expand(channels, 1, 11, 11).clone())

    def forward(self, a, b):
        def blur(x):
            return F.conv2d(x, self.window, padding=5, groups=x.shape[1])

        mean_a, mean_b = blur(a), blur(b)
        spread_a = blur(a * a) - mean_a * mean_a
        spread_b = blur(b * b) - mean_b * mean_b
        shared = blur(a * b) - mean_a * mean_b
        light = (2 * mean_a * mean_b + 1e-4) / (mean_a.square() + mean_b.square() + 1e-4)
        return light * (2 * shared + 9e-4) / (spread_a + spread_b + 9e-4)


def get_inputs(batch=1, channels=3, size=64):
    image = torch.rand(batch, channels, size, size)
    noise = 0.3 * torch.randn(batch, channels, size, size)
    return [image, torch.clamp(image + noise, 0.0, 1.0)]


def get_init_inputs(channels=3):
    return [channels]


def get_workloads():
    return [
        {
            "name": "celeba, 64 px",
            "inputs": {"batch": 1, "channels": 3, "size": 64},
            "init": {"channels": 3},
        },
        {
            "name": "mnist, 16 images",
            "inputs": {"batch": 16, "channels": 1, "size": 28},
            "init": {"channels": 1},
        },
        {
            "name": "gpu: div2k patches of 256 px, 64 images",
            "inputs": {"batch": 64, "channels": 3, "size": 256},
            "init": {"channels": 3},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 2, "size": 37},
            "init": {"channels": 2},
            "held_out": True,
        },
    ]
