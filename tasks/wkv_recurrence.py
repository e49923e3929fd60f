"""RWKV's weighted average of values, by exponentials of keys that decay, kept from overflowing."""

import torch

FAMILY = "recurrence"
DIFFICULTY = 3
ORIGIN = "RWKV-4 169M"

# RWKV-4 169M: width 768; a bonus for the present token, a decay per channel.


class Model(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.decay = torch.nn.Parameter(torch.linspace(-5.0, 1.0, dim))
        self.bonus = torch.nn.Parameter(torch.linspace(-0.5, 0.5, dim))

    def forward(self, k, v):
        decay = -torch.exp(self.decay)
        above, below, top = v[:, 0], torch.ones_like(v[:, 0]), k[:, 0]
        outputs = [above]
        for t in range(1, k.shape[1]):
            now = self.bonus + k[:, t]
            largest = torch.maximum(top, now)
            old, new = torch.exp(top - largest), torch.exp(now - largest)
            outputs.append((old * above + new * v[:, t]) / (below * old + new))
            largest = torch.maximum(top + decay, k[:, t])
            old, new = torch.exp(top + decay - largest), torch.exp(k[:, t] - largest)
            above, below, top = old * above + new * v[:, t], below * old + new, largest
        return torch.stack(outputs, dim=1)


def get_inputs(batch=1, length=64, dim=768):
    return [torch.randn(batch, length, dim), torch.randn(batch, length, dim)]


def get_init_inputs(dim=768):
    return [dim]


def get_workloads():
    return [
        {
            "name": "rwkv-4 169m, 64 tokens",
            "inputs": {"batch": 1, "length": 64, "dim": 768},
            "init": {"dim": 768},
        },
        {
            "name": "a third of it, 4 prompts of 48 tokens",
            "inputs": {"batch": 4, "length": 48, "dim": 256},
            "init": {"dim": 256},
        },
        {
            "name": "gpu: rwkv-4 169m, 256 tokens, batch 16",
            "inputs": {"batch": 16, "length": 256, "dim": 768},
            "init": {"dim": 768},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "length": 17, "dim": 91},
            "init": {"dim": 91},
            "held_out": True,
        },
    ]
