"""Routing of a mixture of experts: the two best of the experts, their weights renormalised."""

import torch

FAMILY = "routing"
DIFFICULTY = 1
ORIGIN = "Mixtral 8x7B"


class Model(torch.nn.Module):
    def forward(self, logits):
        weights, experts = torch.topk(torch.softmax(logits, dim=-1), 2, dim=-1)
        return weights / weights.sum(dim=-1, keepdim=True), experts


def get_inputs(tokens=2048, experts=64):
    return [torch.randn(tokens, experts)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "64 experts, 2048 tokens",
            "inputs": {"tokens": 2048, "experts": 64},
        },
        {
            "name": "8 experts, 4096 tokens",
            "inputs": {"tokens": 4096, "experts": 8},
        },
        {
            "name": "gpu: 128 experts, 65536 tokens",
            "inputs": {"tokens": 65536, "experts": 128},
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 37, "experts": 11},
            "held_out": True,
        },
    ]
