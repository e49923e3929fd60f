"""Blocks of 32 values to 8-bit integers that share a power of two, as in the MX formats."""

import torch

FAMILY = "quantisation"
DIFFICULTY = 2
ORIGIN = "Llama-3 8B in MXINT8"

# OCP microscaling (MXINT8) for Llama-3 8B: the shared scale makes every division exact.


class Model(torch.nn.Module):
    def forward(self, x):
        blocks = x.unflatten(-1, (-1, 32))
        exponent = torch.frexp(blocks.abs().amax(dim=-1)).exponent
        scale = torch.exp2((7 - exponent).to(x.dtype))
        codes = torch.clamp(torch.round(blocks * scale.unsqueeze(-1)), -127.0, 127.0)
        return codes.to(torch.int8).flatten(-2), exponent.to(torch.int8)


def get_inputs(rows=64, dim=4096):
    return [torch.randn(rows, dim) * torch.exp(torch.randn(rows, 1))]


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
            "name": "odd number of blocks",
            "inputs": {"rows": 61, "dim": 992},
            "held_out": True,
        },
    ]
