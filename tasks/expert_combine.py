"""Experts' outputs brought back to their tokens and summed by weight, plus the residual."""

import torch

FAMILY = "routing"
DIFFICULTY = 1
ORIGIN = "Mixtral 8x7B"

# Mixtral 8x7B: 2 experts per token, width 4096; rows lie in the experts' order.


class Model(torch.nn.Module):
    def forward(self, places, weights, residual, rows):
        return residual + (rows[places] * weights.unsqueeze(-1)).sum(dim=1)


def get_inputs(tokens=64, each=2, dim=4096):
    return [
        torch.randperm(tokens * each).view(tokens, each),
        torch.rand(tokens, each),
        torch.randn(tokens, dim),
        torch.randn(tokens * each, dim),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "mixtral 8x7b, 64 tokens",
            "inputs": {"tokens": 64, "each": 2, "dim": 4096},
        },
        {
            "name": "olmoe 1b-7b, 128 tokens, 8 each",
            "inputs": {"tokens": 128, "each": 8, "dim": 512},
        },
        {
            "name": "gpu: mixtral 8x7b, 4096 tokens",
            "inputs": {"tokens": 4096, "each": 2, "dim": 4096},
        },
        {
            "name": "gpu: deepseek-v3 in bfloat16, 1024 tokens",
            "inputs": {"tokens": 1024, "each": 8, "dim": 7168},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 37, "each": 3, "dim": 131},
            "held_out": True,
        },
    ]
