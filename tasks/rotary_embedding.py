"""Rotary position embedding: halves of every head rotated by an angle that grows with position."""

import torch

FAMILY = "elementwise"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B"

# Llama-3 8B: heads of 128, base 500000; the cache of angles comes in as two tables.


class Model(torch.nn.Module):
    def forward(self, x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def get_inputs(batch=1, heads=32, length=64, dim=128):
    frequencies = 500000.0 ** (-torch.arange(0, dim, 2) / dim)
    positions = torch.arange(length) + torch.randint(1, 4096, (1,))
    angles = positions[:, None] * frequencies
    return [torch.randn(batch, heads, length, dim), torch.cos(angles), torch.sin(angles)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-3 8b queries, 64 tokens",
            "inputs": {"batch": 1, "heads": 32, "length": 64, "dim": 128},
        },
        {
            "name": "llama-3 8b keys, 256 tokens",
            "inputs": {"batch": 1, "heads": 8, "length": 256, "dim": 128},
        },
        {
            "name": "gpu: llama-3 8b queries, 4096 tokens",
            "inputs": {"batch": 1, "heads": 32, "length": 4096, "dim": 128},
        },
        {
            "name": "gpu: llama-3 8b keys in bfloat16, 8 by 2048 tokens",
            "inputs": {"batch": 8, "heads": 8, "length": 2048, "dim": 128},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "heads": 5, "length": 37, "dim": 58},
            "held_out": True,
        },
    ]
