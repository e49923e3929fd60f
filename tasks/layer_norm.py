"""Layer norm with weight and bias."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 1
ORIGIN = "BERT-base"


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        return self.norm(x)


def get_inputs(rows=512, dim=768):
    return [torch.randn(rows, dim)]


def get_init_inputs(dim=768):
    return [dim]


def get_workloads():
    return [
        {
            "name": "bert-base, 512 tokens",
            "inputs": {"rows": 512, "dim": 768},
            "init": {"dim": 768},
        },
        {
            "name": "vit-large, 577 tokens",
            "inputs": {"rows": 577, "dim": 1024},
            "init": {"dim": 1024},
        },
        {
            "name": "gpu: gpt2-xl, 8192 tokens",
            "inputs": {"rows": 8192, "dim": 1600},
            "init": {"dim": 1600},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 41, "dim": 765},
            "init": {"dim": 765},
            "held_out": True,
        },
    ]
