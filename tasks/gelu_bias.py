"""GELU behind a bias, as the first half of a transformer's MLP leaves it."""

import torch
import torch.nn.functional as F

FAMILY = "activation"
DIFFICULTY = 1
ORIGIN = "GPT-2 124M"


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        return F.gelu(x + self.bias)


def get_inputs(rows=128, dim=3072):
    return [torch.randn(rows, dim)]


def get_init_inputs(dim=3072):
    return [dim]


def get_workloads():
    return [
        {
            "name": "gpt2 mlp, 128 tokens",
            "inputs": {"rows": 128, "dim": 3072},
            "init": {"dim": 3072},
        },
        {
            "name": "bert-large mlp, 96 tokens",
            "inputs": {"rows": 96, "dim": 4096},
            "init": {"dim": 4096},
        },
        {
            "name": "gpu: gpt2-xl mlp, 2048 tokens",
            "inputs": {"rows": 2048, "dim": 6400},
            "init": {"dim": 6400},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 19, "dim": 1003},
            "init": {"dim": 1003},
            "held_out": True,
        },
    ]
