"""Tokens put into their expert's next free slot; those beyond its capacity are dropped."""

import torch

FAMILY = "routing"
DIFFICULTY = 3
ORIGIN = "Switch Transformer base"

# Switch Transformer base: 64 experts, one per token, capacity factor 1.0, width 768.


class Model(torch.nn.Module):
    def __init__(self, experts, capacity):
        super().__init__()
        self.experts, self.capacity = experts, capacity

    def forward(self, chosen, tokens):
        experts = torch.arange(self.experts, device=chosen.device)
        earlier = torch.cumsum((chosen[:, None] == experts).long(), dim=0)
        turn = earlier.gather(1, chosen[:, None]).squeeze(1) - 1
        dropped = self.experts * self.capacity
        slot = torch.where(turn < self.capacity, chosen * self.capacity + turn, dropped)
        slots = tokens.new_zeros(dropped + 1, tokens.shape[1]).index_add(0, slot, tokens)
        return slots[:-1].unflatten(0, (self.experts, self.capacity)), slot


def get_inputs(tokens=512, experts=64, dim=768):
    return [torch.randint(0, experts, (tokens,)), torch.randn(tokens, dim)]


def get_init_inputs(experts=64, capacity=8):
    return [experts, capacity]


def get_workloads():
    return [
        {
            "name": "switch base, 512 tokens",
            "inputs": {"tokens": 512, "experts": 64, "dim": 768},
            "init": {"experts": 64, "capacity": 8},
        },
        {
            "name": "switch base with 8 experts, 1024 tokens",
            "inputs": {"tokens": 1024, "experts": 8, "dim": 256},
            "init": {"experts": 8, "capacity": 128},
        },
        {
            "name": "gpu: switch base, 16384 tokens",
            "inputs": {"tokens": 16384, "experts": 64, "dim": 768},
            "init": {"experts": 64, "capacity": 256},
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 101, "experts": 7, "dim": 59},
            "init": {"experts": 7, "capacity": 13},
            "held_out": True,
        },
    ]
