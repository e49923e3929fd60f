"""A coarse map enlarged twice by bilinear interpolation and added to a finer one."""

import torch
import torch.nn.functional as F

FAMILY = "image"
DIFFICULTY = 1
ORIGIN = "UPerNet on Swin-T"

# UPerNet on Swin-T for ADE20K at 512 px: 512 channels at 16, 32, 64 and 128 squared.


class Model(torch.nn.Module):
    def forward(self, coarse, fine):
        return fine + F.interpolate(coarse, scale_factor=2.0, mode="bilinear", align_corners=False)


def get_inputs(batch=1, channels=256, size=16):
    return [
        torch.randn(batch, channels, size, size),
        torch.randn(batch, channels, 2 * size, 2 * size),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "upernet, half its channels, 16 to 32",
            "inputs": {"batch": 1, "channels": 256, "size": 16},
        },
        {
            "name": "upernet, few channels, 32 to 64",
            "inputs": {"batch": 1, "channels": 64, "size": 32},
        },
        {
            "name": "gpu: upernet, 64 to 128, 8 images",
            "inputs": {"batch": 8, "channels": 512, "size": 64},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 13, "size": 19},
            "held_out": True,
        },
    ]
