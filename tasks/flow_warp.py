"""An image pulled back along an optical flow, bilinear between pixels, zero outside."""

import torch
import torch.nn.functional as F

FAMILY = "image"
DIFFICULTY = 2
ORIGIN = "RAFT"

# RAFT on Sintel: features of 256 channels at 55 by 128, frames of 436 by 1024.


class Model(torch.nn.Module):
    def forward(self, image, flow):
        height, width = image.shape[2:]
        rows = torch.arange(height, device=image.device, dtype=image.dtype)[:, None]
        columns = torch.arange(width, device=image.device, dtype=image.dtype)
        x = (columns + flow[:, 0]) * (2.0 / (width - 1)) - 1.0
        y = (rows + flow[:, 1]) * (2.0 / (height - 1)) - 1.0
        return F.grid_sample(image, torch.stack((x, y), dim=-1), align_corners=True)


def get_inputs(batch=1, channels=32, height=55, width=128):
    return [
        torch.randn(batch, channels, height, width),
        4.0 * torch.randn(batch, 2, height, width),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "raft on sintel, 32 of its channels",
            "inputs": {"batch": 1, "channels": 32, "height": 55, "width": 128},
        },
        {
            "name": "a small frame of three colours",
            "inputs": {"batch": 2, "channels": 3, "height": 96, "width": 128},
        },
        {
            "name": "gpu: raft on sintel, all channels, 8 pairs",
            "inputs": {"batch": 8, "channels": 256, "height": 55, "width": 128},
        },
        {
            "name": "gpu: sintel frames, 16 pairs",
            "inputs": {"batch": 16, "channels": 3, "height": 436, "width": 1024},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 5, "height": 23, "width": 31},
            "held_out": True,
        },
    ]
