"""Many small products: heads of attention at short context."""

import torch

FAMILY = "batched matmul"
DIFFICULTY = 1
ORIGIN = "ViT-B/16 attention"


class Model(torch.nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


def get_inputs(batch=96, m=32, k=64, n=32):
    return [torch.randn(batch, m, k), torch.randn(batch, k, n)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "12 heads, batch 8, 32 tokens",
            "inputs": {"batch": 96, "m": 32, "k": 64, "n": 32},
        },
        {
            "name": "many of 16 by 16",
            "inputs": {"batch": 1024, "m": 16, "k": 16, "n": 16},
        },
        {
            "name": "gpu: 32 heads, batch 64, 64 tokens",
            "inputs": {"batch": 2048, "m": 64, "k": 64, "n": 64},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 13, "m": 7, "k": 19, "n": 5},
            "held_out": True,
        },
    ]
