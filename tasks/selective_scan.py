"""Mamba's selective scan: a diagonal state whose decay and input depend on the token."""

import torch
import torch.nn.functional as F

FAMILY = "scan"
DIFFICULTY = 3
ORIGIN = "Mamba-130m"

# Mamba-130m: inner width 1536, state of 16; the loop over time is what a kernel can undo.


class Model(torch.nn.Module):
    def __init__(self, dim, state):
        super().__init__()
        decay = torch.log(torch.arange(1.0, state + 1)).repeat(dim, 1)
        self.log_decay = torch.nn.Parameter(decay)
        self.skip = torch.nn.Parameter(torch.ones(dim))
        self.bias = torch.nn.Parameter(torch.full((dim,), -2.0))

    def forward(self, x, delta, b, c, state):
        step = F.softplus(delta + self.bias)
        decay = torch.exp(-step.unsqueeze(-1) * torch.exp(self.log_decay))
        drive = (step * x).unsqueeze(-1) * b.unsqueeze(2)
        outputs = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]
            outputs.append((state * c[:, t, None]).sum(dim=-1))
        return torch.stack(outputs, dim=1) + self.skip * x, state


def get_inputs(batch=1, length=64, dim=192, state=16):
    rows = (batch, length)
    return [
        torch.randn(*rows, dim),
        torch.randn(*rows, dim),
        torch.randn(*rows, state),
        torch.randn(*rows, state),
        torch.randn(batch, dim, state),
    ]


def get_init_inputs(dim=192, state=16):
    return [dim, state]


def get_workloads():
    return [
        {
            "name": "an eighth of mamba-130m, 64 tokens",
            "inputs": {"batch": 1, "length": 64, "dim": 192, "state": 16},
            "init": {"dim": 192, "state": 16},
        },
        {
            "name": "vision mamba tiny, 32 tokens, batch 2",
            "inputs": {"batch": 2, "length": 32, "dim": 384, "state": 8},
            "init": {"dim": 384, "state": 8},
        },
        {
            "name": "gpu: mamba-130m, 512 tokens, batch 4",
            "inputs": {"batch": 4, "length": 512, "dim": 1536, "state": 16},
            "init": {"dim": 1536, "state": 16},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "length": 19, "dim": 29, "state": 5},
            "init": {"dim": 29, "state": 5},
            "held_out": True,
        },
    ]
