"""Sampling probabilities at temperature 0.8 of the 50 likeliest tokens; all others get zero."""

import math

import torch

FAMILY = "sorting"
DIFFICULTY = 2
ORIGIN = "GPT-2 124M"

# GPT-2 124M: a vocabulary of 50257, top-k of 50.


class Model(torch.nn.Module):
    def forward(self, logits):
        least = torch.topk(logits, 50, dim=-1).values[:, -1:]
        kept = logits.masked_fill(logits < least, -math.inf)
        return torch.softmax(kept / 0.8, dim=-1)


def get_inputs(rows=4, tokens=50257):
    return [2.0 * torch.randn(rows, tokens)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "gpt-2, 4 streams",
            "inputs": {"rows": 4, "tokens": 50257},
        },
        {
            "name": "codebook of 1024, 64 streams",
            "inputs": {"rows": 64, "tokens": 1024},
        },
        {
            "name": "gpu: gpt-2, 256 streams",
            "inputs": {"rows": 256, "tokens": 50257},
        },
        {
            "name": "gpu: llama-3 8b, 64 streams",
            "inputs": {"rows": 64, "tokens": 128256},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 13, "tokens": 1237},
            "held_out": True,
        },
    ]
