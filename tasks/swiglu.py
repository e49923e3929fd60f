"""SwiGLU's gate as in Llama's MLP: silu of one projection times the other."""

import torch
import torch.nn.functional as F

FAMILY = "activation"
DIFFICULTY = 1
ORIGIN = "Llama-2 7B"


class Model(torch.nn.Module):
    def forward(self, gate, up):
        return F.silu(gate) * up


def get_inputs(rows=64, dim=11008):
    return [torch.randn(rows, dim), torch.randn(rows, dim)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "llama-7b decode, 64 rows",
            "inputs": {"rows": 64, "dim": 11008},
        },
        {
            "name": "small model, 256 rows",
            "inputs": {"rows": 256, "dim": 1536},
        },
        {
            "name": "gpu: llama-8b prefill, 512 rows",
            "inputs": {"rows": 512, "dim": 14336},
        },
        {
            "name": "odd width",
            "inputs": {"rows": 17, "dim": 1531},
            "held_out": True,
        },
    ]
