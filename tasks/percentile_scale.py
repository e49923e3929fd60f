"""Rows scaled so that the 99th percentile of their magnitudes is one, clipped beyond."""

import torch

FAMILY = "sorting"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B, calibration"

# Calibration for 8 bits on Llama-3 8B: activations of 4096 per token, outliers clipped.


class Model(torch.nn.Module):
    def forward(self, x):
        rank = (99 * x.shape[-1] + 99) // 100
        limit = torch.kthvalue(x.abs(), rank, dim=-1, keepdim=True).values
        return torch.clamp(x / limit, -1.0, 1.0), limit


def get_inputs(rows=32, dim=4096):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-3 8b, 16 tokens",
            "inputs": {"rows": 16, "dim": 4096},
        },
        {
            "name": "bert-base, 64 tokens",
            "inputs": {"rows": 64, "dim": 768},
        },
        {
            "name": "gpu: llama-3 8b, 2048 tokens",
            "inputs": {"rows": 2048, "dim": 4096},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 19, "dim": 607},
            "held_out": True,
        },
    ]
