"""A mixture of gated experts: computed for all of them here, though a token needs only two."""

import torch
import torch.nn.functional as F

FAMILY = "routing"
DIFFICULTY = 3
ORIGIN = "Mixtral 8x7B"

# Mixtral 8x7B: 8 experts, 4096 to 14336 and back, 2 per token.


class Model(torch.nn.Module):
    def __init__(self, experts, dim, hidden):
        super().__init__()
        self.gate = torch.nn.Parameter(torch.randn(experts, dim, hidden) / dim**0.5)
        self.up = torch.nn.Parameter(torch.randn(experts, dim, hidden) / dim**0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, hidden, dim) / hidden**0.5)

    def forward(self, x, chosen, weights):
        experts = self.gate.shape[0]
        shares = x.new_zeros(x.shape[0], experts).scatter(1, chosen, weights)
        total = torch.zeros_like(x)
        for expert in range(experts):
            hidden = F.silu(x @ self.gate[expert]) * (x @ self.up[expert])
            total = total + shares[:, expert, None] * (hidden @ self.down[expert])
        return total


def get_inputs(tokens=32, experts=8, dim=128):
    strength, chosen = torch.randn(tokens, experts).topk(2, dim=-1)
    return [torch.randn(tokens, dim), chosen, torch.softmax(strength, dim=-1)]


def get_init_inputs(experts=8, dim=128, hidden=448):
    return [experts, dim, hidden]


def get_workloads():
    return [
        {
            "name": "mixtral at a 32nd, 32 tokens",
            "inputs": {"tokens": 32, "experts": 8, "dim": 128},
            "init": {"experts": 8, "dim": 128, "hidden": 448},
        },
        {
            "name": "16 small experts, 16 tokens",
            "inputs": {"tokens": 16, "experts": 16, "dim": 192},
            "init": {"experts": 16, "dim": 192, "hidden": 256},
        },
        {
            "name": "gpu: mixtral at a quarter, 512 tokens",
            "inputs": {"tokens": 512, "experts": 8, "dim": 1024},
            "init": {"experts": 8, "dim": 1024, "hidden": 3584},
        },
        {
            "name": "gpu: mixtral at a half in bfloat16, 1024 tokens",
            "inputs": {"tokens": 1024, "experts": 8, "dim": 2048},
            "init": {"experts": 8, "dim": 2048, "hidden": 7168},
            "dtype": "bfloat16",
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 13, "experts": 5, "dim": 37},
            "init": {"experts": 5, "dim": 37, "hidden": 53},
            "held_out": True,
        },
    ]
