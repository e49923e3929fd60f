"""Retention as a recurrence: a decaying matrix per head that takes in keys times values."""

import torch

FAMILY = "recurrence"
DIFFICULTY = 3
ORIGIN = "RetNet 1.3B"

# RetNet 1.3B: 8 heads with keys of 256, values of 512; head h decays by 1 - 2^(-5 - h).


class Model(torch.nn.Module):
    def forward(self, q, k, v, state):
        heads = torch.arange(q.shape[1], device=q.device, dtype=q.dtype)
        decay = (1.0 - torch.exp2(-5.0 - heads))[:, None, None]
        outputs = []
        for t in range(q.shape[2]):
            state = decay * state + k[:, :, t, :, None] * v[:, :, t, None, :]
            outputs.append((q[:, :, t, None, :] @ state).squeeze(2))
        return torch.stack(outputs, dim=2), state


def get_inputs(batch=1, heads=8, length=32, keys=32, values=64):
    return [
        torch.randn(batch, heads, length, keys),
        torch.randn(batch, heads, length, keys),
        torch.randn(batch, heads, length, values),
        torch.randn(batch, heads, keys, values),
    ]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "an eighth of retnet 1.3b, 32 tokens",
            "inputs": {"batch": 1, "heads": 8, "length": 32, "keys": 32, "values": 64},
        },
        {
            "name": "four small heads, 64 tokens",
            "inputs": {"batch": 2, "heads": 4, "length": 64, "keys": 24, "values": 24},
        },
        {
            "name": "gpu: retnet 1.3b, 128 tokens, batch 8",
            "inputs": {"batch": 8, "heads": 8, "length": 128, "keys": 256, "values": 512},
        },
        {
            "name": "odd sizes",
            "inputs": {"batch": 3, "heads": 2, "length": 13, "keys": 11, "values": 19},
            "held_out": True,
        },
    ]
