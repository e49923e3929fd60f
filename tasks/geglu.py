"""GEGLU: one half of a projection times the exact GELU of the other half."""

import torch
import torch.nn.functional as F

FAMILY = "activation"
DIFFICULTY = 1
ORIGIN = "Stable Diffusion 1.5 UNet"

# Stable Diffusion 1.5: the feed-forward of a spatial transformer at width 320 has 2 by 1280.


class Model(torch.nn.Module):
    def forward(self, x):
        value, gate = x.chunk(2, dim=-1)
        return value * F.gelu(gate)


def get_inputs(rows=256, dim=1280):
    return [torch.randn(rows, 2 * dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "sd 1.5 at 16 by 16, 256 tokens",
            "inputs": {"rows": 256, "dim": 1280},
        },
        {
            "name": "sd 1.5 middle block, 64 tokens",
            "inputs": {"rows": 64, "dim": 5120},
        },
        {
            "name": "gpu: sd 1.5 at 64 by 64, batch 8",
            "inputs": {"rows": 32768, "dim": 1280},
        },
        {
            "name": "gpu: sdxl in bfloat16, 4096 tokens",
            "inputs": {"rows": 4096, "dim": 5120},
            "dtype": "bfloat16",
        },
        {
            "name": "odd width",
            "inputs": {"rows": 29, "dim": 1009},
            "held_out": True,
        },
    ]
