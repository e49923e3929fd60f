"""DeepSeek-V3's gate without its groups: the best 8 experts by sigmoid, weights renormalised."""

import torch

FAMILY = "routing"
DIFFICULTY = 2
ORIGIN = "DeepSeek-V3"

# DeepSeek-V3: 256 routed experts, 8 per token, weights scaled by 2.5 after normalising.


class Model(torch.nn.Module):
    def forward(self, logits):
        weights, experts = torch.topk(torch.sigmoid(logits), 8, dim=-1)
        return 2.5 * weights / weights.sum(dim=-1, keepdim=True), experts


def index_scores(model, logits):
    return {1: (torch.sigmoid(logits), 1)}


def get_inputs(tokens=256, experts=256):
    return [torch.randn(tokens, experts)]


def get_init_inputs():
    return []


def get_workloads():
    return [
        {
            "name": "deepseek-v3, 256 tokens",
            "inputs": {"tokens": 256, "experts": 256},
        },
        {
            "name": "64 experts, 1024 tokens",
            "inputs": {"tokens": 1024, "experts": 64},
        },
        {
            "name": "gpu: deepseek-v3, 16384 tokens",
            "inputs": {"tokens": 16384, "experts": 256},
        },
        {
            "name": "odd sizes",
            "inputs": {"tokens": 37, "experts": 43},
            "held_out": True,
        },
    ]
