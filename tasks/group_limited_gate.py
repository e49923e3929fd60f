"""Routing limited to groups of experts: the 3 best groups by their best expert, then 6 experts."""

import torch

FAMILY = "routing"
DIFFICULTY = 3
ORIGIN = "DeepSeek-V2"
STRUCTURE = "logits of one token lie at least 0.03 apart"

# DeepSeek-V2: 160 experts in 8 groups (one per device), weights scaled by 16. Logits keep apart
# because at a tie between groups rounding would decide which experts a token goes to.


class Model(torch.nn.Module):
    def __init__(self, groups):
        super().__init__()
        self.groups = groups

    def forward(self, logits):
        scores = torch.softmax(logits, dim=-1)
        weights, experts = torch.topk(_limited(scores, self.groups), 6, dim=-1)
        return 16.0 * weights, experts


def _limited(scores, groups):
    grouped = scores.unflatten(-1, (groups, -1))
    best = torch.topk(grouped.amax(dim=-1), 3, dim=-1).indices
    kept = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter(1, best, True)
    return grouped.masked_fill(~kept.unsqueeze(-1), 0.0).flatten(1)


def index_scores(model, logits):
    return {1: (_limited(torch.softmax(logits, dim=-1), model.groups), 1)}


def get_inputs(tokens=256, experts=160):
    ranks = torch.argsort(torch.rand(tokens, experts), dim=-1)
    return [(ranks + 0.25 * torch.rand(tokens, experts)) * 0.05 - 4.0]


def get_init_inputs(groups=8):
    return [groups]


def get_workloads():
    return [
        {
            "name": "deepseek-v2, 256 tokens",
            "inputs": {"tokens": 256, "experts": 160},
            "init": {"groups": 8},
        },
        {
            "name": "64 experts in 4 groups, 512 tokens",
            "inputs": {"tokens": 512, "experts": 64},
            "init": {"groups": 4},
        },
        {
            "name": "gpu: deepseek-v2, 8192 tokens",
            "inputs": {"tokens": 8192, "experts": 160},
            "init": {"groups": 8},
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 37, "experts": 55},
            "init": {"groups": 5},
            "held_out": True,
        },
    ]
