"""Group norm with weight and bias, then SiLU, as before every convolution of a diffusion UNet."""

import torch
import torch.nn.functional as F

FAMILY = "normalisation"
DIFFICULTY = 2
ORIGIN = "Stable Diffusion 1.5 UNet"

# Stable Diffusion 1.5: 32 groups; 320 channels at 64 by 64 down to 1280 at 8 by 8.


class Model(torch.nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm = torch.nn.GroupNorm(groups, channels)

    def forward(self, x):
        return F.silu(self.norm(x))


def get_inputs(batch=1, channels=320, size=32):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs(channels=320, groups=32):
    return [channels, groups]


def get_workloads():
    return [
        {
            "name": "sd 1.5, 320 channels at 32 by 32",
            "inputs": {"batch": 1, "channels": 320, "size": 32},
            "init": {"channels": 320, "groups": 32},
        },
        {
            "name": "sd 1.5 middle block, 1280 channels at 8 by 8",
            "inputs": {"batch": 2, "channels": 1280, "size": 8},
            "init": {"channels": 1280, "groups": 32},
        },
        {
            "name": "gpu: sd 1.5, 320 channels at 64 by 64, batch 16",
            "inputs": {"batch": 16, "channels": 320, "size": 64},
            "init": {"channels": 320, "groups": 32},
        },
        {
            "name": "gpu: sdxl in bfloat16, 640 channels at 64 by 64",
            "inputs": {"batch": 8, "channels": 640, "size": 64},
            "init": {"channels": 640, "groups": 32},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 35, "size": 11},
            "init": {"channels": 35, "groups": 7},
            "held_out": True,
        },
    ]
