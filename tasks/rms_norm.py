"""RMSNorm as in Llama: every row over its root mean square, times a learned weight."""

import torch

FAMILY = "normalisation"
DIFFICULTY = 1
ORIGIN = "Llama-3 8B"


class Model(torch.nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = torch.nn.Parameter(torch.ones(dim))

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return x * scale * self.weight


def get_inputs(rows=128, dim=4096):
    return [torch.randn(rows, dim)]


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
            "name": "llama-1b prefill, 512 rows",
            "inputs": {"rows": 512, "dim": 2048},
            "init": {"dim": 2048},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 33, "dim": 771},
            "init": {"dim": 771},
            "held_out": True,
        },
    ]
