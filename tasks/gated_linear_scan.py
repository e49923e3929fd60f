"""The real-gated linear recurrent unit: a decaying average whose decay is gated by every token."""

import torch
import torch.nn.functional as F

FAMILY = "scan"
DIFFICULTY = 3
ORIGIN = "RecurrentGemma-2B"

# RecurrentGemma-2B (Griffin): recurrent width 2560; decay = exp(-8 softplus(rate) sigmoid(gate)).


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rate = torch.nn.Parameter(torch.linspace(-4.0, -1.0, dim))

    def forward(self, x, input_gate, decay_gate, state):
        log_decay = -8.0 * F.softplus(self.rate) * torch.sigmoid(decay_gate)
        decay = torch.exp(log_decay)
        drive = torch.sqrt(-torch.expm1(2.0 * log_decay)) * torch.sigmoid(input_gate) * x
        outputs = []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + drive[:, t]
            outputs.append(state)
        return torch.stack(outputs, dim=1)


def get_inputs(batch=1, length=128, dim=640):
    return [torch.randn(batch, length, dim) for _ in range(3)] + [torch.randn(batch, dim)]


def get_init_inputs(dim=640):
    return [dim]


def get_workloads():
    return [
        {
            "name": "a quarter of recurrentgemma-2b, 128 tokens",
            "inputs": {"batch": 1, "length": 128, "dim": 640},
            "init": {"dim": 640},
        },
        {
            "name": "many short prompts of 32 tokens",
            "inputs": {"batch": 8, "length": 32, "dim": 256},
            "init": {"dim": 256},
        },
        {
            "name": "gpu: recurrentgemma-2b, 1024 tokens, batch 8",
            "inputs": {"batch": 8, "length": 1024, "dim": 2560},
            "init": {"dim": 2560},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "length": 29, "dim": 101},
            "init": {"dim": 101},
            "held_out": True,
        },
    ]
