"""One new token attends to a cache of keys and values that groups of query heads share."""

import math

import torch

FAMILY = "attention"
DIFFICULTY = 3
ORIGIN = "Llama-3 8B"

# Llama-3 8B: 32 query heads over 8 key heads of 128; Qwen2.5 0.5B: 14 over 2 of 64.


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        grouped = q.unflatten(1, (k.shape[1], -1))
        scores = grouped @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return (torch.softmax(scores, dim=-1) @ v).flatten(1, 2)


def get_inputs(batch=1, heads=32, groups=8, length=512, dim=128):
    return [
        torch.randn(batch, heads, dim),
        torch.randn(batch, groups, length, dim),
        torch.randn(batch, groups, length, dim),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-3 8b, cache of 256",
            "inputs": {"batch": 1, "heads": 32, "groups": 8, "length": 256, "dim": 128},
        },
        {
            "name": "qwen2.5 0.5b, 4 streams, cache of 512",
            "inputs": {"batch": 4, "heads": 14, "groups": 2, "length": 512, "dim": 64},
        },
        {
            "name": "gpu: llama-3 8b, 16 streams, cache of 4096",
            "inputs": {"batch": 16, "heads": 32, "groups": 8, "length": 4096, "dim": 128},
        },
        {
            "name": "gpu: llama-3 8b in bfloat16, 1 stream, cache of 32768",
            "inputs": {"batch": 1, "heads": 32, "groups": 8, "length": 32768, "dim": 128},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "heads": 6, "groups": 3, "length": 101, "dim": 41},
            "held_out": True,
        },
    ]
