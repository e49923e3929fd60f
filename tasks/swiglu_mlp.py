"""The gated MLP whole: two projections up, SiLU of one times the other, one projection down."""

import torch
import torch.nn.functional as F

FAMILY = "matmul"
DIFFICULTY = 3
ORIGIN = "Llama-3 8B"

# Llama-3 8B: 4096 to 14336 and back; SmolLM-135M: 576 to 1536.


class Model(torch.nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate = torch.nn.Linear(dim, hidden, bias=False)
        self.up = torch.nn.Linear(dim, hidden, bias=False)
        self.down = torch.nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def get_inputs(rows=16, dim=576):
    return [torch.randn(rows, dim)]


def get_init_inputs(dim=576, hidden=1536):
    return [dim, hidden]


def get_workloads():
    return [
        {
            "name": "smollm-135m, 16 tokens",
            "inputs": {"rows": 16, "dim": 576},
            "init": {"dim": 576, "hidden": 1536},
        },
        {
            "name": "an eighth of llama-3 8b, 8 tokens",
            "inputs": {"rows": 8, "dim": 512},
            "init": {"dim": 512, "hidden": 1792},
        },
        {
            "name": "gpu: llama-3 8b, 128 tokens",
            "inputs": {"rows": 128, "dim": 4096},
            "init": {"dim": 4096, "hidden": 14336},
        },
        {
            "name": "gpu: llama-3 8b in bfloat16, 1024 tokens",
            "inputs": {"rows": 1024, "dim": 4096},
            "init": {"dim": 4096, "hidden": 14336},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"rows": 13, "dim": 67},
            "init": {"dim": 67, "hidden": 211},
            "held_out": True,
        },
    ]
