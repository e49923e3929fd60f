"""Scaled attention scores, padding masked away by each sequence's length, then softmax."""

import math

import torch

FAMILY = "attention"
DIFFICULTY = 2
ORIGIN = "BERT-base"

# BERT-base: 12 heads of 64; sentences of a batch are padded to the longest.


class Model(torch.nn.Module):
    def forward(self, scores, lengths):
        padding = torch.arange(scores.shape[-1], device=scores.device) >= lengths[:, None]
        scores = (scores / 8.0).masked_fill(padding[:, None, None, :], -math.inf)
        return torch.softmax(scores, dim=-1)


def get_inputs(batch=4, heads=12, length=64):
    lengths = torch.randint(length // 4, length + 1, (batch,))
    return [8.0 * torch.randn(batch, heads, length, length), lengths]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "bert-base, 4 sentences of up to 64",
            "inputs": {"batch": 4, "heads": 12, "length": 64},
        },
        {
            "name": "bert-base, 2 passages of up to 160",
            "inputs": {"batch": 2, "heads": 12, "length": 160},
        },
        {
            "name": "gpu: bert-base, 64 passages of up to 512",
            "inputs": {"batch": 64, "heads": 12, "length": 512},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 5, "heads": 3, "length": 47},
            "held_out": True,
        },
    ]
