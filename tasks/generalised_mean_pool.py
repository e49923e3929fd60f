"""Generalised mean over an image with a learned power, then unit length, for retrieval."""

import torch

FAMILY = "pooling"
DIFFICULTY = 2
ORIGIN = "ResNet-101 GeM"

# GeM on ResNet-101: 2048 channels, 32 by 32 for 1024 px; the power starts at 3.


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.power = torch.nn.Parameter(torch.full((1,), 3.0))

    def forward(self, x):
        pooled = x.clamp(min=1e-6).pow(self.power).mean(dim=(2, 3)).pow(1.0 / self.power)
        return pooled / torch.linalg.vector_norm(pooled, dim=1, keepdim=True)


def get_inputs(batch=1, channels=2048, size=7):
    return [torch.randn(batch, channels, size, size)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "resnet-101 at 224 px",
            "inputs": {"batch": 1, "channels": 2048, "size": 7},
        },
        {
            "name": "resnet-18 at 448 px",
            "inputs": {"batch": 2, "channels": 512, "size": 14},
        },
        {
            "name": "gpu: resnet-101 at 1024 px, 16 images",
            "inputs": {"batch": 16, "channels": 2048, "size": 32},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "channels": 61, "size": 11},
            "held_out": True,
        },
    ]
