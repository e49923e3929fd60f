"""Muon's orthogonalisation of a momentum matrix by five steps of Newton-Schulz."""

import torch

FAMILY = "optimiser"
DIFFICULTY = 3
ORIGIN = "Muon on NanoGPT"

# Muon on NanoGPT 124M: 768 by 768 and 768 by 3072 matrices.


class Model(torch.nn.Module):
    def forward(self, momentum):
        x = momentum / torch.linalg.vector_norm(momentum, dim=(-2, -1), keepdim=True)
        for _ in range(5):
            outer = x @ x.transpose(-2, -1)
            mixed = -4.7750 * outer + 2.0315 * outer @ outer
            x = 3.4445 * x + mixed @ x
        return x


def get_inputs(matrices=1, rows=96, columns=192):
    return [torch.randn(matrices, rows, columns)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "an eighth of nanogpt's mlp, 96 by 384",
            "inputs": {"matrices": 1, "rows": 96, "columns": 384},
        },
        {
            "name": "four small matrices of 64 by 64",
            "inputs": {"matrices": 4, "rows": 64, "columns": 64},
        },
        {
            "name": "gpu: nanogpt attention, 4 of 768 by 768",
            "inputs": {"matrices": 4, "rows": 768, "columns": 768},
        },
        {
            "name": "gpu: nanogpt mlp, 768 by 3072",
            "inputs": {"matrices": 1, "rows": 768, "columns": 3072},
        },
        {
            "name": "odd sizes",
            "inputs": {"matrices": 3, "rows": 29, "columns": 47},
            "held_out": True,
        },
    ]
