"""Causal attention of all heads: scaled scores, masked to the past, softmax, weighted values."""

import math

import torch

FAMILY = "attention"
DIFFICULTY = 3
ORIGIN = "GPT-2 124M"
STRUCTURE = "queries and keys of unit scale"

# GPT-2 124M: 12 heads of 64, up to 1024 tokens.
# Their scale is promised: scores of hundreds would magnify rounding and hide half precision.


class Model(torch.nn.Module):
    def forward(self, q, k, v):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        length = scores.shape[-1]
        future = torch.ones(length, length, dtype=torch.bool, device=q.device).triu(1)
        return torch.softmax(scores.masked_fill(future, -math.inf), dim=-1) @ v


def get_inputs(batch=1, heads=12, length=128, dim=64):
    return [torch.randn(batch, heads, length, dim) for _ in range(3)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "gpt-2 124m, 128 tokens",
            "inputs": {"batch": 1, "heads": 12, "length": 128, "dim": 64},
        },
        {
            "name": "smollm-135m, 8 prompts of 48 tokens",
            "inputs": {"batch": 8, "heads": 9, "length": 48, "dim": 64},
        },
        {
            "name": "gpu: gpt-2 124m, 1024 tokens, batch 8",
            "inputs": {"batch": 8, "heads": 12, "length": 1024, "dim": 64},
        },
        {
            "name": "gpu: llama-3 8b in bfloat16, 2048 tokens",
            "inputs": {"batch": 1, "heads": 32, "length": 2048, "dim": 128},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 2, "heads": 3, "length": 53, "dim": 37},
            "held_out": True,
        },
    ]
