"""The log of the summed exponentials of each row."""

import torch

FAMILY = "reduction"
DIFFICULTY = 1
ORIGIN = "GPT-2 124M"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.logsumexp(x, dim=-1)


def get_inputs(rows=128, dim=4096):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "router of 4096, 128 rows",
            "inputs": {"rows": 128, "dim": 4096},
        },
        {
            "name": "vocabulary of 50257, 8 tokens",
            "inputs": {"rows": 8, "dim": 50257},
        },
        {
            "name": "gpu: vocabulary of 50257, 256 tokens",
            "inputs": {"rows": 256, "dim": 50257},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 31, "dim": 997},
            "held_out": True,
        },
    ]
