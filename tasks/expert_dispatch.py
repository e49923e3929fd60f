"""Tokens sorted by expert, so that each expert finds its own in one piece; order is stable."""

import torch

FAMILY = "routing"
DIFFICULTY = 2
ORIGIN = "Mixtral 8x7B"

# Mixtral 8x7B: 2 of 8 experts per token, width 4096.


class Model(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.experts = experts

    def forward(self, chosen, tokens):
        flat = chosen.flatten()
        order = torch.argsort(flat, stable=True)
        sizes = (flat[:, None] == torch.arange(self.experts, device=flat.device)).sum(dim=0)
        return tokens[order // chosen.shape[1]], order, sizes


def get_inputs(tokens=128, experts=8, each=2, dim=1024):
    chosen = torch.rand(tokens, experts).topk(each, dim=-1).indices
    return [chosen, torch.randn(tokens, dim)]


def get_init_inputs(experts=8):
    return [experts]


def get_workloads():
    return [
        {
            "name": "mixtral 8x7b, 64 tokens",
            "inputs": {"tokens": 64, "experts": 8, "each": 2, "dim": 4096},
            "init": {"experts": 8},
        },
        {
            "name": "olmoe 1b-7b, 64 tokens, 8 of 64 experts",
            "inputs": {"tokens": 64, "experts": 64, "each": 8, "dim": 512},
            "init": {"experts": 64},
        },
        {
            "name": "gpu: mixtral 8x7b, 4096 tokens",
            "inputs": {"tokens": 4096, "experts": 8, "each": 2, "dim": 4096},
            "init": {"experts": 8},
        },
        {
            "name": "gpu: deepseek-v3 in bfloat16, 1024 tokens",
            "inputs": {"tokens": 1024, "experts": 256, "each": 8, "dim": 7168},
            "init": {"experts": 256},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 37, "experts": 11, "each": 3, "dim": 77},
            "init": {"experts": 11},
            "held_out": True,
        },
    ]
