"""Rows to 8-bit integers by their own largest magnitude, with the scale to undo it."""

import torch

FAMILY = "quantisation"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B in W8A8"

# SmoothQuant W8A8 on Llama-3 8B: activations per token. Codes are compared exactly, so divide
# by the scale as written; its reciprocal rounds a few elements to the other side.


class Model(torch.nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=-1, keepdim=True) / 127.0
        return torch.round(x / scale).to(torch.int8), scale


def get_inputs(rows=64, dim=4096):
    return [torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-3 8b, 64 tokens",
            "inputs": {"rows": 64, "dim": 4096},
        },
        {
            "name": "bert-base, 256 tokens",
            "inputs": {"rows": 256, "dim": 768},
        },
        {
            "name": "gpu: llama-3 8b, 4096 tokens",
            "inputs": {"rows": 4096, "dim": 4096},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 29, "dim": 515},
            "held_out": True,
        },
    ]
