"""Softmax over the last dimension: attention scores and vocabularies."""

import torch

FAMILY = "attention"
DIFFICULTY = 1
ORIGIN = "Llama-2 7B"


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs(rows=128, dim=1024):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "attention scores, 512 queries",
            "inputs": {"rows": 512, "dim": 1024},
        },
        {
            "name": "vocabulary of 32000, 16 tokens",
            "inputs": {"rows": 16, "dim": 32000},
        },
        {
            "name": "gpu: attention scores, 8192 queries",
            "inputs": {"rows": 8192, "dim": 2048},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 37, "dim": 919},
            "held_out": True,
        },
    ]
