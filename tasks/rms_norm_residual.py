"""RMS norm of a residual sum, as between the blocks of Llama."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B"


class Model(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x, residual):
        x = x + residual
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight


def get_inputs(rows=128, dim=4096):
    return [torch.randn(rows, dim), torch.randn(rows, dim)]


def get_init_inputs(dim=4096):
    return [dim]


def get_workloads():
    return [
        {
            "name": "llama-8b decode, 128 rows",
            "inputs": {"rows": 128, "dim": 4096},
            "init": {"dim": 4096},
        },
        {
            "name": "llama-1b prefill, 256 rows",
            "inputs": {"rows": 256, "dim": 2048},
            "init": {"dim": 2048},
        },
        {
            "name": "gpu: llama-8b prefill, 2048 rows",
            "inputs": {"rows": 2048, "dim": 4096},
            "init": {"dim": 4096},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 33, "dim": 771},
            "init": {"dim": 771},
            "held_out": True,
        },
    ]
